"""Bare metal to practise on: simulated servers that boot honestly and keep what was written."""
