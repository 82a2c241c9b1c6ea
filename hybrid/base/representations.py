"""How a compressed matrix may be held for products, by name."""

from __future__ import annotations

from hybrid.base.errors import OptionError

# What `typing` has by this name takes long to import.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from hybrid.base.option_types import Representation


# In which formats the explicit engine may store a matrix, by name, for those who load no format.

STORAGES = (
    "auto",
    "msr",
    "cmsr",
    "msr-scan",
    "cmsr-scan",
    "msr-stream",
    "cmsr-stream",
    "msr-wl",
    "cmsr-wl",
    "msr-hwl",
    "cmsr-hwl",
    "sell",
    "csell",
    "cusparse",
)
"""Names of storage on a device; `gpu_kernels.FORMATS` has the format of each, in the same order."""

HOST_STORAGES = ("csr",)
"""Names of storage on the host: compressed sparse rows, which SciPy multiplies."""

EARLIER_STORAGES = {
    "msr-subwarp": "msr",
    "cmsr-subwarp": "cmsr",
    "sell-sorted": "sell",
    "csell-sorted": "csell",
    "delta-sell": "sell",
    "delta-csell": "csell",
    "delta-sell-sorted": "sell",
    "delta-csell-sorted": "csell",
}
"""Names of the release before, and what to choose in their place."""


def replacement_of(storage: object) -> str:
    """Return what a message says of a name of the release before, or nothing."""
    found = EARLIER_STORAGES.get(str(storage))
    return "" if found is None else f"; {storage!r} was taken out, choose {found!r} in its place"


# The command line's help comes here, and does without `typing`, which takes long to import.


REPRESENTATIONS: tuple[Representation, ...] = ("row-types", "tasks")
"""Rows of equal sequences of blocks together, or instances in tasks of 256 rows ([Tealdi13] §4.4.1.2)."""


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
