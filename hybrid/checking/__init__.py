"""Checking properties: graph sets first, then linear systems on the hybrid matrix."""
