"""Versions of what is installed and works, for reports of faults; imports dd alone."""

from __future__ import annotations

import ctypes
import json
import os
import platform
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution, version

from hybrid.base.installing import installed_version, package_folder
from mtbdd.base.errors import PackageError
from mtbdd.diagrams.manager import VARIABLE, diagram_package

_CUPY = ("cupy-cuda13x", "cupy-cuda12x", "cupy-cuda11x", "cupy")
_MISSING = "not installed"


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
    return {
        "hybrid": f"{installed_version()} ({package_folder()})",
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
        return _MISSING


def _dd() -> str:
    """Return the version of dd, that of CUDD where dd came with it, and what the environment chooses."""
    found = _version("dd")
    if found == _MISSING:
        return found
    try:
        diagram_package("cudd")
    except PackageError:
        found += " without CUDD: diagrams are those of dd.autoref"
    else:
        found += f" with CUDD {import_module('dd.cudd').__version__}"
    asked = os.environ.get(VARIABLE)
    return f"{found} ({VARIABLE}={asked})" if asked else found


def _cupy() -> str:
    for name in _CUPY:
        try:
            return f"{distribution(name).version} ({name})"
        except PackageNotFoundError:
            continue
    return f"{_MISSING}; it comes with the extra 'gpu'"


def _device() -> str:
    """Return the names of the devices, or the driver's reason why there is none."""
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
