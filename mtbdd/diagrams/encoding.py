"""State variables as bits: blocks of row and column bits, in model order.

A variable with values low..high takes ceil(log2(high - low + 1)) bits, most significant first, and is stored
as its distance from `low`. Variables follow each other in model order (globals, then the modules'), row and
column bits interleaved. PRISM orders them so by default, so that node counts can be compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mtbdd.base.records import Record
from mtbdd.diagrams.manager import Manager, Node
from mtbdd.diagrams.nodes import distinct_pairs, nodes_of_pairs
from mtbdd.language.syntax import ResolvedVariable

# Sets given by their members: from a list of codes to a decision diagram.

Int64Array = NDArray[np.int64]


def spell(numbers: Sequence[tuple[Int64Array, Sequence[str]]], names: Sequence[str]) -> Int64Array:
    """Return codes over `names` in which several numbers are spelled by their own bits.

    `numbers`: numbers, shape (n,), and the bits that spell them, most significant first. `names`: all bits of
    the code, most significant first; at most 62. Returns ndarray of int64, shape (n,).
    """
    place = {name: len(names) - 1 - i for i, name in enumerate(names)}
    codes = np.zeros(len(numbers[0][0]) if numbers else 1, dtype=np.int64)
    for values, bits in numbers:
        for position, name in enumerate(reversed(bits)):
            codes |= (values >> position & 1) << place[name]
    return codes


def union_of_codes(manager: Manager, names: Sequence[str], codes: Int64Array) -> Node:
    """Return the set of the assignments that some codes spell.

    `names`: variables from top to bottom of the order; the first is the codes' most significant bit. `codes`
    (ndarray of int64, shape (n,)): repetitions allowed. Time: one sort of the codes, then O(n) in numpy for
    every name (a sort where many subsets are distinct), then one package call a distinct subset.
    """
    if codes.size == 0:
        return manager.false
    codes = np.sort(codes)  # several times faster than `np.unique`, which hashes first
    codes = codes[_changes(codes)]
    below, ids = [manager.false, manager.true], np.ones(codes.size, dtype=np.int64)
    for name in reversed(names):
        prefix = codes >> 1
        first = _changes(prefix)
        width = len(below)
        # A pair of children is one key; both children of a prefix, where there are two, are neighbours.
        parts = np.where(codes & 1, ids, ids * width)
        keys = parts[first]
        second = np.flatnonzero(~first)
        keys[np.cumsum(first)[second] - 1] += parts[second]
        distinct, ids = distinct_pairs(keys, width)
        below = nodes_of_pairs(manager, name, below, distinct // width, distinct % width)
        codes = prefix[first]
    return below[int(ids[0])]


def _changes(values: Int64Array) -> NDArray[np.bool_]:
    """Return where a value differs from the one before."""
    first = np.ones(values.size, dtype=np.bool_)
    np.not_equal(values[1:], values[:-1], out=first[1:])
    return first


class EncodedVariable(Record):
    """One state variable and the bits that hold it."""

    name: str
    low: int
    high: int
    is_bool: bool
    bits: tuple[int, ...]  # numbers of its row (and column) bits, most significant first

    @property
    def size(self) -> int:
        """Number of values."""
        return self.high - self.low + 1

    def decode(self, number: int) -> bool | int:
        """Return the value stored as `number`."""
        return bool(number) if self.is_bool else self.low + number


class Encoding:
    """The bits of all state variables over one manager.

    Parameters
    ----------
    variables : sequence of ResolvedVariable
        In model order.
    package : str
        `dd` back end, see `Manager`.
    names : sequence of str, optional
        The variables as users see them, in the order of the text; the order of the bits if left out.

    Attributes
    ----------
    variables, shown : tuple of EncodedVariable
        In the order of their bits, and in that of the text.
    """

    def __init__(
        self, variables: Sequence[ResolvedVariable], package: str = "auto", names: Sequence[str] | None = None
    ) -> None:
        encoded, start = [], 0
        for v in variables:
            width = (v.high - v.low).bit_length()
            encoded.append(
                EncodedVariable(v.name, v.low, v.high, v.is_bool, tuple(range(start, start + width)))
            )
            start += width
        self.variables = tuple(encoded)
        self.by_name: Mapping[str, EncodedVariable] = {v.name: v for v in encoded}
        self.shown = self.variables if names is None else tuple(self.by_name[name] for name in names)
        self.manager = Manager(start, package)

    @property
    def n_bits(self) -> int:
        """Number of row bits."""
        return self.manager.n_bits

    def row_names(self, variable: EncodedVariable) -> list[str]:
        """Return the names of a variable's row bits."""
        return [self.manager.rows[i] for i in variable.bits]

    def column_names(self, variable: EncodedVariable) -> list[str]:
        """Return the names of a variable's column bits."""
        return [self.manager.columns[i] for i in variable.bits]

    def bits_of(self, names: Iterable[str]) -> list[int]:
        """Return the bit numbers of several variables, ascending."""
        return sorted(bit for name in names for bit in self.by_name[name].bits)

    def column_value(self, variable: EncodedVariable, value: int) -> Node:
        """Return the cube "variable' = value" over column bits."""
        return self.manager.cube(self.column_names(variable), value - variable.low)

    @cached_property
    def valid(self) -> Node:
        """The assignments of row bits that stand for values inside every variable's range."""
        node = self.manager.true
        for v in reversed(self.variables):
            if v.size < 1 << len(v.bits):
                node = node & self.at_most(v, v.high - v.low)
        return node

    def at_most(self, variable: EncodedVariable, number: int) -> Node:
        """Return "stored number <= number" over row bits.  Time: O(bits)."""
        return self.manager.at_most(self.row_names(variable), number)

    @cached_property
    def counters(self) -> tuple[tuple[int, ...], ...]:
        """The bits of every variable of numbers, most significant first."""
        return tuple(v.bits for v in self.variables if not v.is_bool)

    def state(self, values: Mapping[str, int]) -> Node:
        """Return the row cube of one full assignment of stored values (low included)."""
        assignment: dict[str, bool] = {}
        for v in self.variables:
            number = int(values[v.name]) - v.low
            for position, name in enumerate(reversed(self.row_names(v))):
                assignment[name] = bool(number >> position & 1)
        return self.manager.bdd.cube(assignment) if assignment else self.manager.true

    def decode(self, bits: Sequence[int]) -> dict[str, bool | int]:
        """Return the state that some row bits stand for, by variable name."""
        values: dict[str, bool | int] = {}
        for v in self.shown:
            number = 0
            for bit in v.bits:
                number = 2 * number + int(bits[bit])
            values[v.name] = v.decode(number)
        return values

    def pick(self, states: Node) -> dict[str, bool | int]:
        """Return the first state, in the order of the text, of a non-empty set, by variable name.

        Time: one restriction of the set a bit.
        """
        manager, left = self.manager, states
        values: dict[str, bool | int] = {}
        for v in self.shown:
            number = 0
            for name in self.row_names(v):
                zero = manager.bdd.let({name: False}, left)
                bit = zero == manager.false
                left = manager.bdd.let({name: True}, left) if bit else zero
                number = 2 * number + bit
            values[v.name] = v.decode(number)
        return values

    def grid(self, names: Sequence[str]) -> dict[str, NDArray[np.int64] | NDArray[np.bool_]]:
        """Return broadcastable axes of stored values, padded to powers of two, one axis a variable.

        Values beyond a variable's range repeat its highest one; callers mask them with `inside`.
        """
        axes: dict[str, NDArray[np.int64] | NDArray[np.bool_]] = {}
        for axis, name in enumerate(names):
            v = self.by_name[name]
            values = np.minimum(np.arange(1 << len(v.bits), dtype=np.int64) + v.low, v.high)
            shape = [1] * len(names)
            shape[axis] = values.size
            axes[name] = values.astype(bool).reshape(shape) if v.is_bool else values.reshape(shape)
        return axes

    def inside(self, variables: Sequence[EncodedVariable]) -> NDArray[np.bool_]:
        """Return where the values of a `grid` are in range, of its shape."""
        mask = np.ones((1,) * len(variables), dtype=np.bool_)
        for axis, v in enumerate(variables):
            own = np.arange(1 << len(v.bits)) < v.size
            mask = mask & own.reshape([-1 if i == axis else 1 for i in range(len(variables))])
        return mask
