"""One file a state, the table in `table`, and what several states share: power, reboots, RAID, disk hints."""
