"""What goes wrong with options, wherever they come from."""

from __future__ import annotations

__all__ = ["OptionError"]


class OptionError(ValueError):
    """An option with a value that does not exist, does not fit, or is not offered by this version."""
