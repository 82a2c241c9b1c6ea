"""Exact answers in rational numbers, for small chains and comparisons that rounding cannot decide."""

__all__: list[str] = []
