"""NumPy's interface for other memory ([NEP 49]): functions of C in the place of ``malloc`` and ``free``.

They hold for the thread that sets them, until it leaves the block; every array keeps those that it was made
with.

[NEP 49]: https://numpy.org/neps/nep-0049.html
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_SET = 304
"""Place in NumPy's table of functions for extensions; places never change (NumPy 1.22 and later)."""

_CAPSULE = b"mem_handler"
_VERSION = 1


class _Functions(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("context", "malloc", "calloc", "realloc", "free")]


class _Handler(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char * 127), ("version", ctypes.c_uint8), ("functions", _Functions)]


class NumPyMemory:
    """Functions that NumPy makes arrays with.

    Parameters
    ----------
    name : str
        That NumPy tells of arrays made with them; ASCII, at most 126 characters.
    context : int
        Address that they are called with.
    malloc, calloc, realloc, free : int
        Their addresses.

    Notes
    -----
    The object has to outlive all arrays that are made with it, and what stands at `context` too.

    Attributes
    ----------
    capsule : object
        Which every such array refers to.
    """

    def __init__(self, name: str, context: int, malloc: int, calloc: int, realloc: int, free: int) -> None:
        self.name = name
        self._handler = _Handler(name.encode(), _VERSION, _Functions(context, malloc, calloc, realloc, free))
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        self.capsule: Any = new(ctypes.addressof(self._handler), _CAPSULE, None)

    @contextmanager
    def used(self) -> Iterator[None]:
        """Have NumPy make all arrays of this thread so while the block lasts.

        Raises
        ------
        RuntimeError
            NumPy does not take it.
        """
        module = _extension()
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
        table = ctypes.cast(pointer(module._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
        change = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(table[_SET])
        before = change(self.capsule)
        try:
            if module.get_handler_name() != self.name:
                raise RuntimeError("this version of NumPy takes no other memory")
            yield
        finally:
            change(before)


def _extension() -> Any:
    """Return NumPy's module in C, whose name is another one before NumPy 2."""
    try:
        return importlib.import_module("numpy._core._multiarray_umath")
    except ModuleNotFoundError:
        return importlib.import_module("numpy.core._multiarray_umath")
