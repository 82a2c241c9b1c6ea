"""Making a certificate: the solvers' bounds, put in the order of the listed states and mended where needed.

This module alone of the package knows the solvers.  What it writes has passed the same check that
`hybrid.checking.certificates.verify` makes.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, identity
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import splu

from hybrid.analysis.operator_values import Scope
from hybrid.analysis.run.options import CheckOptions
from hybrid.base.check_options import ENCLOSING, advised
from hybrid.base.errors import CertificateError, NotCertifiableError
from hybrid.base.state_values import StateValues
from hybrid.checking.answer import Answer
from hybrid.checking.certificates.archive import Certificate, PartVectors, write_certificate
from hybrid.checking.certificates.certified_text import CertifiedText, PropertyText, number_text
from hybrid.checking.certificates.conditions import Average, Condition, Next
from hybrid.checking.certificates.judge import Finding, Judge, Operator
from hybrid.checking.certificates.states import count_valuations
from hybrid.checking.checker import Checker
from hybrid.matrix.space.base import Criterion
from hybrid.properties import parse_properties, resolve_properties
from hybrid.properties.tree import Probability, Property, Reward, SteadyState
from mtbdd.build.model import SymbolicModel
from mtbdd.language.errors import LanguageError
from mtbdd.language.syntax import Expression

# Bounds for small systems where the solvers' bounds are not inductive: a solution, moved by a slack.
#
# With ``x = f(x)`` and ``w = s + P w`` for a positive s, ``x - d w`` and ``x + d w`` satisfy the inequalities
# by ``d s`` in every state, which covers what rounding has cost x as soon as d is large enough.

Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]

_MOST = 20_000  # unknown states
_FIRST, _LAST, _FACTOR = 2.0**-50, 2.0**-18, 8.0


def slackened(condition: Condition, middle: Vector, unknown: Mask) -> Iterator[tuple[Vector, Vector]]:
    """Yield lower and upper vectors around a solution, with more slack every time.

    `middle` is about the solution, right outside of the `unknown` states. Nothing is yielded for more than
    20,000 unknown states, or if the choices that are best at `middle` do not leave them. Time: that of a
    sparse factorisation.
    """
    places = np.flatnonzero(unknown)
    if places.size == 0 or places.size > _MOST:
        return
    matrix, right = _system(condition, middle, places)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            factors = splu((identity(places.size, format="csc") - matrix).tocsc())
        except RuntimeError:  # exactly singular
            return
        x = factors.solve(right)
        x += factors.solve(right - x + matrix @ x)
        slack = factors.solve(np.maximum(np.abs(x), np.abs(right).max() * 2.0**-60))
    if not bool(np.isfinite(x).all()) or not bool((slack > 0).all()):
        return
    distance = _FIRST
    while distance <= _LAST:
        found = []
        for direction in (-1.0, 1.0):
            moved = middle.copy()
            moved[places] = np.clip(x + direction * distance * slack, condition.least, condition.greatest)
            found.append(moved)
        yield found[0], found[1]
        distance *= _FACTOR


def _system(condition: Condition, middle: Vector, places: NDArray[np.int64]) -> tuple[Any, Vector]:
    """Return matrix and right-hand side of the unknown states under the choices that are best at a vector."""
    t = condition.sweep.transitions
    choice = _chosen(condition, middle)[places]
    place = np.full(t.states.size, -1, np.int64)
    place[places] = np.arange(places.size)
    doubles, _ = t.states.table.doubles()
    count = (t.begin[choice + 1] - t.begin[choice]).astype(np.intp)
    row = np.repeat(np.arange(places.size), count)
    first = np.repeat(t.begin[choice] - (np.cumsum(count) - count), count)
    entries = first + np.arange(row.size)
    weight, target = doubles[t.weight[entries]], t.target[entries]
    total = np.bincount(row, weight, places.size)
    weight = weight / total[row]
    inside = place[target] >= 0
    matrix = coo_array(
        (weight[inside], (row[inside], place[target[inside]])), (places.size, places.size)
    ).tocsc()
    outside = ~inside
    entering = weight[outside] * middle[target[outside]]
    right: Vector = np.bincount(row[outside], entering, places.size).astype(np.float64)
    earned = condition.gains()
    if earned is not None:
        right += doubles[earned[choice]] / total
    return matrix, right


def _chosen(condition: Condition, x: Vector) -> NDArray[np.int64]:
    """Return the best choice of every state at a vector."""
    t = condition.sweep.transitions
    image = condition.images(x)
    worst = -np.inf if condition.maximise else np.inf
    image = np.where(np.isnan(image), worst, image)
    order = np.lexsort((-image if condition.maximise else image, t.state))
    return np.asarray(order[t.first[:-1]])


# Bounds that hold are made bounds that a sweep confirms.
#
# The solvers' bounds come from directed iteration on the doubles next to the model's numbers, and may fail an
# inequality by some units in the last place.  They are moved to the loose side where they do.


_ROUNDS = 40
_PLACES = 2.0**-51


def mended(
    condition: Condition, lower: Vector, upper: Vector, unknown: Mask | None = None
) -> tuple[Vector, Vector]:
    """Return bounds moved to the loose side until the inequalities hold, if that is possible.

    A state that fails takes what one step makes of the vector, rounded to the loose side, more so with every
    round; if some rounds do not do, small systems are solved again. The `unknown` states are those that an
    equation ``x = f(x)`` is about, by default those that the condition names. Time: one sweep a round.
    """
    if isinstance(condition, Next):
        # One step says what the values are, but for the last place; where they are doubles they are met.
        lower = upper = _best(condition, lower)
    lower, upper = (np.clip(v, condition.least, condition.greatest) for v in (lower, upper))
    with np.errstate(invalid="ignore"):
        middle = np.where(lower == upper, lower, 0.5 * lower + 0.5 * upper)
    if _mend(condition, lower, -1.0) and _mend(condition, upper, 1.0):
        return lower, upper
    for low, high in slackened(condition, middle, condition.unknown(middle) if unknown is None else unknown):
        if not condition.lower_faults(low)[0].any() and not condition.upper_faults(high)[0].any():
            return low, high
    return lower, upper


def _mend(condition: Condition, x: Vector, direction: float) -> bool:
    """Move a vector in place, up for direction 1, and return whether it holds then."""
    for round_ in range(_ROUNDS):
        faults, _ = condition.lower_faults(x) if direction < 0 else condition.upper_faults(x)
        places = np.flatnonzero(faults)
        if places.size == 0:
            return True
        image = _best(condition, x)[places]
        with np.errstate(invalid="ignore"):  # infinite ones stay what they were
            image += direction * np.abs(image) * (_PLACES * 2.0 ** (round_ // 4))
        image = np.nextafter(image, direction * np.inf)
        moved = np.fmin(x[places], image) if direction < 0 else np.fmax(x[places], image)
        x[places] = np.clip(moved, condition.least, condition.greatest)
    return False


def _best(condition: Condition, x: Vector) -> Vector:
    """Return about the best that one step makes of a vector, for every state."""
    image = condition.images(x)
    heads = condition.sweep.transitions.first[:-1].astype(np.intp)
    gather = np.fmax if condition.maximise else np.fmin
    return np.asarray(gather.reduceat(image, heads))


# Vectors h that show long-run averages, for the bottom components of a chain.
#
# Poisson's equation ``g + d h = r + R h`` is solved by factors for components of moderate size, and by
# relaxed steps of the jump chain for large ones, where the averages are known already and nothing drifts.


_OMEGA = 0.9  # below 1, so that chains with a period settle
_STEPS = 20  # between two checks of the averages
_PATIENCE = 100  # checks without a gain after which only rounding is left
_FACTORED = 20_000  # states of all bottom components together that are solved by factors


def averages(condition: Average, lower: Vector, upper: Vector, criterion: Criterion) -> PartVectors:
    """Return bounds on averages, and a vector h that shows them in the bottom components.

    They come from those of the solvers. `criterion` says how close to bring the bounds, and in how many steps
    at most.
    """
    course = _Poisson(condition, lower, upper)
    course.solve(criterion)
    low, high = course.bounds()
    condition.bias = course.h
    ends = course.ends
    # Transient states follow their components: what is true of l is true of l less a constant.
    lower, upper = lower.copy(), upper.copy()
    lower[~ends] -= max(0.0, float((lower[ends] - low[ends]).max())) * (1 + 1e-9)
    upper[~ends] += max(0.0, float((high[ends] - upper[ends]).max())) * (1 + 1e-9)
    lower[ends], upper[ends] = low[ends], high[ends]
    lower, upper = mended(condition, lower, upper, ~ends)
    return PartVectors(lower, upper, course.h)


class _Poisson:
    """The bottom components of a chain, their rates scaled like the rows."""

    def __init__(self, condition: Average, lower: Vector, upper: Vector) -> None:
        t = condition.sweep.transitions
        size = t.states.size
        doubles, _ = t.states.table.doubles()
        row = np.repeat(np.arange(size), np.diff(t.begin).astype(np.intp))
        scale = doubles[condition.scale]
        off = row != t.target
        self._row, self._target = row[off], t.target[off]
        self._rate = (doubles[t.weight] / scale[row])[off]
        matrix: Any = coo_array((self._rate, (self._row, self._target)), (size, size)).tocsr()
        self._matrix = matrix
        self._leaving = np.bincount(self._row, self._rate, size)
        self._rewards = doubles[condition.earned] / scale
        count, label = connected_components(matrix, directed=True, connection="strong")
        leaves = np.zeros(count, np.bool_)
        leaves[label[self._row[label[self._row] != label[self._target]]]] = True
        self.ends: Mask = ~leaves[label]
        self._label, self._count = label, count
        self._gain = 0.5 * (lower + upper)
        self.h: Vector = np.zeros(size)

    def solve(self, criterion: Criterion) -> None:
        """Find h, by factors where that is possible and else by iteration."""
        if int(self.ends.sum()) > _FACTORED or not self._factored():
            self._run(criterion)
        self._centre()

    def _fastest(self) -> NDArray[np.int64]:
        """Return, for each bottom component, the state that is left at the greatest rate."""
        order = np.lexsort((self._leaving, self._label))
        last = np.append(np.flatnonzero(np.diff(self._label[order])), order.size - 1)
        found = order[last]
        return np.asarray(found[self.ends[found]])

    def _centre(self) -> None:
        """Make h zero where rates are greatest: errors of h count as much as the rates."""
        offset = np.zeros(self._count)
        fastest = self._fastest()
        offset[self._label[fastest]] = self.h[fastest]
        self.h = np.where(self.ends, self.h - offset[self._label], 0.0)

    def _factored(self) -> bool:
        """Solve for h and the averages at once, h being zero in one state of each component."""
        places = np.flatnonzero(self.ends)
        place = np.full(self.h.size, -1, np.int64)
        place[places] = np.arange(places.size)
        inside = self.ends[self._row]
        row, target = place[self._row[inside]], place[self._target[inside]]
        fastest = place[self._fastest()]
        anchor = np.full(self._count, -1, np.int64)
        anchor[self._label[places[fastest]]] = fastest
        every = np.arange(places.size)
        # The column of each component's anchor, whose h is zero, is that of its average.
        fixed = np.zeros(places.size, np.bool_)
        fixed[fastest] = True
        kept = ~fixed[target]
        rows = np.concatenate([row[kept], every[~fixed], every])
        columns = np.concatenate([target[kept], every[~fixed], anchor[self._label[places]]])
        leaving = self._leaving[places]
        entries = np.concatenate([-self._rate[inside][kept], leaving[~fixed], np.ones(places.size)])
        scale = np.where(leaving > 0, leaving, 1.0)
        matrix = coo_array((entries / scale[rows], (rows, columns)), (places.size,) * 2).tocsc()
        right = self._rewards[places] / scale
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                factors = splu(matrix)
            except RuntimeError:  # exactly singular in doubles
                return False
            found = factors.solve(right)
            found += factors.solve(right - matrix @ found)
        if not bool(np.isfinite(found).all()):
            return False
        self.h[places] = np.where(fixed, 0.0, found)
        return True

    def _run(self, criterion: Criterion) -> None:
        """Iterate until the bounds of every component are close, or rounding keeps them apart."""
        moves = self.ends & (self._leaving > 0)
        step = np.zeros(self.h.size)
        step[moves] = _OMEGA / self._leaving[moves]
        best, stale, keep = np.inf, 0, self.h.copy()
        for _ in range(0, criterion.max_iterations, _STEPS):
            for _ in range(_STEPS):
                defect = self._rewards + self._matrix @ self.h - self._leaving * self.h
                self.h += step * (defect - self._gain)
            least, most = self._extremes(self._rewards + self._matrix @ self.h - self._leaving * self.h)
            middle = 0.5 * (least + most)
            width = np.where(self.ends, most - least, 0.0)
            if not criterion.absolute:
                width /= np.where(middle == 0, 1.0, np.abs(middle))
            worst = float(width.max())
            stale = 0 if worst < 0.9 * best else stale + 1
            if worst < best:
                best, keep = worst, self.h.copy()
            if best <= 0.1 * criterion.epsilon or stale >= _PATIENCE:
                break
            low, high = self._extremes(self.h)
            self.h -= np.where(self.ends, 0.5 * (low + high), 0.0)
        self.h = keep

    def _extremes(self, x: Vector) -> tuple[Vector, Vector]:
        """Return the least and greatest element of every component, for each of its states."""
        least, most = np.full(self._count, np.inf), np.full(self._count, -np.inf)
        np.minimum.at(least, self._label, x)
        np.maximum.at(most, self._label, x)
        return least[self._label], most[self._label]

    def bounds(self) -> tuple[Vector, Vector]:
        """Return bounds that the sweep confirms without whole numbers: rounding errors are charged twice."""
        terms = self._rate * (self.h[self._target] - self.h[self._row])
        size = np.bincount(self._row, np.abs(terms), self.h.size) + np.abs(self._rewards)
        rho = np.bincount(self._row, terms, self.h.size) + self._rewards
        error = 3.0 * (np.bincount(self._row, minlength=self.h.size) + 24) * 2.0**-52 * size
        return self._extremes(rho - error)[0], self._extremes(rho + error)[1]


Ints = NDArray[np.int64]


@dataclass
class CertifiedAnswer:
    """A property's answer, and its certificate and what this shows if one was found.

    `reason` says why there is none; `size` is that of the file in bytes, once it is written.
    """

    answer: Answer
    certificate: Certificate | None = None
    finding: Finding | None = None
    reason: str = ""
    size: int = 0

    def write(self, path: str | os.PathLike[str]) -> int:
        """Write the certificate and return the file's size in bytes.

        Raises OSError, and ValueError where there is none.
        """
        if self.certificate is None:
            raise ValueError(f"there is no certificate to write: {self.reason}")
        return write_certificate(path, self.certificate)


class _Recorder(Checker):
    """A checker that keeps the values of every operator that it evaluates."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._kept: dict[Expression, StateValues] = {}

    def _values(self, formula: Probability | SteadyState | Reward, scope: Scope) -> StateValues:
        # A certificate speaks of all states, whichever are requested.
        found = super()._values(formula, Scope.every(self.model))
        self._kept[formula] = found
        return scope.of_values(found)

    def values_of(self, formula: Expression) -> StateValues:
        """Return an operator's values in all states, from the last check if it was part of it."""
        if not isinstance(formula, (Probability, SteadyState, Reward)):
            raise NotCertifiableError("the operator is decided without a value; certify it alone")
        if formula not in self._kept:
            self._values(formula, Scope.every(self.model))
        return self._kept[formula]


