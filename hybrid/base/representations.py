"""How a compressed matrix may be held for products, by name."""

from __future__ import annotations

from hybrid.base.errors import OptionError

# The command line's help comes here, and does without `typing`, which takes long to import.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from hybrid.base.option_types import Representation

REPRESENTATIONS: tuple[Representation, ...] = ("row-types", "tasks")
"""Rows of equal sequences of blocks together, or instances in tasks of 256 rows ([Tealdi13] 4.4.1.2)."""


def check_representation(name: str) -> None:
    """Refuse a name that stands for no representation.

    Raises
    ------
    OptionError
    """
    if name not in REPRESENTATIONS:
        # Only a faulty name pays for this import.
        from mtbdd.language.errors import suggestion

        near = suggestion(str(name), REPRESENTATIONS)
        raise OptionError(f"representation: expected one of {', '.join(REPRESENTATIONS)}, got {name!r}{near}")
