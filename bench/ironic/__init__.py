"""Fleets through a real Ironic and a farm of simulated servers: by Ingot, and by a bare script."""
