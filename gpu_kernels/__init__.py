"""CUDA kernels, arrays in and arrays out; this package imports without CuPy and without a device.

Kernels are real files in ``gpu_kernels/cuda``, compiled at first use for the current device, once for every
specialisation. The functions below launch them; they say whether they wait for the device. Names are imported
when first used, so that a run on the CPU does not load them.
"""

from __future__ import annotations

from importlib import import_module

# Help reads names of formats, and does without `typing`, which takes long to import.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from gpu_kernels import formats as formats
    from gpu_kernels import graph as graph
    from gpu_kernels._launch import check_vector, index_bits, index_type
    from gpu_kernels._loader import seconds_loading
    from gpu_kernels.availability import is_available, unavailable_reason
    from gpu_kernels.block_tasks import BlockTasks, block_spmv, run_block_tasks
    from gpu_kernels.blocks import copy_blocks
    from gpu_kernels.choice_rows import ChoiceRows, run_choice_rows
    from gpu_kernels.choice_steps import NO_CHOICE, ChoiceStep
    from gpu_kernels.choices import (
        ChoiceGains,
        finish_choices,
        likely_modules,
        mark_entries,
        run_choices,
    )
    from gpu_kernels.coded import CodedVector, compress
    from gpu_kernels.device import (
        CudaDevice,
        Device,
        Place,
        current_device,
        device_problem,
        take_card,
        use_device,
    )
    from gpu_kernels.early_start import begin_start
    from gpu_kernels.explicit import explicit_csr
    from gpu_kernels.formats import FORMATS, ExplicitMatrix
    from gpu_kernels.groups import Groups, join_groups
    from gpu_kernels.idr import IDRKernels
    from gpu_kernels.krylov import BiCGStabKernels
    from gpu_kernels.links import DeviceLinks
    from gpu_kernels.pairs import PairMatrix, PairTuning, run_pairs
    from gpu_kernels.pushes import Leaving, WindowPushes, window_words
    from gpu_kernels.shadows import ShadowKernels
    from gpu_kernels.side_stream import SideStream
    from gpu_kernels.staging import HOST_ITEMS, Host, copied_to, made_for
    from gpu_kernels.steps import IterationState, Mode, Step, coded_step, finish_iteration, product_step
    from gpu_kernels.tiles import TileMatrix, Tuning, run_tiles
    from gpu_kernels.tiles_many import run_tiles_many
    from gpu_kernels.transfers import Transfers
    from gpu_kernels.vector import add_scaled, compare_rows, relax_rows
    from gpu_kernels.warm_up import begin_warm_up, compile_as_well, end_warm_up
    from gpu_kernels.windows import OpenWindow, Window

__all__ = [
    "FORMATS",
    "HOST_ITEMS",
    "NO_CHOICE",
    "BiCGStabKernels",
    "BlockTasks",
    "ChoiceGains",
    "ChoiceRows",
    "ChoiceStep",
    "CodedVector",
    "CudaDevice",
    "Device",
    "DeviceLinks",
    "ExplicitMatrix",
    "Groups",
    "Host",
    "IDRKernels",
    "IterationState",
    "Leaving",
    "Mode",
    "OpenWindow",
    "PairMatrix",
    "PairTuning",
    "Place",
    "ShadowKernels",
    "SideStream",
    "Step",
    "TileMatrix",
    "Transfers",
    "Tuning",
    "Window",
    "WindowPushes",
    "add_scaled",
    "begin_start",
    "begin_warm_up",
    "block_spmv",
    "check_vector",
    "coded_step",
    "compare_rows",
    "compile_as_well",
    "compress",
    "copied_to",
    "copy_blocks",
    "current_device",
    "device_problem",
    "end_warm_up",
    "explicit_csr",
    "finish_choices",
    "finish_iteration",
    "index_bits",
    "index_type",
    "is_available",
    "join_groups",
    "likely_modules",
    "made_for",
    "mark_entries",
    "product_step",
    "relax_rows",
    "run_choice_rows",
    "run_choices",
    "run_block_tasks",
    "run_pairs",
    "run_tiles",
    "run_tiles_many",
    "seconds_loading",
    "take_card",
    "unavailable_reason",
    "use_device",
    "window_words",
]

_HOMES = {
    "FORMATS": "formats",
    "HOST_ITEMS": "staging",
    "NO_CHOICE": "choice_steps",
    "BiCGStabKernels": "krylov",
    "BlockTasks": "block_tasks",
    "ChoiceGains": "choices",
    "ChoiceRows": "choice_rows",
    "ChoiceStep": "choice_steps",
    "CodedVector": "coded",
    "CudaDevice": "device",
    "Device": "device",
    "DeviceLinks": "links",
    "ExplicitMatrix": "formats",
    "Groups": "groups",
    "Host": "staging",
    "IDRKernels": "idr",
    "IterationState": "steps",
    "Leaving": "pushes",
    "Mode": "steps",
    "OpenWindow": "windows",
    "PairMatrix": "pairs",
    "PairTuning": "pairs",
    "Place": "device",
    "ShadowKernels": "shadows",
    "SideStream": "side_stream",
    "Step": "steps",
    "TileMatrix": "tiles",
    "Transfers": "transfers",
    "Tuning": "tiles",
    "Window": "windows",
    "WindowPushes": "pushes",
    "add_scaled": "vector",
    "begin_start": "early_start",
    "begin_warm_up": "warm_up",
    "block_spmv": "block_tasks",
    "check_vector": "_launch",
    "coded_step": "steps",
    "compare_rows": "vector",
    "compile_as_well": "warm_up",
    "compress": "coded",
    "copied_to": "staging",
    "copy_blocks": "blocks",
    "current_device": "device",
    "device_problem": "device",
    "end_warm_up": "warm_up",
    "explicit_csr": "explicit",
    "finish_choices": "choices",
    "finish_iteration": "steps",
    "index_bits": "_launch",
    "index_type": "_launch",
    "is_available": "availability",
    "join_groups": "groups",
    "likely_modules": "choices",
    "made_for": "staging",
    "mark_entries": "choices",
    "product_step": "steps",
    "relax_rows": "vector",
    "run_choice_rows": "choice_rows",
    "run_choices": "choices",
    "run_block_tasks": "block_tasks",
    "run_pairs": "pairs",
    "run_tiles": "tiles",
    "run_tiles_many": "tiles_many",
    "seconds_loading": "_loader",
    "take_card": "device",
    "unavailable_reason": "availability",
    "use_device": "device",
    "window_words": "pushes",
}

_PARTS = ("formats", "graph")

if not TYPE_CHECKING:  # type checkers have the imports above

    def __getattr__(name: str) -> Any:
        """Import a public name on first use; none may be a module's name, which would take its place."""
        if name in _PARTS:
            return import_module(f"gpu_kernels.{name}")
        if name not in _HOMES:
            raise AttributeError(f"module 'gpu_kernels' has no attribute {name!r}")
        value = getattr(import_module(f"gpu_kernels.{_HOMES[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)
