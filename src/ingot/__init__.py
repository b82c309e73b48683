"""Ingot turns racks of bare servers into running machines, declaratively."""
