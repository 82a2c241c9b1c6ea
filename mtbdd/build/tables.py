"""Tables of an expression's values over the grid of its variables, and the sets of their true entries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbdd.diagrams.encoding import EncodedVariable, Encoding, spell, union_of_codes
from mtbdd.diagrams.manager import Manager, Node
from mtbdd.diagrams.nodes import distinct_pairs, nodes_of_pairs
from mtbdd.language.enclosing import Enclosed, enclose
from mtbdd.language.syntax import Expression, Literal, Name
from mtbdd.language.walk import walk

_AT_ONCE = 1 << 26  # entries of all an expression's parts held at a time, with their errors: 1 GiB
_FEWEST = 1 << 10
_WORD_BITS = 6

Bools = NDArray[np.bool_]


def operators(expression: Expression) -> int:
    """Return the number of distinct operators and calls in an expression, at least 1."""
    return max(1, sum(not isinstance(node, (Literal, Name)) for node in walk(expression)))


def tabulate(
    encoding: Encoding, e: Expression, variables: Sequence[EncodedVariable]
) -> tuple[Enclosed, Bools]:
    """Return an expression's values on the grid of some variables, and where all of these are in range.

    `e`: over these variables. `variables`: in the order of their bits. Returns `found`: of shape (2 **
    bits,), in lexicographic order of the bits. `mask`: ndarray of bool, shape (2 ** bits,). A long expression
    is worked out for parts of the grid, so that not all of its parts' tables are held at once. Time:
    O(operators × entries).
    """
    shape = tuple(1 << len(v.bits) for v in variables)
    grid = encoding.grid([v.name for v in variables])
    mask = encoding.inside(variables)
    share = max(_FEWEST, _AT_ONCE // operators(e))
    if share >= mask.size:
        return _flat(enclose(e, grid, shape, mask)), mask.reshape(-1)
    # Cut along the axes from the first on, until a part is small enough.
    found, done = [], 0
    for part in _parts(grid, list(grid), shape, share):
        own = np.broadcast_shapes(*(axis.shape for axis in part.values()))
        size = int(np.prod(own, dtype=np.int64))
        inside = mask.reshape(-1)[done : done + size].reshape(own)
        found.append(_flat(enclose(e, part, own, inside)))
        done += size
    return _joined(found), mask.reshape(-1)


def _joined(parts: Sequence[Enclosed]) -> Enclosed:
    """Return parts of a table as one."""
    values = np.concatenate([part.values for part in parts])
    if all(part.error is None for part in parts):
        return Enclosed(values, None)
    errors = [np.zeros(part.values.size) if part.error is None else part.error for part in parts]
    return Enclosed(values, np.concatenate(errors))


def _parts(
    grid: dict[str, Any], names: Sequence[str], shape: tuple[int, ...], share: int
) -> list[dict[str, Any]]:
    """Return grids of about `share` entries each that make up a grid, in its order."""
    name, *others = names
    below = int(np.prod(shape[1:], dtype=np.int64))
    width = max(1, share // max(1, below))
    axis = grid[name].ndim - len(names)
    parts = []
    for begin in range(0, shape[0], width):
        cut = [slice(None)] * grid[name].ndim
        cut[axis] = slice(begin, begin + width)
        part = {**grid, name: grid[name][tuple(cut)]}
        parts += _parts(part, others, shape[1:], share) if others and below > share else [part]
    return parts


def _flat(found: Enclosed) -> Enclosed:
    """Return values as one row in lexicographic order."""
    error = None if found.error is None else np.ascontiguousarray(found.error).reshape(-1)
    return Enclosed(np.ascontiguousarray(found.values).reshape(-1), error)


def tabulated_assignment(
    encoding: Encoding, variable: EncodedVariable, e: Expression, sources: Sequence[EncodedVariable]
) -> tuple[Node, Node]:
    """Return the relation "variable' = e" and the states where the value is out of range, from e's table.

    `sources`: those of the expression, in the order of their bits.
    """
    found, mask = tabulate(encoding, e, sources)
    return relation_from_table(encoding, variable, found.values, mask, sources)


def relation_from_table(
    encoding: Encoding,
    variable: EncodedVariable,
    table: NDArray[Any],
    mask: Bools,
    sources: Sequence[EncodedVariable],
) -> tuple[Node, Node]:
    """Return the relation "variable' = value" and the states where the value is out of range.

    `table`, `mask` (ndarray, shape (2 ** bits,)): values in lexicographic order of the bits of some
    variables, and where they count. `sources`: these variables, in the order of their bits.
    """
    manager = encoding.manager
    inside = (variable.low <= table) & (table <= variable.high)
    spelled = [encoding.row_names(v) for v in sources]
    shape = tuple(1 << len(bits) for bits in spelled)
    stored = [axis.reshape(-1) for axis in np.indices(shape, dtype=np.int64)]
    rows = [name for bits in spelled for name in bits]
    columns = encoding.column_names(variable)
    order = sorted([*rows, *columns], key=manager.bdd.level_of_var)
    kept = np.flatnonzero(mask & inside)
    target = (table[kept] - variable.low).astype(np.int64)
    numbers = [(values[kept], bits) for values, bits in zip(stored, spelled, strict=True)]
    moves = union_of_codes(manager, order, spell([*numbers, (target, columns)], order))
    astray = np.flatnonzero(mask & ~inside)
    if astray.size == 0:
        return moves, manager.false
    codes = spell([(values[astray], bits) for values, bits in zip(stored, spelled, strict=True)], rows)
    return moves, union_of_codes(manager, rows, codes)


def set_from_table(manager: Manager, names: Sequence[str], table: Bools) -> Node:
    """Return the set of the assignments where a table is true.

    `names`: variables, from top to bottom of the order. `table` (ndarray of bool, shape (2 ** len(names),)):
    in lexicographic order of the assignments. Time: O(2^k / 64) for k names in numpy, and one package call a
    distinct part of the table.
    """
    bits = min(_WORD_BITS, len(names))
    weights = np.uint64(1) << np.arange(1 << bits, dtype=np.uint64)
    if bits == _WORD_BITS:
        words = np.packbits(table, bitorder="little").view("<u8").astype(np.uint64)
    else:
        words = np.array([np.sum(weights[table], dtype=np.uint64)], dtype=np.uint64)
    distinct, current = np.unique(words, return_inverse=True)
    current = current.reshape(-1).astype(np.int64)
    known: dict[tuple[int, int], Node] = {}
    below = [_word(manager, names[len(names) - bits :], int(w), known) for w in distinct]
    for name in reversed(names[: len(names) - bits]):
        width = len(below)
        keys, current = distinct_pairs(current[::2] * width + current[1::2], width)
        below = nodes_of_pairs(manager, name, below, keys // width, keys % width)
    return below[int(current[0])]


def _word(manager: Manager, names: Sequence[str], word: int, known: dict[tuple[int, int], Node]) -> Node:
    """Return the set of a table whose entries are the bits of a number, the first one lowest."""
    size = 1 << len(names)
    if word == 0:
        return manager.false
    if word == (1 << size) - 1:
        return manager.true
    key = (len(names), word)
    if key not in known:
        half = size // 2
        low, high = word & ((1 << half) - 1), word >> half
        below = [_word(manager, names[1:], part, known) for part in (low, high)]
        known[key] = manager.bdd.ite(manager.bdd.var(names[0]), below[1], below[0])
    return known[key]
