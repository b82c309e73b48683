"""Serving images without copying them.

Nothing lives here yet; the import rules already name it.
"""
