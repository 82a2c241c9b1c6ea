"""Injection of a level: row types, groups and slices; or submatrices, instances and tasks as published."""
