"""Communicators of processes that share the states: threads of one process, or MPI's."""
