"""A device that runs the real kernels on the host: compiled as C++, CUDA's words defined in host_cuda.h.

What all kernels share, host_runtime.cpp, is compiled by itself and loaded before them.

Every access is checked: see guarded.py for arrays and dynamic shared memory; the compiler checks indices into
arrays of known size. An access beyond them raises an AssertionError that names kernel, argument and thread.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import hashlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from gpu_kernels.runtime._loader import Kernel, Macros, kernel_names, source_text
from gpu_kernels.runtime.transfers import OpenWindow, SideStream, Transfers, Window
from mtbdd.base.kernel_store import private_folder
from tests.gpu_kernels.guarded import Place, guarded_copies, nearest

COMPILER = shutil.which("g++")
HEADER = Path(__file__).with_name("host_cuda.h")
RUNTIME = Path(__file__).with_name("host_runtime.cpp")
BUILD = Path(__file__).parents[2] / "build"

BOUNDS = ("-fsanitize=bounds-strict", "-fsanitize-undefined-trap-on-error")
# Coroutines jump between stacks, which a fortified longjmp takes for a fault.
OPTIONS = ("-std=c++20", "-O1", "-fPIC", "-ffp-contract=off", "-U_FORTIFY_SOURCE", *BOUNDS)
WARNINGS = ("-Wall", "-Wno-unknown-pragmas", "-Wno-unused-function", "-Werror")
# A kernel needs the runtime alone, which is there when it is loaded.
BARE = ("-nostdlib", "-fno-exceptions", "-fno-rtti", "-fno-asynchronous-unwind-tables")


@functools.cache
def _folder() -> Path:
    """Return where compiled files are kept, by header, runtime and options.

    They are loaded into the process, so others must not be able to write there. Within the checkout they stay
    for the next run; where that is not private, or read-only, this process has a folder of its own.
    """
    texts = HEADER.read_bytes() + RUNTIME.read_bytes() + repr((OPTIONS, BARE)).encode()
    key = hashlib.sha256(texts).hexdigest()[:16]
    try:
        folder = private_folder(BUILD / f"host-kernels-{key}")
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError:
        folder = Path(tempfile.mkdtemp(prefix="hybrid-host-kernels-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@functools.cache
def _load_runtime() -> None:
    """Load what kernels share, compiled if need be; kernels find its names in the process."""
    target = _folder() / "runtime.so"
    if not target.exists():
        _compile([*WARNINGS, "-shared", str(RUNTIME)], target)
    ctypes.CDLL(str(target), mode=ctypes.RTLD_GLOBAL)


def _compile(arguments: list[str], target: Path) -> None:
    """Run the compiler, and let the target appear only when it is whole: tests may run side by side."""
    assert COMPILER is not None
    unfinished = target.with_suffix(f".{os.getpid()}")
    command = [COMPILER, *OPTIONS, *arguments, "-o", str(unfinished)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]
    unfinished.rename(target)


_DYNAMIC = "extern __shared__ double shared_words[];"
_DYNAMIC_OF_HOST = "double *const shared_words = host_shared;"


class Fault(ctypes.Structure):
    """Why a launch ended early; host_cuda.h has the same."""

    _fields_ = (
        ("signal", ctypes.c_int),
        ("block", ctypes.c_uint),
        ("thread", ctypes.c_uint),
        ("address", ctypes.c_void_p),
    )

    def text(self, places: list[Place], names: list[str]) -> str:
        where = f"block {self.block}, thread {self.thread}"
        if self.signal < 0:
            return f"block {self.block}: threads wait at different barriers"
        if self.signal == signal.SIGILL:
            return f"{where}: an index is beyond an array of known size"
        found = nearest(places, self.address or 0)
        if found is None:
            return f"{where}: an access at {self.address or 0:#x}, which is no argument"
        return f"{where}: an access {found[1]} of {names[found[0]]}"


@functools.cache
def library(source: str, macros: Macros) -> ctypes.CDLL:
    """Compile a source file for one specialisation."""
    text = source_text(source, macros, preamble="").replace(_DYNAMIC, _DYNAMIC_OF_HOST) + "".join(
        f'extern "C" void host_{name}(unsigned grid, unsigned block, void **arguments, double *shared, '
        "Bytes bytes, Fault *why) "
        f"{{ host_launch<{name}>(grid, block, arguments, shared, bytes, why); }}\n"
        for name in kernel_names(source)
    )
    assert "extern __shared__" not in text, f"{source}: declare dynamic shared memory as {_DYNAMIC}"
    _load_runtime()
    target = _folder() / f"{hashlib.sha256(text.encode()).hexdigest()[:24]}.so"
    if not target.exists():
        path = target.with_suffix(f".{os.getpid()}.cpp")
        path.write_text(text)
        _compile([*WARNINGS, *BARE, "-include", str(HEADER), "-shared", str(path)], target)
        path.unlink()
    return ctypes.CDLL(str(target))


class HostTransfers(Transfers):
    """Copies that are made when they are waited for: what is read before that is spoilt."""

    def __init__(self, outgoing: int, incoming: int) -> None:
        self.outgoing, self.incoming = np.full(outgoing, np.nan), np.full(incoming, np.nan)
        self._elements = np.zeros(0)

    def send(self, elements: Any) -> None:
        self.outgoing.fill(np.nan)
        self._elements = elements.copy()

    def sent(self) -> None:
        self.outgoing[...] = self._elements
        self.incoming.fill(np.nan)

    def receive(self, elements: Any) -> None:
        elements[...] = self.incoming


class HostWindow(Window):
    """Memory that stands where it is; what nobody has written is spoilt."""

    def __init__(self, words: int, elements: int) -> None:
        self.words, self.room = np.zeros(words, np.int64), np.full(elements, np.nan)
        self.handle = np.array([self.words.ctypes.data, self.room.ctypes.data], np.int64).tobytes()
        self.is_open = True

    def close(self) -> None:
        assert self.is_open
        self.is_open = False


class OpenHostWindow(OpenWindow):
    """The addresses of a window of the same process."""

    def __init__(self, handle: bytes) -> None:
        self.words, self.room = np.frombuffer(handle, np.int64).tolist()
        self.is_open = True

    def close(self) -> None:
        assert self.is_open
        self.is_open = False


class HostSideStream(SideStream):
    """Work beside other work is done at once."""

    def begin(self) -> None:
        pass

    def __init__(self) -> None:
        pass

    def __enter__(self) -> SideStream:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def join(self) -> None:
        pass


class HostDevice:
    """NumPy arrays and kernels on the host."""

    xp: Any = np
    name = "host"

    def __init__(self, free: int = 1 << 40) -> None:
        self.free = free
        self.launches: list[str] = []
        self._calls: Counter[tuple[str, str, Macros]] = Counter()

    def kernel(self, source: str, name: str, macros: Macros) -> Kernel:
        def launch(
            grid: tuple[int, ...], block: tuple[int, ...], arguments: tuple[Any, ...], shared_mem: int = 0
        ) -> None:
            self.launches.append(name)
            self._calls[source, name, macros] += 1
            assert shared_mem <= 48 * 1024
            assert 0 < grid[0] < 2**31
            assert 0 < block[0] <= 1024
            arrays = [a for a in arguments if isinstance(a, np.ndarray)]
            for array in arrays:
                assert array.flags.c_contiguous
            # The first launch finds what reads beyond an end, the second what reads before a begin.
            at_end = self._calls[source, name, macros] % 2 == 1
            with guarded_copies(arrays, shared_mem, at_end) as (places, shared):
                addresses = iter(places)
                values: list[Any] = []
                for argument in arguments:
                    if isinstance(argument, np.ndarray):
                        values.append(ctypes.c_uint64(next(addresses).address))
                    else:
                        assert isinstance(argument, np.generic), f"untyped scalar {argument!r}"
                        values.append((ctypes.c_byte * argument.nbytes).from_buffer_copy(argument.tobytes()))
                pointers = (ctypes.c_void_p * len(values))(*[ctypes.addressof(v) for v in values])
                fault = Fault()
                getattr(library(source, macros), f"host_{name}")(
                    ctypes.c_uint(grid[0]),
                    ctypes.c_uint(block[0]),
                    pointers,
                    ctypes.c_void_p(shared.address),
                    ctypes.c_size_t(shared_mem),
                    ctypes.byref(fault),
                )
                if fault.signal:
                    names = [
                        f"argument {i} ({a.dtype}, shape {a.shape})"
                        for i, a in enumerate(arguments)
                        if isinstance(a, np.ndarray)
                    ]
                    why = fault.text([*places, shared], [*names, "shared memory"])
                    raise AssertionError(f"kernel {name} of {source}: {why}")

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

    def transfers(self, outgoing: int, incoming: int) -> HostTransfers:
        return HostTransfers(outgoing, incoming)

    def card_identity(self) -> bytes:
        return b""

    def side_stream(self) -> HostSideStream:
        return HostSideStream()

    def window(self, words: int, elements: int) -> HostWindow:
        return HostWindow(words, elements)

    def open_window(self, handle: bytes) -> OpenHostWindow:
        return OpenHostWindow(handle)
