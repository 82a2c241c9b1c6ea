"""Which BDD package holds the diagrams: CUDD through `dd.cudd`, or `dd.autoref`, which is Python alone.

dd has wheels with CUDD for CPython 3.11 to 3.13 on Linux (x86-64). Elsewhere `dd.autoref` takes its place:
the same answers, slower by far, good for small models. This is the one place where that is chosen.
"""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mtbdd.base.deferred import deferred
from mtbdd.base.errors import HybridError
from mtbdd.base.wording import option

PACKAGES = ("auto", "cudd", "autoref")
"""Names of packages; "auto" is CUDD where it is installed."""

VARIABLE = "HYBRID_DD_PACKAGE"
"""Environment variable that says what "auto" is."""

_RESERVED_BYTES = 1 << 26
_CACHE_ENTRIES = 1 << 14
"""What CUDD begins with; it fills a part of the first and all of the second before the first node is made.

The cache grows with the diagrams. With dd's own 2**30 and 2**18 a manager takes 8 ms, most small models less.
"""

_LOOSE_UP_TO = 6_710_886
"""Nodes up to which CUDD rather grows than collects garbage: as many as with dd's own 2**30 bytes."""

_MOST_CACHED = 1 << 22
"""Results that CUDD keeps at most, of 32 bytes each; left alone they take as much memory as the nodes."""

_log = logging.getLogger(__name__)


class PackageError(HybridError, ImportError, ValueError):
    """A BDD package that does not exist, or is not installed."""


@dataclass(frozen=True)
class DiagramPackage:
    """A package, and what it does at once where others need two steps.

    Attributes
    ----------
    name : {"cudd", "autoref"}
    new_manager : callable
        Returns a `dd` manager that keeps the order of its variables.
    and_exists : callable or None
        ``(u, v, names)`` to ``exists names: u and v``, without the conjunction.
    restrict : callable or None
        ``(u, care)`` to a diagram that equals `u` inside a set.
    """

    name: str
    new_manager: Callable[[], Any]
    and_exists: Callable[..., Any] | None
    restrict: Callable[..., Any] | None


def diagram_package(asked: str = "auto") -> DiagramPackage:
    """Return the package that a name stands for.

    Parameters
    ----------
    asked : {"auto", "cudd", "autoref"}
        "auto" is what the environment variable HYBRID_DD_PACKAGE says; without it CUDD, or where dd was
        installed without CUDD `dd.autoref`, which is told once as a warning of the logger
        ``mtbdd.diagrams.package``.

    Raises
    ------
    PackageError
        There is no such package, or CUDD is asked for and not installed.
    """
    wanted, told_by = asked, "package"
    if asked == "auto":
        wanted, told_by = os.environ.get(VARIABLE) or "auto", VARIABLE
    if wanted not in PACKAGES:
        raise PackageError(f"{told_by}: expected one of {', '.join(PACKAGES)}, got {wanted!r}")
    if wanted == "autoref":
        return _autoref()
    found = _cudd()
    if found is not None:
        return found
    if wanted == "cudd":
        raise PackageError(
            f"{told_by}: 'cudd' is asked for, and dd was installed without CUDD: install a wheel of dd that "
            "has it (CPython 3.11 to 3.13 on Linux, x86-64), or choose autoref, which is slower"
        )
    _tell_slow()
    return _autoref()


@functools.cache
def _cudd() -> DiagramPackage | None:
    try:
        # Only dd's drawings need networkx, which takes long to import.
        with deferred("networkx", "MultiDiGraph"):
            import dd.cudd as cudd
    except ImportError:
        return None

    def new_manager() -> Any:
        bdd = cudd.BDD(memory_estimate=_RESERVED_BYTES, initial_cache_size=_CACHE_ENTRIES)
        bdd.configure(loose_up_to=_LOOSE_UP_TO, max_cache_hard=_MOST_CACHED)
        return _in_order(bdd)

    return DiagramPackage("cudd", new_manager, cudd.and_exists, cudd.restrict)


@functools.cache
def _autoref() -> DiagramPackage:
    with deferred("networkx", "MultiDiGraph"):
        import dd.autoref as autoref
    return DiagramPackage("autoref", lambda: _in_order(autoref.BDD()), None, None)


def _in_order(bdd: Any) -> Any:
    """Return a manager that keeps the order of its variables."""
    bdd.configure(reordering=False)
    return bdd


@functools.cache
def _tell_slow() -> None:
    """Say, once a process, that diagrams are slow here."""
    _log.warning(
        "dd was installed without CUDD, so that decision diagrams are made in Python: the same answers, "
        "slower by far; for more than small models install a wheel of dd that has it (CPython 3.11 to 3.13 "
        "on Linux, x86-64). %s, or %s=autoref, says that this is meant",
        option("package", "autoref"),
        VARIABLE,
    )
