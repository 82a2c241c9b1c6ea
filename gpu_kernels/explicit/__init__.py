"""Explicit matrix formats and their products: those of [WB13], [BESW10] and [CB12], and today's.

`FORMATS` names them all. Every format is made from compressed sparse rows by ``from_csr``, goes back by
``to_csr``, knows its ``nbytes``, and multiplies by ``multiply``.
"""

from __future__ import annotations

import warnings

from gpu_kernels.explicit.matrix import ExplicitMatrix, Format, encode_values, read_csr
from gpu_kernels.explicit.rows import (
    CSR_ALGORITHMS,
    CusparseCsr,
    Msr,
    MsrHalfWarp,
    MsrScan,
    MsrStream,
    MsrWarp,
    ScanPlan,
    Sell,
)

__all__ = [
    "CSR_ALGORITHMS", "FORMATS", "CusparseCsr", "ExplicitMatrix", "Format", "Msr", "MsrHalfWarp", "MsrScan",
    "MsrStream", "MsrWarp", "ScanPlan", "Sell", "encode_values", "read_csr",
]  # fmt: skip

FORMATS: dict[str, Format] = {
    "msr": Format(Msr),
    "cmsr": Format(Msr, compact=True),
    "msr-scan": Format(MsrScan),
    "cmsr-scan": Format(MsrScan, compact=True),
    "msr-stream": Format(MsrStream),
    "cmsr-stream": Format(MsrStream, compact=True),
    "msr-wl": Format(MsrWarp),
    "cmsr-wl": Format(MsrWarp, compact=True),
    "msr-hwl": Format(MsrHalfWarp),
    "cmsr-hwl": Format(MsrHalfWarp, compact=True),
    "sell": Format(Sell),
    "csell": Format(Sell, compact=True),
    "cusparse": Format(CusparseCsr),
}
"""Format by name. ``cusparse`` is for CUDA devices only."""

_EARLIER = {
    "Cmsr": "cmsr",
    "CmsrHalfWarp": "cmsr-hwl",
    "CmsrScan": "cmsr-scan",
    "CmsrStream": "cmsr-stream",
    "CmsrSubwarp": "cmsr",
    "CmsrWarp": "cmsr-wl",
    "CDeltaSell": "csell",
    "CDeltaSellSorted": "csell",
    "CSell": "csell",
    "CSellSorted": "csell",
    "DeltaSell": "sell",
    "DeltaSellSorted": "sell",
    "MsrSubwarp": "msr",
    "SellSorted": "sell",
}
"""Names of the release before, and the format that stands in their place."""


def __getattr__(name: str) -> Format:
    """Return the format in the place of a name of the release before, with a warning that names it."""
    if name not in _EARLIER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn(
        f'{__name__}.{name} goes with the next release: use FORMATS["{_EARLIER[name]}"]',
        DeprecationWarning,
        stacklevel=2,
    )
    return FORMATS[_EARLIER[name]]
