"""Initial RAM disks: cpio archives (newc) one after the other, each plain or compressed, as the kernel unpacks them.

`read_members` takes what is wanted out of any of them, in a stream and within bounds; `pack` makes a small one.
"""

from ingot.formats.initrd.archive import Members, chosen, list_names, pack, read_members

__all__ = ["Members", "chosen", "list_names", "pack", "read_members"]
