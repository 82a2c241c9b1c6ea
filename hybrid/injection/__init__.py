"""Injection: submatrices, instances and tasks of a level, and their compact form as shared row types."""
