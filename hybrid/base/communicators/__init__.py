"""Who decides together where several processes share the states: threads of one process, or MPI's."""
