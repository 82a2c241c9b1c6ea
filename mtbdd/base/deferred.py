"""Imports of other people's packages without modules that they load and that are seldom used here.

dd imports networkx, where it is installed, for one function that draws; Numba imports SciPy's linear algebra
to learn whether it is there. Both take a tenth of a second, which every start would pay.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType


class _Deferred(ModuleType):
    """A module that is imported when something of it is first looked up."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r} yet")
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), name)


@contextmanager
def deferred(module: str, *names: str) -> Iterator[None]:
    """Put off the import of a module that other modules, imported in this block, import.

    Parameters
    ----------
    module : str
        Taken as it is where it is imported already, or not installed.
    *names : str
        What the others look up in it as they are imported, and only name: types of annotations.

    Notes
    -----
    Whoever has the module from within the block gets the real one with the first name that is looked up;
    after the block the module is imported as ever.
    """
    package = module.partition(".")[0]
    if module in sys.modules or importlib.util.find_spec(package) is None:
        yield
        return
    stand_in = _Deferred(module)
    for name in names:
        setattr(stand_in, name, type(name, (), {}))
    sys.modules[module] = stand_in
    try:
        yield
    finally:
        for name in names:
            delattr(stand_in, name)
        if sys.modules.get(module) is stand_in:
            del sys.modules[module]
