"""In which formats the explicit engine may store a matrix, by name, for those who load no format."""

from __future__ import annotations

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
