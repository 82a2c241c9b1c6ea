"""Markov decision processes: products over choices, bounds on optimal values, schedulers."""
