"""What keeps a property from being checked."""

from __future__ import annotations

__all__ = ["PropertyError", "UnsupportedError"]


class UnsupportedError(NotImplementedError):
    """A property that parses but that this version cannot check."""


class PropertyError(ValueError):
    """A property that has no answer on this model: what it asks for does not exist or does not fit.

    Other `ValueError`s are defects of the program and no answers.
    """
