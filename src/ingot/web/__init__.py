"""The dashboard.

Nothing lives here yet; the import rules already hold for it.
"""
