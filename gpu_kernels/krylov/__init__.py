"""Passes over vectors, and the recurrences of BiCGStab and IDR(s)."""
