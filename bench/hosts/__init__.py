"""Hosts by the thousand: who makes them, who takes care of them, and what that costs the API."""
