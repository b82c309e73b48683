"""PreprovisioningImage: a ramdisk for each host that asks for one, built, served and taken back.

`settings` says where images come from and how they are reached.
"""

from ingot.images.controller.settings import ImageSettings, Listen

__all__ = ["ImageSettings", "Listen"]
