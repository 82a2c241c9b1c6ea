"""Several objectives that one scheduler of an MDP meets."""
