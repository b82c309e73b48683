"""Getting, verifying and serving images.

`region` names bytes on disk; `fetching` gets files, `release` is the payload they travel in, `server` hands images out without
copying them, `ramdisk` makes those of hosts, `controller` keeps PreprovisioningImages.
"""
