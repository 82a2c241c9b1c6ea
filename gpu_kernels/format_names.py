"""Names of the explicit formats, for those who show them and load no format."""

from __future__ import annotations

FORMAT_NAMES = (
    "msr",
    "cmsr",
    "msr-subwarp",
    "cmsr-subwarp",
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
    "sell-sorted",
    "csell-sorted",
    "delta-sell",
    "delta-csell",
    "delta-sell-sorted",
    "delta-csell-sorted",
    "cusparse",
)
"""In the order of `gpu_kernels.FORMATS`, which has the format of each."""
