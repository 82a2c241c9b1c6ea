"""What keeps a property from being checked."""

from __future__ import annotations

__all__ = ["UnsupportedError"]


class UnsupportedError(NotImplementedError):
    """A property that parses but that this version cannot check."""
