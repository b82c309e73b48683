"""PreprovisioningImage: a ramdisk for each host that asks for one, built, served and taken back.

`settings` says where images come from and how they are reached; `serving` in `controller` starts it all. Read on in
`reconciling`, which is a pass over one object; `stock` is what images can be made of at the moment, `sources` where that comes
from, `making` what hosts share, `publishing` what is served for how long, `journal` how that lasts beyond a restart, `checking`
whether it still is what it was, `statuses` what users read.
"""

from ingot.images.controller.controller import ImageController, serving
from ingot.images.controller.settings import ImageSettings, Listen

__all__ = ["ImageController", "ImageSettings", "Listen", "serving"]
