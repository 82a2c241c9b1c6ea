"""Offset-labelled MTBDDs: numbers of states, paths, and vectors over states."""
