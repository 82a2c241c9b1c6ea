"""The hybrid engine: numerical model checking on compressed symbolic matrices."""