class CertificateBuilder:
    """Checks one property of a model's file and makes its certificate.

    `constants` has values of those that model and property leave open. Raises NotCertifiableError, before
    anything is computed, where there is no certificate for the model or the property.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        constants: Mapping[str, Any],
        options: CheckOptions,
        wanted: PropertyText,
        progress: Any = None,
    ) -> None:
        if options.bounding_method() is None:
            raise NotCertifiableError(
                f"the method {options.method} gives no bounds, so that there is nothing to certify: choose "
                f"{advised(ENCLOSING)}"
            )
        self._subject = CertifiedText(path, constants)
        count_valuations(self._subject.model.variables)
        self._wanted, self._options, self._progress = wanted, options, progress
        self._prop, self._meaning, self._question = self._subject.question(wanted)

    def make(self, model: SymbolicModel, prop: Property) -> CertifiedAnswer:
        """Check the resolved property on the built model and make its certificate.

        Where the property could not be answered, or no inductive bounds were found near its values, there is
        none, and a reason.
        """
        checker = _Recorder(model, self._options, self._progress)
        answer = checker.answer(prop)
        if answer.error is not None:
            return CertifiedAnswer(answer, reason="the property is not answered")
        numbers, order = _numbered(model)
        parts: list[PartVectors] = []
        try:
            transitions = self._subject.transitions(numbers, self._meaning)
            judge = Judge(transitions, self._meaning, self._subject.syntax.rewards, self._question)
            for operator in self._question.operators:
                part = self._part(judge, operator, checker, order)
                judge.settle(operator, part)
                parts.append(part)
        except (CertificateError, NotCertifiableError, LanguageError, ArithmeticError) as error:
            return CertifiedAnswer(answer, reason=f"none was found near the values computed: {error}")
        certificate = Certificate(
            self._subject.digest,
            self._subject.constants,
            self._wanted.text,
            self._wanted.index,
            self._prop.text,
            {name: number_text(value) for name, value in self._wanted.constants.items()},
            numbers,
            parts,
        )
        return CertifiedAnswer(answer, certificate, judge.finding(parts))

    def _part(self, judge: Judge, operator: Operator, checker: _Recorder, order: Ints) -> PartVectors:
        """Return vectors of one operator that satisfy its conditions, or come close to."""
        condition = judge.condition(operator)
        values = checker.values_of(self._resolved(operator))
        lower, upper = np.array(values.lower)[order], np.array(values.upper)[order]
        if operator.complement:
            lower, upper = 1.0 - upper, 1.0 - lower
        if isinstance(condition, Average) and condition.maximise is not None:
            from hybrid.checking.certificates.end_components import process_averages

            return process_averages(condition, lower, upper, self._options.criterion)
        if isinstance(condition, Average):
            return averages(condition, lower, upper, self._options.criterion)
        lower, upper = mended(condition, lower, upper)
        return PartVectors(lower, upper)

    def _resolved(self, operator: Operator) -> Expression:
        """Return an operator as the checker knows it: without its bound, everything folded."""
        parsed = parse_properties(self._wanted.text, "<property>")
        alone = Property(None, operator.node, "", operator.node.position)
        found = resolve_properties(
            replace(parsed, properties=(alone, *(p for p in parsed.properties if p.name is not None))),
            self._subject.model,
            self._wanted.constants,
            keep_faults=True,
        )
        if found.properties[0].error is not None:
            raise found.properties[0].error
        return found.properties[0].formula


def _numbered(model: SymbolicModel) -> tuple[Ints, Ints]:
    """Return the states' numbers, ascending, and for each its place in the symbolic order."""
    bits = model.index.bits_at(np.arange(model.n_states, dtype=np.int64))
    numbers = np.zeros(model.n_states, np.int64)
    for v in model.source.variables:
        encoded = model.encoding.by_name[v.name]
        digit = np.zeros(model.n_states, np.int64)
        for bit in encoded.bits:
            digit = 2 * digit + bits[:, bit]
        numbers = numbers * (v.high - v.low + 1) + digit
    order = np.argsort(numbers, kind="stable")
    return numbers[order], order
