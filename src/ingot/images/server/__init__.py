"""Serving images without copying them: each is put together from its pieces while it is sent.

pieces          what an image is made of: regions of files, and the bytes that differ
names           names that nobody can guess, the same after a restart
shelf           which images there are
request         a request, read strictly (pure)
ranges          the parts of an image that it wants (pure)
answer          status, head and pieces that it gets (pure)
wire            a connection that never blocks, with TLS or without
conversation    one connection from beginning to end
loop            a thread that holds many conversations
access          who read what, in one line
http            the listener, for one process
messages        what is said between the process that makes images and those that serve them
worker          a process that serves
workers         as many of them as there are processors
"""

from ingot.images.server.http import ImageServer
from ingot.images.server.names import Names
from ingot.images.server.pieces import Image, Piece, appended, entity_tag, patched
from ingot.images.server.shelf import Shelf
from ingot.images.server.workers import ImageWorkers

__all__ = [
    "Image",
    "ImageServer",
    "ImageWorkers",
    "Names",
    "Piece",
    "Shelf",
    "appended",
    "entity_tag",
    "patched",
]
