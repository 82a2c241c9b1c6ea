"""The level of a matrix or of layers; where bytes count, they are those of levels that were built."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hybrid.base.errors import OptionError
from hybrid.base.units import bytes_text, seconds_text
from hybrid.matrix.backends.base import Backend, MatrixTable, Product
from hybrid.matrix.levels.policy import LevelChoice, choose_level, rank_by_time
from hybrid.matrix.levels.table import LevelTable
from hybrid.matrix.levels.weighing import Weighed, weigh
from mtbdd.offset.offset import OffsetMTBDD

Part = tuple[OffsetMTBDD, MatrixTable]
"""A matrix and its levels."""

_MOST_BUILT = 8
"""Levels that are built, those of least predicted time first, before the level of least memory is sought."""


@dataclass(frozen=True)
class Holding:
    """A level as a backend holds it.

    Attributes
    ----------
    products : tuple of Product
        The representation of every part, ready to multiply.
    """

    products: tuple[Product, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of all parts."""
        return sum(product.nbytes for product in self.products)


def weigh_parts(parts: Sequence[Part], table: LevelTable, backend: Backend) -> Weighed[Holding]:
    """Build levels of a matrix, or of layers held one by one, and find the level of least memory."""
    return weigh(table.weights(backend.name), lambda level: _hold(parts, backend, level))


def select_level(
    parts: Sequence[Part],
    table: LevelTable,
    policy: str | int,
    backend: Backend,
    memory_budget: int | None = None,
) -> tuple[LevelChoice, Holding | None]:
    """Choose the level of a matrix, or of layers that are held one by one.

    Parameters
    ----------
    parts : sequence of (OffsetMTBDD, MatrixTable)
    table : LevelTable
        The levels of all parts together.
    policy, memory_budget
        See :func:`hybrid.matrix.levels.policy.choose_level`. Where bytes are not known beforehand, levels are
        built for ``min-memory`` and for a budget.
    backend : Backend

    Returns
    -------
    LevelChoice
    Holding or None
        The level chosen, if it was built.

    Raises
    ------
    OptionError
        As :func:`hybrid.matrix.levels.policy.choose_level`.
    """
    if table.knows_bytes(backend.name):
        return choose_level(table, policy, backend.name, memory_budget), None
    choice = choose_level(table, policy, backend.name)
    if policy == "min-memory":
        return _smallest(parts, table, backend, memory_budget)
    if memory_budget is None:
        return choice, None
    least = {weight.level: weight.least_bytes for weight in table.weights(backend.name)}
    if isinstance(policy, int):
        holding = _hold(parts, backend, choice.level)
        if holding.nbytes > memory_budget:
            raise OptionError(
                f"level: level {policy} needs {holding.nbytes} bytes, more than the budget of {memory_budget}"
            )
        return choice, holding
    light = (k for k in least if least[k] <= memory_budget)
    for level in rank_by_time(table, policy, backend.name, light)[:_MOST_BUILT]:
        holding, seconds = _hold(parts, backend, level), table.seconds(level, backend.name)
        if holding.nbytes <= memory_budget:
            assert seconds is not None
            reason = (
                f"level {level} is predicted to be the fastest of those built within {memory_budget} bytes: "
                f"{bytes_text(holding.nbytes)}, {seconds_text(seconds)} a product on the {backend.name} "
                "backend"
            )
            return LevelChoice(level, reason), holding
    return _smallest(parts, table, backend, memory_budget)


def _smallest(
    parts: Sequence[Part], table: LevelTable, backend: Backend, budget: int | None
) -> tuple[LevelChoice, Holding]:
    """Return the level of least memory among those that are built, if it keeps the budget."""
    found = weigh_parts(parts, table, backend)
    assert found.level is not None and found.built is not None
    size, count = found.sizes[found.level], len(found.sizes)
    if budget is not None and size > budget:
        raise OptionError(
            f"memory_budget: no level fits {budget} bytes; of {count} levels built, level {found.level} "
            f"needs least, {size} bytes"
        )
    reason = f"level {found.level} needs the least memory, {bytes_text(size)}, of {count} levels built"
    return LevelChoice(found.level, reason), found.built


def _hold(parts: Sequence[Part], backend: Backend, level: int) -> Holding:
    return Holding(tuple(backend.represent(matrix, table, level) for matrix, table in parts))
