"""Sources of the kernels: read, put together, specialised by macros, compiled once a device.

The only module that touches ``RawModule``. Sources are real files in ``gpu_kernels/cuda``; their includes are
put in place here, with ``#line`` directives so that compilers name the right file and line.
"""

from __future__ import annotations

import functools
import logging
import re
import time
from collections.abc import Callable
from typing import Any

_log = logging.getLogger(__name__)

Macros = tuple[tuple[str, int], ...]
"""Names and values of the macros of a specialisation, sorted by name."""

Kernel = Callable[..., None]
"""Called as ``kernel(grid, block, arguments, shared_mem=bytes)``, like a CuPy RawKernel."""

COMPILE_OPTIONS = ("-std=c++17",)

SOURCES = (
    "block_spmv.cu",
    "blocks.cu",
    "choice_rows.cu",
    "choices.cu",
    "explicit.cu",
    "graph/fbt.cu",
    "graph/format.cu",
    "graph/mec_trim.cu",
    "graph/scc.cu",
    "groups.cu",
    "idr.cu",
    "iteration.cu",
    "msr.cu",
    "pairs.cu",
    "scan.cu",
    "segments.cu",
    "sell.cu",
    "shadows.cu",
    "stream.cu",
    "tiles.cu",
    "tiles_many.cu",
    "vector.cu",
    "windows.cu",
)
"""All files that are compiled."""

_seconds = 0.0

_INCLUDE = re.compile(r'^#include "([\w./]+)"$')
_KERNEL = re.compile(r'extern "C" __global__ void(?:\s+__launch_bounds__\([^)]*\))?\s+(\w+)\(')
_PREAMBLE = """\
#define BLOCK_SHARED __shared__
"""


@functools.cache
def _file_text(name: str) -> str:
    from importlib import resources

    return resources.files("gpu_kernels").joinpath("cuda", name).read_text(encoding="utf-8")


def source_text(name: str, macros: Macros, preamble: str = _PREAMBLE) -> str:
    """Return a source ready to compile.

    Parameters
    ----------
    name : str
        A file of `SOURCES`.
    macros : tuple of (str, int)
        Macros to define.
    preamble : str
        Text that comes first.

    Returns
    -------
    str
        Preamble, macros, and the file with its includes in place, each file once.
    """
    lines = [preamble]
    lines += [f"#define {macro} {value}" for macro, value in macros]
    _append_file(name, lines, set())
    return "\n".join(lines) + "\n"


def _append_file(name: str, lines: list[str], seen: set[str]) -> None:
    seen.add(name)
    lines.append(f'#line 1 "{name}"')
    for number, line in enumerate(_file_text(name).splitlines(), start=1):
        found = _INCLUDE.match(line)
        if found is not None:
            if found[1] not in seen:
                _append_file(found[1], lines, seen)
            lines.append(f'#line {number + 1} "{name}"')
        elif line.strip() != "#pragma once":
            lines.append(line)


def kernel_names(name: str) -> tuple[str, ...]:
    """Return the names of the kernels of a source file."""
    return tuple(_KERNEL.findall(_file_text(name)))


@functools.cache
def raw_kernel(device: int, source: str, name: str, macros: Macros) -> Kernel:
    """Return a kernel compiled for a device.

    Parameters
    ----------
    device : int
        Number of the device, which must be the current one; part of the key only.
    source, name : str
        File and kernel.
    macros : tuple of (str, int)
        The specialisation, sorted by name.

    Notes
    -----
    Compiled at the first call, some tenths of a second; CuPy keeps the binary on disk for later processes.
    """
    global _seconds
    _log.info("loading %s", source)
    begin = time.perf_counter()
    kernel: Any = _raw_module(device, source, macros).get_function(name)
    _seconds += time.perf_counter() - begin
    return kernel  # type: ignore[no-any-return]


def seconds_loading() -> float:
    """Return the seconds that this process has spent on compiling and loading kernels so far.

    Returns
    -------
    float
    """
    return _seconds


@functools.cache
def _raw_module(device: int, source: str, macros: Macros) -> Any:
    import cupy

    return cupy.RawModule(code=source_text(source, macros), options=COMPILE_OPTIONS)
