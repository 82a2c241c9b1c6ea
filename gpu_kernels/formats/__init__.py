"""Explicit matrix formats and their products: those of [WB13], [BESW10] and [CB12], and today's.

`FORMATS` names them all. Every format is made from compressed sparse rows by ``from_csr``, goes back by
``to_csr``, knows its ``nbytes``, and multiplies by ``multiply``.
"""

from __future__ import annotations

from gpu_kernels.formats.arrays import read_csr
from gpu_kernels.formats.cusparse import CSR_ALGORITHMS, CusparseCsr
from gpu_kernels.formats.delta_sell import CDeltaSell, CDeltaSellSorted, DeltaSell, DeltaSellSorted
from gpu_kernels.formats.dictionary import encode_values
from gpu_kernels.formats.matrix import ExplicitMatrix
from gpu_kernels.formats.msr import Cmsr, CmsrSubwarp, Msr, MsrSubwarp
from gpu_kernels.formats.scan import CmsrScan, MsrScan, ScanPlan
from gpu_kernels.formats.segments import CmsrHalfWarp, CmsrWarp, MsrHalfWarp, MsrWarp
from gpu_kernels.formats.sell import CSell, CSellSorted, Sell, SellSorted
from gpu_kernels.formats.stream import CmsrStream, MsrStream

__all__ = [
    "CSR_ALGORITHMS",
    "FORMATS",
    "CDeltaSell",
    "CDeltaSellSorted",
    "CSell",
    "CSellSorted",
    "Cmsr",
    "CmsrHalfWarp",
    "CmsrScan",
    "CmsrStream",
    "CmsrSubwarp",
    "CmsrWarp",
    "CusparseCsr",
    "DeltaSell",
    "DeltaSellSorted",
    "ExplicitMatrix",
    "Msr",
    "MsrHalfWarp",
    "MsrScan",
    "MsrStream",
    "MsrSubwarp",
    "MsrWarp",
    "ScanPlan",
    "Sell",
    "SellSorted",
    "encode_values",
    "read_csr",
]

FORMATS: dict[str, type[ExplicitMatrix]] = {
    "msr": Msr,
    "cmsr": Cmsr,
    "msr-subwarp": MsrSubwarp,
    "cmsr-subwarp": CmsrSubwarp,
    "msr-scan": MsrScan,
    "cmsr-scan": CmsrScan,
    "msr-stream": MsrStream,
    "cmsr-stream": CmsrStream,
    "msr-wl": MsrWarp,
    "cmsr-wl": CmsrWarp,
    "msr-hwl": MsrHalfWarp,
    "cmsr-hwl": CmsrHalfWarp,
    "sell": Sell,
    "csell": CSell,
    "sell-sorted": SellSorted,
    "csell-sorted": CSellSorted,
    "delta-sell": DeltaSell,
    "delta-csell": CDeltaSell,
    "delta-sell-sorted": DeltaSellSorted,
    "delta-csell-sorted": CDeltaSellSorted,
    "cusparse": CusparseCsr,
}
"""Format by name. ``cusparse`` is for CUDA devices only."""
