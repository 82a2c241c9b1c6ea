"""The symbolic file: diagrams, labels and rewards of a model of any size."""
