"""Serving images without copying them: each is put together from its pieces while it is sent.

pieces      what an image is made of: regions of files, and the bytes that differ
names       names that nobody can guess, the same after a restart
shelf       which images there are
"""

from ingot.images.server.names import Names
from ingot.images.server.pieces import Image, Piece, appended, entity_tag, patched
from ingot.images.server.shelf import Shelf

__all__ = ["Image", "Names", "Piece", "Shelf", "appended", "entity_tag", "patched"]
