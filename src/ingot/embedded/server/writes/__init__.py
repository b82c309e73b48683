"""Writes: creating, changing, patching, deleting, and collecting what nobody owns any more.

`writing` is the one way in; `metadata` is the server's own part of an object, `patches` are pure functions over
documents, and `garbage` follows owners and empties namespaces.
"""
