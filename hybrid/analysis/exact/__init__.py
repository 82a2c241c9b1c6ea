"""Exact answers in rational numbers, for small models and comparisons that rounding cannot decide."""

__all__: list[str] = []
