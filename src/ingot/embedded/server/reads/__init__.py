"""Reads: one object, a page of a list, a watch. They see what is on disk, and wait for nobody's write."""
