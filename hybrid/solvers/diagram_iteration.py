"""Optimistic value iteration on vectors that are decision diagrams.

A vector is an MTBDD over the bits of the states, a step one compiled product. Lower iterates rise from 0,
rounded down. A guess a little above becomes an upper bound once a step, rounded up, does not raise it
(Hartmanns and Kaminski, CAV 2020). Many values are merged within the bounds: lower ones down, upper ones up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hybrid.matrix.space.base import Clock, Criterion, Status
from hybrid.solvers.diagram_layers import DiagramLayers
from hybrid.solvers.diagram_system import DiagramSystem
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

_EVERY = 8
"""Terms of a series from one look at where they are positive to the next one."""

_MANY_NODES = 1 << 18
"""Nodes of the first term of a series from which on states are solved in layers, each once."""

_ROUNDED = 2.0**-51  # lemma: diagram-series
"""Share by which an exact result exceeds one rounded down, at most."""

_SHARE = 1 / 8
"""Of epsilon, which bounds that errors of a series tell may take."""

Values = NDArray[np.float64]


@dataclass
class DiagramBounds:
    """Bounds as diagrams that iterations have found; the upper one is None if there is none."""

    lower: Diagram
    upper: Diagram | None
    status: Status
    iterations: int
    products: int
    difference: float
    seconds: float


class _Sums:
    """Terms added up in sums of a power of two of terms each, so that small diagrams are added first."""

    def __init__(self, store: NodeStore, rounding: int) -> None:
        self._store, self._rounding = store, rounding
        self.parts: list[int] = []
        self.count = 0

    def add(self, term: int) -> None:
        """Add a term."""
        count = self.count
        while count & 1:
            term = self._store.sum(self.parts.pop(), term, self._rounding)
            count >>= 1
        self.parts.append(term)
        self.count += 1

    def total(self) -> int:
        """Return the sum of all terms."""
        total = self.parts[-1]
        for part in reversed(self.parts[:-1]):
            total = self._store.sum(part, total, self._rounding)
        return total

    @property
    def depth(self) -> int:
        """Additions that a term is part of, at most."""
        return 2 * self.count.bit_length()


def rounded_values(store: NodeStore, x: int, rounding: int, bits: int) -> int:
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

    return store.mapped(x, shortened)


@dataclass
class DiagramIteration:
    """Iterations of one system until bounds are within epsilon.

    Lemmas: from-below, park, diagram-merging (docs/bounds.md).
    """

    system: DiagramSystem
    criterion: Criterion
    clock: Clock
    lower: int = field(init=False)
    upper: int | None = field(init=False, default=None)
    bits: int = field(init=False)
    status: Status = field(init=False, default=Status.MAX_ITERATIONS)
    iterations: int = field(init=False, default=0)
    products: int = field(init=False, default=0)
    difference: float = field(init=False, default=math.inf)

    def __post_init__(self) -> None:
        """Begin at the known values and 0."""
        self.lower = self.system.known
        digits = math.ceil(-math.log2(self.criterion.epsilon)) + _SPARE_BITS
        self.bits = min(digits, _ALL_BITS)

    def run(self) -> DiagramBounds:
        """Return bounds; their status says how it ended."""
        with self.clock.cancellable():
            if len(self.system.choices) != 1 or not (self._in_layers() or self._added_up()):
                self._rise()
            if self.upper is not None:
                self._narrow()
        store = self.system.store
        return DiagramBounds(
            store.extract(self.lower),
            None if self.upper is None else store.extract(self.upper),
            self.status,
            self.iterations,
            self.products,
            self.difference,
            self.clock.seconds,
        )

    # ------------------------------------------------------------------

    def _in_layers(self) -> bool:
        """Solve a large chain without circles from its ends on; return whether it is one.

        What is found of another chain is a lower bound.
        """
        if self.system.store.size(self.system.step(0, DOWN)) < _MANY_NODES:
            return False
        layers = DiagramLayers(self.system)
        for self.lower in layers.solved():
            self.iterations += 1
            if self._spent():
                break
        self.products += layers.products
        if layers.left:  # lemma: diagram-layers
            return False
        self.upper = layers.upper
        return True

    def _added_up(self) -> bool:
        """Begin with the sum of the terms ``A^k b`` from below; return whether these are all there are.

        Then bound the sum from above, without the terms once more where their errors are known.

        Lemma: diagram-series (docs/bounds.md).
        """
        store = self.system.store
        store.begin_exact()
        self.lower, is_whole, sums = self._series(DOWN)
        if not is_whole:
            return False
        roundings = 0
        if store.was_rounded:  # lemma: diagram-series
            (self.lower,) = self.system.settle(self.lower)
            additions = self.system.most_additions()
            roundings = sums.count * (1 + additions) + sums.depth + 2  # lemma: diagram-series
        share = 2.0 * (roundings * _ROUNDED + (sums.count + 1) * self._width())  # lemma: diagram-series
        if store.was_tiny:  # lemma: diagram-series
            share = math.inf
        most = float(store.values(self.lower).max()) if self.criterion.absolute else 1.0
        if share == 0.0:
            self.upper = self.lower
        elif share * most <= _SHARE * self.criterion.epsilon:

            def enlarged(values: Values) -> Values:
                found = np.nextafter(values * (1.0 + share), np.inf)  # lemma: diagram-series
                return np.where(values > 0, found, 0.0)

            self.upper = store.mapped(self.lower, enlarged)
        else:
            self.upper = self._series(UP)[0]
        return True

    def _width(self) -> float:
        """Return the greatest relative distance between the ends of an entry or a gain."""
        (choice,) = self.system.choices
        widest = 0.0
        for ends in (choice.matrix, choice.gain):
            if ends is not None and ends[0] != ends[1]:
                below, above = self.system.store.leaf_pairs(*ends)
                with np.errstate(divide="ignore", invalid="ignore"):
                    apart = np.where(above > below, (above - below) / below, 0.0)
                widest = max(widest, float(apart.max()))  # lemma: diagram-series
        return widest

    def _series(self, rounding: int) -> tuple[int, bool, _Sums]:
        """Return the sum of the terms ``A^k b`` of a chain, and whether the next one is 0.

        Then how they were added up. A term is smaller than the vector that steps make. It ends where no path
        is longer, or where a term is positive in the same states as an earlier one: then none is ever 0.

        Lemma: diagram-series (docs/bounds.md).
        """
        system, store = self.system, self.system.store
        term = system.step(0, rounding)
        sums, power, made = _Sums(store, rounding), 1, 0
        sums.add(term)
        seen = self._support(term)
        while True:
            term = system.image(term, rounding)
            made += 1
            self.products += 1
            self.iterations += 1
            if term == 0:  # lemma: diagram-series
                is_whole = True
                break
            sums.add(term)
            if self._spent():
                is_whole = False
                break
            if made < _EVERY or made % _EVERY == 0:
                support = self._support(term)
                if support == seen:
                    is_whole = False
                    break
                if made >= power:
                    seen, power = support, 2 * power
            term, seen, self.lower, *sums.parts = system.settle(term, seen, self.lower, *sums.parts)
        return sums.total(), is_whole, sums

    def _support(self, x: int) -> int:
        """Return 1 where a vector is positive, and 0 elsewhere."""
        return self.system.store.mapped(x, lambda values: (values > 0).astype(np.float64))

    def _step(self, x: int, rounding: int) -> int:
        """Return a step whose close values are merged."""
        store = self.system.store
        y = self.system.step(x, rounding)
        self.products += 1
        if self.bits < _ALL_BITS and store.size(y) > _MANY_VALUES and store.values(y).size > _MANY_VALUES:
            return rounded_values(store, y, rounding, self.bits)
        return y

    def _difference(self, below: int, above: int) -> float:
        """Return the greatest distance of two vectors, as the criterion counts it."""
        return distance(self.criterion, *self.system.store.leaf_pairs(below, above))

    def _spent(self) -> bool:
        """Whether iterations are to end; reports progress."""
        if self.clock.tick(self.iterations, self.difference):
            self.status = Status.INTERRUPTED
            return True
        return self.iterations >= self.criterion.max_iterations

    def _rise(self) -> None:
        """Iterate from below; verify a guess whenever changes have become small enough."""
        close = self.criterion.epsilon
        while not self._spent():
            below = self._step(self.lower, DOWN)
            self.iterations += 1
            self.difference = self._difference(self.lower, below)
            (self.lower,) = self.system.settle(below)
            still = self.difference == 0.0
            if not still and self.difference > close:
                continue
            self.upper = self._verified(still)  # lemma: park
            if self.upper is not None or self.status is Status.INTERRUPTED:
                return
            if still and self.bits >= _ALL_BITS:
                self.status = Status.NO_BOUND
                return
            if still:
                self.bits = min(self.bits + _MORE_BITS, _ALL_BITS)
            close = min(close, self.difference) * _NEARER if not still else close

    def _verified(self, still: bool) -> int | None:
        """Return an upper bound near the lower one; None where none is found soon.

        The bounds do not rest on the guess. It is a bound where a step, rounded up, does not raise it.
        """
        store = self.system.store
        for is_itself in [True, False] if still else [False]:
            guess = self.lower if is_itself else store.mapped(self.lower, self._raised)
            steps = 1 if is_itself else max(_PATIENCE, self.iterations // 4)
            for _ in range(steps):
                if self._spent():
                    return None
                above = self._step(guess, UP)
                self.iterations += 1
                before, after = store.leaf_pairs(guess, above)
                if (after <= before).all():  # lemma: park
                    return above
                old, new = store.leaf_pairs(self.lower, above)
                if (after >= before).all() or (new < old).any():
                    break
                guess, self.lower = self.system.settle(above, self.lower)
        return None

    def _raised(self, values: Values) -> Values:
        """Return a guess: values and half of epsilon; what is 0 stays so."""
        share = 0.5 * self.criterion.epsilon
        more = share if self.criterion.absolute else share * values
        return np.where(values > 0, values + more, values)

    def _narrow(self) -> None:
        """Go on with both bounds until they are close enough, or stand still."""
        while True:
            assert self.upper is not None
            self.difference = self._difference(self.lower, self.upper)
            if self.difference <= self.criterion.epsilon:
                self.status = Status.CONVERGED
                return
            if self._spent():
                return
            below, above = self._step(self.lower, DOWN), self._step(self.upper, UP)
            self.iterations += 1
            still = below == self.lower and above == self.upper
            self.lower, self.upper = self.system.settle(below, above)
            if still and self.bits >= _ALL_BITS:
                self.status = Status.CONVERGED  # what double precision allows for
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
    system: DiagramSystem, start: tuple[int, int], steps: int, clock: Clock
) -> tuple[Diagram, Diagram, int]:
    """Return bounds on a vector after so many steps, and how many products these took.

    Lemma: diagram-rounding (docs/bounds.md).
    """
    above, products = start[1], 0
    below, above, made = _after(system, start[0], above, steps, DOWN, clock)
    lower, products = system.store.extract(below), products + made
    above, _, made = _after(system, above, 0, steps, UP, clock)  # lemma: diagram-rounding
    return lower, system.store.extract(above), products + made


def _after(
    system: DiagramSystem, x: int, other: int, steps: int, rounding: int, clock: Clock
) -> tuple[int, int, int]:
    """Return a vector after some steps, another one as it is, and the products made.

    Many steps of few states are powers of one: rows as long as all states, but twice as many steps each time.
    Steps that change nothing end it: all later ones change nothing either.
    """
    products = 0
    if len(system.choices) == 1 and system.n_states**2 * steps.bit_length() < steps:
        return _power(system, x, other, steps, rounding)
    for made in range(steps):
        after = system.step(x, rounding)  # lemma: diagram-rounding
        products += 1
        clock.tick(made + 1, math.inf)
        if after == x:
            break
        x, other = system.settle(after, other)
    return x, other, products


def _power(system: DiagramSystem, x: int, other: int, steps: int, rounding: int) -> tuple[int, int, int]:
    """Return as `_after` does, by squares of the step ``x -> A x + b`` of a chain.

    Lemma: diagram-rounding (docs/bounds.md).
    """
    (choice,), store, products = system.choices, system.store, 0
    matrix, b = choice.matrix[int(rounding == UP)], system.step(0, rounding)  # lemma: diagram-rounding
    while steps:
        if steps & 1:
            x = store.sum(store.matrix_product(matrix, x, rounding), b, rounding)  # lemma: diagram-rounding
            products += 1
        steps >>= 1
        if steps:
            b = store.sum(store.matrix_product(matrix, b, rounding), b, rounding)  # lemma: diagram-rounding
            matrix = store.matrix_product(matrix, matrix, rounding)  # lemma: diagram-rounding
            products += 2
        x, other, b, matrix = system.settle(x, other, b, matrix)
    return x, other, products
