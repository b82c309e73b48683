"""Bytes: reading and writing the file formats of this field. Pure; no I/O beyond a file that is handed in."""
