"""Compiled kernels of the CPU backend; Numba is imported by the modules of this package only."""

__all__: list[str] = []
