"""How a host is let go: deleted, detached, or forgotten by force."""
