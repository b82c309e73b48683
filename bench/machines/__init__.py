"""Hosts given away by the thousand: who wants them, who gives them, and what that costs the API."""
