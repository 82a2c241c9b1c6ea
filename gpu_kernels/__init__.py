"""CUDA kernels, arrays in and arrays out; this package imports without CuPy and without a device.

Kernels are real files in ``gpu_kernels/cuda``, compiled at first use for the current device, once for every
specialisation. The functions below launch them; they say whether they wait for the device.
"""

from __future__ import annotations

from gpu_kernels._launch import check_vector, index_bits, index_type
from gpu_kernels.availability import is_available, unavailable_reason
from gpu_kernels.block_spmv import BlockTasks, block_spmv
from gpu_kernels.coded import CodedVector, compress
from gpu_kernels.csr_spmv import SellMatrix, csr_spmv, sell_from_csr, sell_spmv
from gpu_kernels.device import CudaDevice, Device, current_device, device_problem, use_device
from gpu_kernels.explicit import explicit_csr
from gpu_kernels.steps import IterationState, Mode, Step, coded_step, finish_iteration, product_step
from gpu_kernels.tiles import TileMatrix, Tuning, run_tiles
from gpu_kernels.vector import relax_rows

__all__ = [
    "BlockTasks",
    "CodedVector",
    "CudaDevice",
    "Device",
    "IterationState",
    "Mode",
    "SellMatrix",
    "Step",
    "TileMatrix",
    "Tuning",
    "block_spmv",
    "check_vector",
    "coded_step",
    "compress",
    "csr_spmv",
    "current_device",
    "device_problem",
    "explicit_csr",
    "finish_iteration",
    "index_bits",
    "index_type",
    "is_available",
    "product_step",
    "relax_rows",
    "run_tiles",
    "sell_from_csr",
    "sell_spmv",
    "unavailable_reason",
    "use_device",
]
