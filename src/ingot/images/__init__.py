"""Getting, verifying and serving images.

`region` names bytes on disk; `server` hands images out without copying them.
"""
