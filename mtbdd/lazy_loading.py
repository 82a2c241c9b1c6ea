"""Public names of a package that are imported when they are first used (PEP 562)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from importlib import import_module

# What `typing` has by this name takes long to import.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any


def lazy_names(package: str, homes: Mapping[str, str], parts: Collection[str] = ()) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package.

    Parameters
    ----------
    package : str
        Its ``__name__``.
    homes : mapping of str to str
        For every public name its module, without the package before it.
    parts : collection of str
        Subpackages that are attributes without an import of their own.
    """

    def imported(name: str) -> Any:
        if name in parts:
            return import_module(f"{package}.{name}")
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{homes[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return imported
