"""Public names of a package that are imported when they are first used (PEP 562)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from importlib import import_module

# What `typing` has by this name takes long to import.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any


def lazy_names(
    package: str,
    homes: Mapping[str, str],
    parts: Collection[str] = (),
    gone: Mapping[str, str] | None = None,
) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package.

    Parameters
    ----------
    package : str
        Its ``__name__``.
    homes : mapping of str to str
        For every public name its module, without the package before it.
    parts : collection of str
        Subpackages that are attributes without an import of their own.
    gone : mapping of str to str, optional
        For names of the release before, what to use in their place; asked for, they raise ImportError, for
        ``from ... import`` would not show the message of an AttributeError.
    """

    def imported(name: str) -> Any:
        if name in parts:
            return import_module(f"{package}.{name}")
        if gone is not None and name in gone:
            raise ImportError(f"{package}.{name} was taken out: {gone[name]}", name=package)
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{homes[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return imported
