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

    from gpu_kernels import explicit as explicit
    from gpu_kernels import graph as graph
    from gpu_kernels.compressed.choices import (
        ChoiceGains,
        ChoiceRows,
        finish_choices,
        likely_modules,
        mark_entries,
        run_choice_rows,
        run_choices,
    )
    from gpu_kernels.compressed.pairs import (
        BlockTasks,
        PairMatrix,
        PairTuning,
        block_spmv,
        run_block_tasks,
        run_pairs,
    )
    from gpu_kernels.compressed.steps import (
        NO_CHOICE,
        ChoiceStep,
        Groups,
        IterationState,
        Mode,
        Step,
        coded_step,
        finish_iteration,
        join_groups,
        product_step,
    )
    from gpu_kernels.compressed.tiles import TileMatrix, Tuning, explicit_csr, run_tiles, run_tiles_many
    from gpu_kernels.explicit import FORMATS, ExplicitMatrix
    from gpu_kernels.krylov import (
        IDRKernels,
        ShadowKernels,
        add_scaled,
        compare_rows,
        copy_blocks,
        relax_rows,
    )
    from gpu_kernels.runtime._launch import check_vector, index_bits, index_type
    from gpu_kernels.runtime._loader import seconds_loading
    from gpu_kernels.runtime.availability import begin_start, is_available, unavailable_reason
    from gpu_kernels.runtime.coded import CodedVector, compress
    from gpu_kernels.runtime.device import (
        HOST_ITEMS,
        CudaDevice,
        Device,
        Host,
        Place,
        copied_to,
        current_device,
        device_problem,
        made_for,
        take_card,
        use_device,
    )
    from gpu_kernels.runtime.pushes import Leaving, WindowPushes, window_words
    from gpu_kernels.runtime.transfers import DeviceLinks, OpenWindow, SideStream, Transfers, Window
    from gpu_kernels.runtime.warm_up import begin_warm_up, compile_as_well, end_warm_up

__all__ = [
    "FORMATS", "HOST_ITEMS", "NO_CHOICE", "BlockTasks", "ChoiceGains", "ChoiceRows", "ChoiceStep",
    "CodedVector", "CudaDevice", "Device", "DeviceLinks", "ExplicitMatrix", "Groups", "Host", "IDRKernels",
    "IterationState", "Leaving", "Mode", "OpenWindow", "PairMatrix", "PairTuning", "Place", "ShadowKernels",
    "SideStream", "Step", "TileMatrix", "Transfers", "Tuning", "Window", "WindowPushes", "add_scaled",
    "begin_start", "begin_warm_up", "block_spmv", "check_vector", "coded_step", "compare_rows",
    "compile_as_well", "compress", "copied_to", "copy_blocks", "current_device", "device_problem",
    "end_warm_up", "explicit_csr", "finish_choices", "finish_iteration", "index_bits", "index_type",
    "is_available", "join_groups", "likely_modules", "made_for", "mark_entries", "product_step", "relax_rows",
    "run_choice_rows", "run_choices", "run_block_tasks", "run_pairs", "run_tiles", "run_tiles_many",
    "seconds_loading", "take_card", "unavailable_reason", "use_device", "window_words",
]  # fmt: skip

_HOMES = {
    "compressed.choices": ("ChoiceGains", "ChoiceRows", "finish_choices", "likely_modules", "mark_entries",
        "run_choice_rows", "run_choices"),
    "compressed.pairs": ("BlockTasks", "PairMatrix", "PairTuning", "block_spmv", "run_block_tasks",
        "run_pairs"),
    "compressed.steps": ("ChoiceStep", "Groups", "IterationState", "Mode", "NO_CHOICE", "Step", "coded_step",
        "finish_iteration", "join_groups", "product_step"),
    "compressed.tiles": ("TileMatrix", "Tuning", "explicit_csr", "run_tiles", "run_tiles_many"),
    "explicit": ("ExplicitMatrix", "FORMATS"),
    "krylov": ("IDRKernels", "ShadowKernels", "add_scaled", "compare_rows", "copy_blocks", "relax_rows"),
    "runtime._launch": ("check_vector", "index_bits", "index_type"),
    "runtime._loader": ("seconds_loading",),
    "runtime.availability": ("begin_start", "is_available", "unavailable_reason"),
    "runtime.coded": ("CodedVector", "compress"),
    "runtime.device": ("CudaDevice", "Device", "HOST_ITEMS", "Host", "Place", "copied_to", "current_device",
        "device_problem", "made_for", "take_card", "use_device"),
    "runtime.pushes": ("Leaving", "WindowPushes", "window_words"),
    "runtime.transfers": ("DeviceLinks", "OpenWindow", "SideStream", "Transfers", "Window"),
    "runtime.warm_up": ("begin_warm_up", "compile_as_well", "end_warm_up"),
}  # fmt: skip

_PARTS = ("explicit", "graph")

_GONE = {"BiCGStabKernels": "IDRKernels with directions=1"}
"""Names of the release before, and what to use instead."""

if not TYPE_CHECKING:  # type checkers have the imports above

    def __getattr__(name: str) -> Any:
        """Import a public name on first use; none may be a module's name, which would take its place."""
        if name in _PARTS:
            return import_module(f"gpu_kernels.{name}")
        if name in _GONE:  # `from ... import` shows the words of this error alone
            raise ImportError(f"gpu_kernels.{name} is gone; use {_GONE[name]}")
        home = next((home for home, names in _HOMES.items() if name in names), None)
        if home is None:
            raise AttributeError(f"module 'gpu_kernels' has no attribute {name!r}")
        value = getattr(import_module(f"gpu_kernels.{home}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)
