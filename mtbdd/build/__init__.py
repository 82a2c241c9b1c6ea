"""Symbolic models: events, reachable states, matrices, choices and rewards as decision diagrams."""
