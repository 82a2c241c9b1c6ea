"""Passes over vectors, and the recurrence of IDR(s)."""
