"""Imports put off: public names of a package until they are used (PEP 562), modules seldom needed."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType

# `typing.TYPE_CHECKING` without importing `typing`, which takes long.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any


# Imports of other people's packages without modules that they load and that are seldom used here.
#
# dd imports networkx, where it is installed, for one function that draws, and parsers for formulas and files
# of its own; Numba imports SciPy's linear algebra to learn whether it is there; NumPy adds texts to functions
# that help prints, and has types for annotations. Every start would pay for them.


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

    `module`: taken as it is where it is imported already, or not installed. `*names`: what the others look up
    in it as they are imported, and only name: types of annotations. Modules imported in the block get the
    real one with the first name that is looked up; after the block the module is imported as ever.
    """
    package = module.partition(".")[0]
    if module in sys.modules or importlib.util.find_spec(package) is None:
        yield
        return
    stand_in = _stand_in(module, names)
    sys.modules[module] = stand_in
    try:
        yield
    finally:
        for name in names:
            delattr(stand_in, name)
        if sys.modules.get(module) is stand_in:
            del sys.modules[module]


def _stand_in(module: str, names: Collection[str]) -> _Deferred:
    """Return a module that is imported later, with types that annotations name."""
    made = _Deferred(module)
    for name in names:
        setattr(made, name, type(name, (), {"__class_getitem__": classmethod(lambda cls, item: cls)}))
    return made


def import_numpy_alone() -> None:
    """Import NumPy for a process that has no use for what describes it: texts for help, types of arguments.

    In that process `numpy.typing` has but names for annotations, until something else of it is looked up.
    """
    if "numpy" in sys.modules or importlib.util.find_spec("numpy") is None:
        return
    parts = ("typing", "_typing")
    for part in parts:
        module = f"numpy.{part}"
        sys.modules[module] = _stand_in(module, ("ArrayLike", "DTypeLike", "NDArray"))
    with deferred("numpy._core._add_newdocs"), deferred("numpy._core._add_newdocs_scalars"):
        numpy = importlib.import_module("numpy")
    for part in parts:
        setattr(numpy, part, sys.modules[f"numpy.{part}"])


_WHOLE = ("mtbdd.", "hybrid.")
"""Prefixes of names of modules that include the package."""


def lazy_names(
    package: str,
    homes: Mapping[str, Collection[str]],
    parts: Collection[str] | Mapping[str, str] = (),
    gone: Mapping[str, str] | None = None,
) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package.

    Parameters
    ----------
    package : str
        Its ``__name__``.
    homes : mapping of str to collection of str
        For every module its public names; a module of `mtbdd` or `hybrid` by its whole name, or one of the
        package without the package before it.
    parts : collection of str, or mapping of str to str
        Subpackages that are attributes without an import of their own; a mapping names where each lies within
        the package.
    gone : mapping of str to str, optional
        For names of the release before, what to use in their place; requested, they raise ImportError, for
        ``from ... import`` would not show the message of an AttributeError.
    """
    home_of = {name: home for home, names in homes.items() for name in names}
    places = parts if isinstance(parts, Mapping) else {name: name for name in parts}

    def imported(name: str) -> Any:
        if name in places:
            return import_module(f"{package}.{places[name]}")
        if gone is not None and name in gone:
            raise ImportError(f"{package}.{name} was taken out: {gone[name]}", name=package)
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = home_of[name]
        value = getattr(import_module(home if home.startswith(_WHOLE) else f"{package}.{home}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return imported


class MovedModules:
    """Finds modules by the names that they had before, for one release, and warns of the new ones.

    Parameters
    ----------
    moved : mapping of str to str
        For every package that has moved its new name; modules within it move along.
    """

    def __init__(self, moved: Mapping[str, str]) -> None:
        self._moved = dict(moved)
        self._packages = {old.partition(".")[0] for old in moved}

    def find_spec(self, name: str, path: object = None, target: object = None) -> Any:
        """Return how a module is loaded that has another name now; None for all others."""
        parts = name.split(".")
        if parts[0] not in self._packages:
            return None
        for k in range(len(parts), 1, -1):
            old = ".".join(parts[:k])
            if old in self._moved:
                from importlib.util import spec_from_loader

                loader: Any = _MovedModule(".".join((self._moved[old], *parts[k:])))
                return spec_from_loader(name, loader)
        return None


class _MovedModule:
    """Loads a module by its new name, and has the old one mean the same module."""

    def __init__(self, name: str) -> None:
        self._name = name

    def create_module(self, spec: Any) -> Any:
        """Return the module itself, with a warning that names it."""
        from warnings import warn

        module = import_module(self._name)
        self._kept = module.__spec__
        warn(
            f"{spec.name} is {self._name} now; the old name goes with the next release",
            FutureWarning,
            stacklevel=2,
        )
        return module

    def exec_module(self, module: Any) -> None:
        """Leave the module as it is: it has been run."""
        module.__spec__ = self._kept
