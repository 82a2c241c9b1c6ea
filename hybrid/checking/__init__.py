"""Checking properties: from the formula tree to values of states, filters and answers."""
