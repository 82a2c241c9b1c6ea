"""A device that runs the real kernels on the host: compiled as C++, CUDA's words defined in host_cuda.h."""

from __future__ import annotations

import atexit
import ctypes
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from gpu_kernels._loader import kernel_names, source_text
from gpu_kernels.device import Kernel, Macros
from mtbdd.private_folder import private_folder

COMPILER = shutil.which("g++")
HEADER = Path(__file__).with_name("host_cuda.h")
BUILD = Path(__file__).parents[2] / "build"


OPTIONS = ("-std=c++20", "-O1", "-fPIC", "-ffp-contract=off")
WARNINGS = ("-Wall", "-Wno-unknown-pragmas", "-Wno-unused-function", "-Werror")


@functools.cache
def _folder() -> Path:
    """Return where compiled files are kept, by the header's contents; its precompiled form lies there too.

    They are loaded into the process, so others must not be able to write there. Within the checkout they stay
    for the next run; where that is not private, or read-only, this process has a folder of its own.
    """
    key = hashlib.sha256(HEADER.read_bytes()).hexdigest()[:16]
    try:
        folder = private_folder(BUILD / f"host-kernels-{key}")
    except OSError:
        folder = Path(tempfile.mkdtemp(prefix="hybrid-host-kernels-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    header = folder / HEADER.name
    if not header.with_suffix(".h.gch").exists():
        unfinished = header.with_suffix(f".{os.getpid()}")
        unfinished.write_bytes(HEADER.read_bytes())
        unfinished.rename(header)
        _compile(["-x", "c++-header", str(header)], header.with_suffix(".h.gch"))
    return folder


def _compile(arguments: list[str], target: Path) -> None:
    """Run the compiler, and let the target appear only when it is whole: tests may run side by side."""
    assert COMPILER is not None
    unfinished = target.with_suffix(f".{os.getpid()}")
    command = [COMPILER, *OPTIONS, *arguments, "-o", str(unfinished)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]
    unfinished.rename(target)


@functools.cache
def library(source: str, macros: Macros) -> ctypes.CDLL:
    """Compile a source file for one specialisation."""
    text = source_text(source, macros, preamble="") + "".join(
        f'extern "C" void host_{name}(unsigned grid, unsigned block, void **arguments) '
        f"{{ host_launch<{name}>(grid, block, arguments); }}\n"
        for name in kernel_names(source)
    )
    target = _folder() / f"{hashlib.sha256(text.encode()).hexdigest()[:24]}.so"
    if not target.exists():
        path = target.with_suffix(f".{os.getpid()}.cpp")
        path.write_text(text)
        _compile([*WARNINGS, "-include", str(_folder() / HEADER.name), "-shared", str(path)], target)
        path.unlink()
    return ctypes.CDLL(str(target))


class HostDevice:
    """NumPy arrays and kernels on the host."""

    xp: Any = np
    name = "host"

    def __init__(self, free: int = 1 << 40) -> None:
        self.free = free
        self.launches: list[str] = []

    def kernel(self, source: str, name: str, macros: Macros) -> Kernel:
        def launch(
            grid: tuple[int, ...], block: tuple[int, ...], arguments: tuple[Any, ...], shared_mem: int = 0
        ) -> None:
            self.launches.append(name)
            assert shared_mem <= 48 * 1024
            assert 0 < grid[0] < 2**31
            assert 0 < block[0] <= 1024
            values = []
            for argument in arguments:
                if isinstance(argument, np.ndarray):
                    assert argument.flags.c_contiguous
                    values.append(ctypes.c_uint64(argument.ctypes.data))
                else:
                    assert isinstance(argument, np.generic), f"untyped scalar {argument!r}"
                    values.append((ctypes.c_byte * argument.nbytes).from_buffer_copy(argument.tobytes()))
            pointers = (ctypes.c_void_p * len(values))(*[ctypes.addressof(v) for v in values])
            getattr(library(source, macros), f"host_{name}")(
                ctypes.c_uint(grid[0]), ctypes.c_uint(block[0]), pointers
            )

        return launch

    def free_bytes(self) -> int:
        return self.free

    def synchronise(self) -> None:
        pass

    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        return work

    def seconds(self, work: Callable[[], None], repeats: int) -> float:
        times = []
        for _ in range(repeats):
            start = time.perf_counter()
            work()
            times.append(time.perf_counter() - start)
        return sorted(times)[repeats // 2]
