"""The nouns: one module per kind, what all kinds share (`meta`), the CRDs made from them, and pure rules over them.

Nothing here does I/O and nothing here imports another room.
"""
