"""The decision diagram manager: one `dd` manager with row, column and terminal-index bits.

Variable order, top to bottom: row bit 0, column bit 0, spare bit 0, row bit 1, ... and, below all of them,
the bits that number the terminals. A real matrix is then one plain BDD whose nodes above the index bits are
exactly the nodes of its MTBDD. Every operation on it runs at the speed of the BDD package. Spare bits stand
for the state in between when relations are composed; no matrix depends on them. Every `dd` variable is named
after its level (``b0``, ``b1``, ...), so that a dump is all numbers.
"""

from __future__ import annotations

import copy
import functools
import logging
import os
import sys
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from mtbdd.base.communicator import ALONE, Communicator, Share
from mtbdd.base.errors import PackageError, option
from mtbdd.base.lazy_loading import deferred
from mtbdd.base.memoised import Recent
from mtbdd.base.records import Record

# Which BDD package holds the diagrams: CUDD through `dd.cudd`, or `dd.autoref`, which is Python alone.
#
# dd has wheels with CUDD for CPython 3.11 to 3.13 on Linux (x86-64). Elsewhere `dd.autoref` takes its place:
# the same answers, slower by far, good for small models. This is the one place where that is chosen.

PACKAGES = ("auto", "cudd", "autoref")
"""Names of packages; "auto" is CUDD where it is installed."""

VARIABLE = "HYBRID_DD_PACKAGE"
"""Environment variable that says what "auto" is."""

_RESERVED_BYTES = 1 << 26
_CACHE_ENTRIES = 1 << 14
"""First sizes of CUDD; it fills a part of the first and all of the second before the first node is made.

The cache grows with the diagrams. With dd's own 2**30 and 2**18 a manager takes 8 ms, most small models less.
"""

_LOOSE_UP_TO = 6_710_886
"""Nodes up to which CUDD rather grows than collects garbage: as many as with dd's own 2**30 bytes."""

_MOST_CACHED = 1 << 22
"""Results that CUDD keeps at most, of 32 bytes each; left alone they take as much memory as the nodes."""

_log = logging.getLogger(__name__)


class DiagramPackage(Record):
    """A package, and what it does at once where others need two steps.

    `name`: {"cudd", "autoref"}. `new_manager`: returns a `dd` manager that keeps the order of its variables.
    `and_exists`: ``(u, v, names)`` to ``exists names: u and v``, without the conjunction. `restrict`: ``(u,
    care)`` to a diagram that equals `u` inside a set.
    """

    name: str
    new_manager: Callable[[], Any]
    and_exists: Callable[..., Any] | None
    restrict: Callable[..., Any] | None


