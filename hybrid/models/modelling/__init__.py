"""Models written in Python: variables, commands of expressions or functions, straight into diagrams."""

from hybrid.models.modelling.builder import ModelBuilder

__all__ = ["ModelBuilder"]
