"""What works here, in which version: for reports of faults, without importing any of it."""

from __future__ import annotations

import ctypes
import json
import platform
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, distribution, version
from importlib.util import find_spec
from pathlib import Path

_CUPY = ("cupy-cuda13x", "cupy-cuda12x", "cupy-cuda11x", "cupy")


def print_versions(as_json: bool) -> int:
    """Print the versions, a line each, or one JSON object; return the exit status."""
    found = versions()
    if as_json:
        print(json.dumps(found))
    else:
        print("\n".join(f"{name:<8} {text}" for name, text in found.items()))
    return 0


def versions() -> dict[str, str]:
    """Return what works here, by name: versions, or why something is not there."""
    import hybrid
    from hybrid import __version__

    return {
        "hybrid": f"{__version__} ({Path(hybrid.__file__).parent})",
        "python": f"{platform.python_version()} ({platform.python_implementation()}, {sys.platform} "
        f"{platform.machine()})",
        "dd": _dd(),
        "numpy": _version("numpy"),
        "scipy": _version("scipy"),
        "numba": _version("numba"),
        "cupy": _cupy(),
        "device": _device(),
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _dd() -> str:
    """Return the version of dd, and whether it came with CUDD; looks at its files alone."""
    found = _version("dd")
    spec = find_spec("dd")
    if spec is None or not spec.submodule_search_locations:
        return found
    has_cudd = any(
        path.suffix in (".so", ".pyd")
        for folder in spec.submodule_search_locations
        for path in Path(folder).glob("cudd.*")
    )
    return f"{found} with CUDD" if has_cudd else f"{found} without CUDD: diagrams are those of dd.autoref"


def _cupy() -> str:
    for name in _CUPY:
        try:
            return f"{distribution(name).version} ({name})"
        except PackageNotFoundError:
            continue
    return "not installed; it comes with the extra 'gpu'"


def _device() -> str:
    """Return the names of the devices, or why there is none, as the driver tells it."""
    library = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    try:
        driver = ctypes.CDLL(library)
    except OSError:
        return f"none: no NVIDIA driver ({library} is not found)"
    status = driver.cuInit(0)
    if status:
        return f"none: the NVIDIA driver does not start (error {status} of cuInit)"
    count = ctypes.c_int()
    status = driver.cuDeviceGetCount(ctypes.byref(count))
    if status or not count.value:
        return "none: the NVIDIA driver finds no device"
    names = [_name(driver.cuDeviceGetName, number) for number in range(count.value)]
    number = ctypes.c_int()
    if not driver.cuDriverGetVersion(ctypes.byref(number)):
        names.append(f"driver for CUDA {number.value // 1000}.{number.value % 1000 // 10}")
    return ", ".join(names)


def _name(ask: Callable[..., int], number: int) -> str:
    text = ctypes.create_string_buffer(256)
    return "unnamed" if ask(text, 256, number) else text.value.decode(errors="replace")