def diagram_package(asked: str = "auto") -> DiagramPackage:
    """Return the package that a name stands for.

    `asked` ({"auto", "cudd", "autoref"}): "auto" is what the environment variable HYBRID_DD_PACKAGE says;
    without it CUDD, or where dd was installed without CUDD `dd.autoref`, which is reported once as a warning
    of the logger ``mtbdd.diagrams.manager``. Raises PackageError: there is no such package, or CUDD is
    requested and not installed.
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
        # Drawings need networkx and other programs, and files and formulas of dd's own the rest.
        with ExitStack() as stack:
            stack.enter_context(deferred("networkx", "MultiDiGraph"))
            for module in ("subprocess", "dd._copy", "dd._parser"):
                stack.enter_context(deferred(module))
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


Node = Any  # a `dd` Function; dd ships no type that both of its back ends share

_RECENT_NODES = 1 << 18
"""Nodes of diagrams that are kept as tables, of 16 to 24 bytes a node, and in the package."""


# `dd` managers in use, and those whose `Manager` is gone.  When the garbage collector takes a cycle that
# holds both nodes and their manager, it may free the manager first, which CUDD's binding reports as an
# error; a manager is therefore let go only after all that referred to it.
_in_use: dict[int, Any] = {}
_retired: deque[Any] = deque()


def _retire(key: int) -> None:
    """Move a manager to the retired ones."""
    _retired.append(_in_use.pop(key))


def _holders(managers: list[Any]) -> list[int]:
    """Return how many references there are to each of some managers, those of this count among them."""
    return [sys.getrefcount(manager) for manager in managers]


_UNUSED = _holders([object()])[0]


def _let_go() -> None:
    """Let go of retired managers to which no node refers; nodes in cyclic garbage outlive theirs."""
    for _ in range(len(_retired)):
        # One by one: the garbage collector retires others meanwhile, and other threads look at them.
        try:
            taken = [_retired.popleft()]
        except IndexError:
            return
        if _holders(taken)[0] > _UNUSED:
            _retired.append(taken.pop())


class Manager:
    """A `dd` manager over `n_bits` interleaved row and column bits.

    Parameters
    ----------
    n_bits : int
        Number of row bits (and of column bits).
    package : {"auto", "cudd", "autoref"}
        Which `dd` back end to use, see `mtbdd.diagrams.manager.diagram_package`.

    Raises
    ------
    PackageError
        There is no such back end, or it is not installed.

    Attributes
    ----------
    tables : Recent of mtbdd.diagrams.nodes.NodeTable
        Diagrams read out of the package a short while ago; see `mtbdd.diagrams.nodes.read_nodes`.
    indices : Recent of mtbdd.offset.states.StateIndex
        Sets numbered a short while ago; see `mtbdd.offset.states.index_states`.

    Notes
    -----
    Counts of live nodes are the package's; reordering is switched off because the
    interleaved order is what the offset-labelled conversion relies on.
    """

    def __init__(self, n_bits: int, package: str = "auto") -> None:
        _let_go()
        chosen = diagram_package(package)
        self.bdd, self._and_exists, self._restrict = chosen.new_manager(), chosen.and_exists, chosen.restrict
        _in_use[id(self)] = self.bdd
        weakref.finalize(self, _retire, id(self)).atexit = False
        self.is_cudd = chosen.name == "cudd"
        self._swap = getattr(self.bdd, "_swap", None)
        self.n_bits = n_bits
        self.rows = tuple(f"b{self.row_level(i)}" for i in range(n_bits))
        self.columns = tuple(f"b{self.column_level(i)}" for i in range(n_bits))
        self.spares = tuple(f"b{3 * i + 2}" for i in range(n_bits))
        self.index: tuple[str, ...] = ()
        if n_bits:
            self.bdd.declare(*(f"b{level}" for level in range(self.index_level)))
        self.false = self.bdd.false
        self.true = self.bdd.true
        self.tables: Recent[Any] = Recent(_RECENT_NODES)
        self.indices: Recent[Any] = Recent(_RECENT_NODES)
        self._over_columns: tuple[Node, Node] | None = None
        self._equal: Node | None = None
        self.share: Share | None = None
        self._whole: Manager | None = None

    # ------------------------------------------------------------------ shares

    def sharing(self, share: Share) -> Manager:
        """Return a manager of the same diagrams that numbers the own members of sets alone.

        It holds this one, so that neither outlives the other.
        """
        found = copy.copy(self)
        found.share, found._whole = share, self.whole
        return found

    @property
    def whole(self) -> Manager:
        """The manager that numbers all members of sets: this one, unless it has a share of the states."""
        return self if self._whole is None else self._whole

    @property
    def communicator(self) -> Communicator:
        """Communicator of this process."""
        return ALONE if self.share is None else self.share.communicator

    # ------------------------------------------------------------------ bits

    @staticmethod
    def row_level(bit: int) -> int:
        """Return the level of a row bit in the manager's order."""
        return 3 * bit

    @staticmethod
    def column_level(bit: int) -> int:
        """Return the level of a column bit in the manager's order."""
        return 3 * bit + 1

    @property
    def index_level(self) -> int:
        """Level of the first terminal-index bit; every row and column bit lies above it."""
        return 3 * self.n_bits

    def index_bits(self, count: int) -> tuple[str, ...]:
        """Return `count` terminal-index bits, declaring missing ones at the bottom of the order."""
        while len(self.index) < count:
            name = f"b{self.index_level + len(self.index)}"
            self.bdd.declare(name)
            self.index += (name,)
        return self.index[:count]

    def cube(self, names: Sequence[str], number: int) -> Node:
        """Return the cube that holds where `names`, most significant first, spell `number`."""
        size = len(names)
        return self.bdd.cube({name: bool(number >> (size - 1 - i) & 1) for i, name in enumerate(names)})

    def cubes(self, names: Sequence[str], count: int) -> list[Node]:
        """Return the cubes of the numbers from 0 up to below `count`, as `cube` does.

        Notes
        -----
        Time: about two package calls a cube, where `cube` takes one for every name.
        """
        found = [self.true]
        for place, name in enumerate(reversed(names)):
            bit = self.bdd.var(name)
            high = min(len(found), max(0, count - (1 << place)))
            found = [~bit & node for node in found] + [bit & node for node in found[:high]]
        return found[:count]

    def at_most(self, names: Sequence[str], number: int) -> Node:
        """Return "the number that `names` spell, most significant first, is at most `number`".

        Time: O(bits).
        """
        node = self.true
        for i, name in enumerate(reversed(names)):
            bit = self.bdd.var(name)
            node = (~bit | node) if number >> i & 1 else (~bit & node)
        return node

    # ------------------------------------------------------------------ operations

    def disjunction(self, nodes: Iterable[Node]) -> Node:
        """Return the disjunction of many nodes, as a balanced tree to keep operands small."""
        queue = list(nodes)
        if not queue:
            return self.false
        while len(queue) > 1:
            paired = [a | b for a, b in zip(queue[::2], queue[1::2], strict=False)]
            if len(queue) % 2:
                paired.append(queue[-1])
            queue = paired
        return queue[0]

    def and_exists(self, u: Node, v: Node, names: Iterable[str]) -> Node:
        """Return `exists names: u and v` without building the conjunction where the package can."""
        if self._and_exists is not None:
            return self._and_exists(u, v, names)
        return self.bdd.exist(list(names), u & v)

    def meet(self, u: Node, v: Node) -> bool:
        """Tell whether two sets have a member in common; one of them at least is over row bits alone.

        A package that can stops at the first member, and makes no diagram of all.
        """
        if self._and_exists is not None:
            return bool(self._and_exists(u, v, self.rows) != self.false)
        return bool(u & v != self.false)

    def simplify(self, u: Node, care: Node) -> Node:
        """Return a diagram, smaller if the package finds one, that equals `u` inside a non-empty set."""
        return self._restrict(u, care) if self._restrict is not None else u

    def exists(self, names: Iterable[str], u: Node) -> Node:
        """Return `exists names: u`."""
        return self.bdd.exist(list(names), u)

    def rename(self, mapping: Mapping[str, str], u: Node) -> Node:
        """Return `u` with variables renamed; none of the new names may occur in `u`."""
        if not mapping:
            return u
        # With CUDD, swapping looks only at the named variables; `let` walks all that are declared.
        return self._swap(u, dict(mapping)) if self._swap is not None else self.bdd.let(dict(mapping), u)

    def to_columns(self, u: Node) -> Node:
        """Return the set `u` over row bits as a set over column bits.

        The last one is remembered: matrices are cut by the same columns, one after the other.
        """
        last = self._over_columns
        if last is None or last[0] != u:
            last = self._over_columns = u, self.rename(dict(zip(self.rows, self.columns, strict=True)), u)
        return last[1]

    def to_rows(self, u: Node) -> Node:
        """Return the set `u` over column bits as a set over row bits."""
        return self.rename(dict(zip(self.columns, self.rows, strict=True)), u)

    def equal_bits(self, bits: Iterable[int]) -> Node:
        """Return the relation "row bit i equals column bit i" for the given bit numbers.  Time: O(bits)."""
        bdd, node = self.bdd, self.true
        for i in sorted(bits, reverse=True):
            x, y = bdd.var(self.rows[i]), bdd.var(self.columns[i])
            node = bdd.ite(x, y & node, ~y & node)
        return node

    def equal_but(self, bits: Iterable[int]) -> Node:
        """Return the relation "row bit i equals column bit i" for all but the given bit numbers.

        Time: O(bits), in the package after the first call.
        """
        if self._equal is None:
            self._equal = self.equal_bits(range(self.n_bits))
        names = [name for i in bits for name in (self.rows[i], self.columns[i])]
        return self.exists(names, self._equal) if names else self._equal

    def size(self, u: Node) -> int:
        """Return the number of BDD nodes of `u`, the terminal included."""
        return int(u.dag_size) if self.is_cudd else len(u)
