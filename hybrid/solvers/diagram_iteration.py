"""Optimistic value iteration on vectors that are decision diagrams.

A vector is an MTBDD over the bits of the states, a step one compiled product. Lower iterates rise from 0,
rounded down. A guess a little above becomes an upper bound once a step, rounded up, does not raise it
(Hartmanns and Kaminski, CAV 2020). Many values are merged within the bounds: lower ones down, upper ones up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hybrid.base.errors import UnsupportedError
from hybrid.matrix.space.base import Clock, Criterion, Status
from mtbdd.base.errors import option
from mtbdd.diagrams.node_store import DOWN, UP, Diagram, NodeStore

_MANY_VALUES = 1 << 10
"""Distinct values from which close ones are merged."""

_SPARE_BITS = 10
"""Binary digits of merged values beyond those of epsilon, at first."""

_MORE_BITS = 5
"""More of them where iterations stand still short of a bound."""

_ALL_BITS = 53

_PATIENCE = 8
"""Steps from a guess, at least; else a quarter of those made before."""

_NEARER = 0.1
"""Change of the next guess, in parts of that of one that failed."""

_NODE_BYTES = 16

_SMALL_VECTOR = 1 << 24
"""Bytes of a vector that is never too large for a diagram."""

UNREACHED = 1e308
"""Value of a choice that may not be taken, where the least counts."""

Values = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class DiagramChoice:
    """One choice of every state, of some: ``A x + b``.

    Attributes
    ----------
    matrix : tuple of Diagram
        Probabilities over rows and columns, at most the exact ones and at least them.
    gain : tuple of Diagram or None
        b over rows, likewise; None for 0.
    barred : Diagram or None
        `UNREACHED` in the states that do not have it and may not be without one, else 0.
    """

    matrix: tuple[Diagram, Diagram]
    gain: tuple[Diagram, Diagram] | None = None
    barred: Diagram | None = None


@dataclass(frozen=True, eq=False)
class DiagramSystem:
    """The equations ``x = opt_i (A_i x + b_i) + known``.

    Attributes
    ----------
    choices : sequence of DiagramChoice
        A chain has one.
    maximise : bool
        Which optimum is meant.
    known : Diagram
        Values of states that are known, 0 elsewhere.
    to_columns : dict of int to int
        Level of the column bit by that of the row bit.
    n_states : int
        Of the model: what an array would have to hold.

    Notes
    -----
    The other attributes are those that statistics of an answer take from an operator.
    """

    choices: Sequence[DiagramChoice]
    maximise: bool
    known: Diagram
    to_columns: dict[int, int]
    n_states: int

    backend: ClassVar[str] = "cpu"
    backend_reason: ClassVar[str] = "vectors that are diagrams are on the cpu"
    level: ClassVar[None] = None
    storage: ClassVar[None] = None

    @property
    def nbytes(self) -> int:
        """Bytes of the matrices."""
        parts = (part for choice in self.choices for part in {id(m): m for m in choice.matrix}.values())
        return sum(part.nodes.nbytes + part.values.nbytes for part in parts)

    @property
    def zero(self) -> Diagram:
        """The vector 0."""
        return Diagram.constant(self.known.bottom, 0.0)

    def step(self, x: Diagram, rounding: int) -> Diagram:
        """Return a step from a vector, at most the exact one or at least it.

        Raises MemoryError, and UnsupportedError where the vector takes more than an array would.

        Lemma: diagram-rounding (docs/bounds.md).
        """
        store, place = NodeStore(x.bottom, rounding), int(rounding == UP)  # lemma: diagram-rounding
        columns, columns_of = list(self.to_columns.values()), x.renamed(self.to_columns)
        best: int | None = None
        for choice in self.choices:
            found = store.product(choice.matrix[place], columns_of, columns)
            if choice.gain is not None:
                found = store.sum(found, store.insert(choice.gain[place]))
            if choice.barred is not None:
                found = store.sum(found, store.insert(choice.barred))
            if best is None:
                best = found
            else:
                best = (store.maximum if self.maximise else store.minimum)(best, found)
        known = store.insert(self.known)
        y = store.extract(known if best is None else store.sum(best, known))
        self._refuse_large(y)
        return y

    def image(self, x: Diagram, rounding: int) -> Diagram:
        """Return ``A x`` of a chain, rounded down or up.

        Lemma: diagram-rounding (docs/bounds.md).
        """
        (choice,) = self.choices
        store = NodeStore(x.bottom, rounding)
        columns = list(self.to_columns.values())
        matrix = choice.matrix[int(rounding == UP)]
        y = store.extract(store.product(matrix, x.renamed(self.to_columns), columns))
        self._refuse_large(y)
        return y

    def _refuse_large(self, x: Diagram) -> None:
        """Refuse to go on with a diagram that takes more than an array of all states would."""
        size = _NODE_BYTES * x.n_nodes
        if size > max(8 * self.n_states, _SMALL_VECTOR):
            raise UnsupportedError(
                f"values as a diagram have {x.n_nodes:,} nodes, and an array of {self.n_states:,} states "
                f"takes less memory: choose {option('engine', 'hybrid')}"
            )


@dataclass
class DiagramBounds:
    """Bounds as diagrams that iterations have found; the upper one is None if there is none."""

    lower: Diagram
    upper: Diagram | None = None
    status: Status = Status.MAX_ITERATIONS
    iterations: int = 0
    products: int = 0
    difference: float = math.inf
    seconds: float = 0.0


def _support(x: Diagram) -> Diagram:
    """Return 1 where a vector is positive, and 0 elsewhere."""
    return x.mapped(lambda values: (values > 0).astype(np.float64))


def rounded_sum(a: Diagram, b: Diagram, rounding: int) -> Diagram:
    """Return a sum, rounded down or up.

    Lemma: diagram-rounding (docs/bounds.md).
    """
    store = NodeStore(a.bottom, rounding)
    return store.extract(store.sum(store.insert(a), store.insert(b)))


def _add_to(sums: list[tuple[int, Diagram]], term: Diagram, rounding: int) -> None:
    """Add a term to sums of a power of two of terms each, so that small diagrams are added first."""
    rank = 0
    while sums and sums[-1][0] == rank:
        term = rounded_sum(sums.pop()[1], term, rounding)
        rank += 1
    sums.append((rank, term))


def _total(sums: list[tuple[int, Diagram]], rounding: int) -> Diagram:
    """Return the sum of all terms."""
    total = sums[-1][1]
    for _, part in reversed(sums[:-1]):
        total = rounded_sum(part, total, rounding)
    return total


def rounded_values(x: Diagram, rounding: int, bits: int) -> Diagram:
    """Return values of so many binary digits at most, rounded down or up.

    Lemma: diagram-merging (docs/bounds.md).
    """

    def shortened(values: Values) -> Values:
        mantissa, exponent = np.frexp(values)
        whole = np.ldexp(mantissa, bits)
        # lemma: diagram-merging
        whole = np.floor(whole) if rounding == DOWN else np.ceil(whole)
        found: Values = np.ldexp(whole, exponent - bits)
        return found

    return x.mapped(shortened)


@dataclass
class DiagramIteration:
    """Iterations of one system until bounds are within epsilon.

    Lemmas: from-below, park, diagram-merging (docs/bounds.md).
    """

    system: DiagramSystem
    criterion: Criterion
    clock: Clock
    found: DiagramBounds = field(init=False)
    bits: int = field(init=False)

    def __post_init__(self) -> None:
        """Begin at the known values and 0."""
        self.found = DiagramBounds(self.system.known)
        digits = math.ceil(-math.log2(self.criterion.epsilon)) + _SPARE_BITS
        self.bits = min(digits, _ALL_BITS)

    def run(self) -> DiagramBounds:
        """Return bounds; their status says how it ended."""
        with self.clock.cancellable():
            if len(self.system.choices) == 1 and self._added_up():
                self.found.upper = self._series(UP)[0]
            else:
                self._rise()
            if self.found.upper is not None:
                self._narrow()
        self.found.seconds = self.clock.seconds
        return self.found

    # ------------------------------------------------------------------

    def _added_up(self) -> bool:
        """Begin with the sum of the terms ``A^k b`` from below; return whether these are all there are."""
        self.found.lower, is_whole = self._series(DOWN)
        return is_whole

    def _series(self, rounding: int) -> tuple[Diagram, bool]:
        """Return the sum of the terms ``A^k b`` of a chain, and whether the next one is 0.

        A term is smaller than the vector that steps make. It ends where no path is longer, or where a term is
        positive in the same states as an earlier one: then none is ever 0.

        Lemma: diagram-series (docs/bounds.md).
        """
        found, system = self.found, self.system
        term = system.step(system.zero, rounding)
        sums, seen, power, made = [(0, term)], _support(term), 1, 0
        while True:
            term = system.image(term, rounding)
            made += 1
            found.products += 1
            found.iterations += 1
            if not term.values.any():  # lemma: diagram-series
                return _total(sums, rounding), True
            _add_to(sums, term, rounding)
            support = _support(term)
            if self._spent() or support.equals(seen):
                return _total(sums, rounding), False
            if made == power:
                seen, power = support, 2 * power

    def _step(self, x: Diagram, rounding: int) -> Diagram:
        """Return a step whose close values are merged."""
        y = self.system.step(x, rounding)
        self.found.products += 1
        if y.values.size > _MANY_VALUES and self.bits < _ALL_BITS:
            return rounded_values(y, rounding, self.bits)
        return y

    def _difference(self, below: Diagram, above: Diagram) -> float:
        """Return the greatest distance of two vectors, as the criterion counts it."""
        return distance(self.criterion, *below.leaf_pairs(above))

    def _spent(self) -> bool:
        """Whether iterations are to end; tells progress."""
        found = self.found
        if self.clock.tick(found.iterations, found.difference):
            found.status = Status.INTERRUPTED
            return True
        return found.iterations >= self.criterion.max_iterations

    def _rise(self) -> None:
        """Iterate from below; verify a guess whenever changes have become small enough."""
        found, close = self.found, self.criterion.epsilon
        while not self._spent():
            below = self._step(found.lower, DOWN)
            found.iterations += 1
            found.difference = self._difference(found.lower, below)
            found.lower = below
            still = found.difference == 0.0
            if not still and found.difference > close:
                continue
            found.upper = self._verified(still)  # lemma: park
            if found.upper is not None or found.status is Status.INTERRUPTED:
                return
            if still and self.bits >= _ALL_BITS:
                found.status = Status.NO_BOUND
                return
            if still:
                self.bits = min(self.bits + _MORE_BITS, _ALL_BITS)
            close = min(close, found.difference) * _NEARER if not still else close

    def _verified(self, still: bool) -> Diagram | None:
        """Return an upper bound near the lower one; None where none is found soon.

        Nothing is believed of the guess. It is a bound where a step, rounded up, does not raise it.
        """
        found, lower = self.found, self.found.lower
        guesses = [lower] if still else []
        guesses.append(lower.mapped(self._raised))
        for guess in guesses:
            steps = 1 if guess is lower else max(_PATIENCE, found.iterations // 4)
            for _ in range(steps):
                if self._spent():
                    return None
                above = self._step(guess, UP)
                found.iterations += 1
                before, after = guess.leaf_pairs(above)
                if (after <= before).all():  # lemma: park
                    return above
                old, new = lower.leaf_pairs(above)
                if (after >= before).all() or (new < old).any():
                    break
                guess = above
        return None

    def _raised(self, values: Values) -> Values:
        """Return a guess: values and half of epsilon; what is 0 stays so."""
        share = 0.5 * self.criterion.epsilon
        more = share if self.criterion.absolute else share * values
        return np.where(values > 0, values + more, values)

    def _narrow(self) -> None:
        """Go on with both bounds until they are close enough, or stand still."""
        found = self.found
        while True:
            assert found.upper is not None
            found.difference = self._difference(found.lower, found.upper)
            if found.difference <= self.criterion.epsilon:
                found.status = Status.CONVERGED
                return
            if self._spent():
                return
            below, above = self._step(found.lower, DOWN), self._step(found.upper, UP)
            found.iterations += 1
            still = below.equals(found.lower) and above.equals(found.upper)
            found.lower, found.upper = below, above
            if still and self.bits >= _ALL_BITS:
                found.status = Status.CONVERGED  # what double precision allows for
                return
            if still:
                self.bits = min(self.bits + _MORE_BITS, _ALL_BITS)


def distance(criterion: Criterion, below: Values, above: Values) -> float:
    """Return the greatest distance of pairs of values, relative to the upper ones unless it is absolute."""
    apart = np.abs(above - below)
    if criterion.absolute:
        return float(apart.max())
    sizes = np.maximum(np.abs(above), np.abs(below))
    return float(np.divide(apart, sizes, out=np.zeros_like(apart), where=sizes > 0).max())


def in_steps(
    system: DiagramSystem, start: tuple[Diagram, Diagram], steps: int, clock: Clock
) -> tuple[Diagram, Diagram, int]:
    """Return bounds on a vector after so many steps, and how many products these took.

    Steps that change nothing end it: all later ones change nothing either.

    Lemma: diagram-rounding (docs/bounds.md).
    """
    bounds, products = list(start), 0
    for place, rounding in enumerate((DOWN, UP)):
        for made in range(steps):
            after = system.step(bounds[place], rounding)  # lemma: diagram-rounding
            products += 1
            is_still = after.equals(bounds[place])
            bounds[place] = after
            clock.tick(made + 1, math.inf)
            if is_still:
                break
    return bounds[0], bounds[1], products
