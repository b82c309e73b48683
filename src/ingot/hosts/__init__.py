"""The life of a BareMetalHost: one small handler per state, the table in one place, I/O at the edge."""
