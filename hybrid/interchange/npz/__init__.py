"""NumPy's archives of arrays."""
