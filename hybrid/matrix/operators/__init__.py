"""Operators for iterative methods: products and steps with compressed and explicit matrices, and choices."""
