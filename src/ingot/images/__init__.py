"""Getting, verifying and serving images.

Nothing lives here yet; the import rules already hold for it.
"""
