"""Random properties beyond one temporal operator: LTL, conditions, expected times, discounts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from random import Random

import numpy as np

from hybrid.properties.automata.choosing import automaton_of
from tests.attack import linear
from tests.attack.chains import Enclosure, exactly
from tests.attack.evaluate import Evaluator, UndecidedError
from tests.attack.formulas import Bounded, Formula, OwnValues
from tests.attack.numerals import Numeral, numeral
from tests.attack.processes import schedulers
from tests.attack.questions import Question, Writer
from tests.attack.spec import Expanded
from tests.attack.thresholds import threshold_near
from tests.oracles.cosafe import TOLD, begun, random_cosafe, read
from tests.oracles.lasso_words import Tree, random_tree, tree_text, without_windows
from tests.oracles.ltl import chain_probabilities, greatest_probabilities

__all__ = ["further_questions"]

_NAMES = ("a", "b", "c")
_MOST_STATES = 10  # of models with LTL
_MOST_SCHEDULERS = 64
_DISCOUNTS = ("0.9", "0.5", "1/3", "0.99", "0.999999", "1e-9", "0.1", "1e-15", "0.999999999")


@dataclass(frozen=True)
class Temporal(OwnValues):
    """``P [ ... ]`` of any formula of linear temporal logic over some state formulas."""

    tree: Tree
    atoms: tuple[Formula, ...]

    def text(self) -> str:
        return f"{self._head('P')} [ {_text(self.tree, self.atoms)} ]"

    def parts(self) -> tuple[Formula, ...]:
        return self.atoms

    def values(self, evaluator: Evaluator, largest: bool) -> list[Enclosure]:
        model, letters = evaluator.model, _letters(evaluator, self.atoms)
        if model.kind != "mdp":
            return exactly(chain_probabilities(_steps(model), letters, without_windows(self.tree)))
        automaton = automaton_of(tree_text(self.tree))
        shown = [
            sum((x >> _NAMES.index(name) & 1) << k for k, name in enumerate(automaton.propositions))
            for x in letters
        ]
        choices = [[choice.row for choice in own] for own in model.choices]
        found = greatest_probabilities(choices, shown, automaton, not largest)
        return exactly(found if largest else [1 - p for p in found])


@dataclass(frozen=True)
class Conditional(OwnValues):
    """``P=? [ path || condition ]`` of a chain."""

    path: Tree
    condition: Tree
    atoms: tuple[Formula, ...]

    def text(self) -> str:
        return f"{self._head('P')} [ {_text(self.path, self.atoms)} || {_text(self.condition, self.atoms)} ]"

    def parts(self) -> tuple[Formula, ...]:
        return self.atoms

    def values(self, evaluator: Evaluator, largest: bool) -> list[Enclosure]:
        rows, letters = _steps(evaluator.model), _letters(evaluator, self.atoms)
        both, condition = (
            chain_probabilities(rows, letters, without_windows(tree))
            for tree in (("&", self.path, self.condition), self.condition)
        )
        return exactly([p / q if q else None for p, q in zip(both, condition, strict=True)])


@dataclass(frozen=True)
class Elapsed(OwnValues):
    """``T [ F states ]``."""

    target: Formula

    def text(self) -> str:
        return f"{self._head('T')} [ F ({self.target.text()}) ]"

    def parts(self) -> tuple[Formula, ...]:
        return (self.target,)

    def values(self, evaluator: Evaluator, largest: bool) -> list[Enclosure]:
        target, model = evaluator.states(self.target), evaluator.model
        found = [linear.total(rows, [Fraction(1)] * model.size, target) for rows, _ in _chains(model, 0)]
        return _best(found, largest)


@dataclass(frozen=True)
class Discounted(OwnValues):
    """``R{"r0",discount=d} [ C ]``."""

    structure: int
    discount: Numeral

    def text(self) -> str:
        letter = f'R{{"r{self.structure}",discount={self.discount.text}}}'
        return f"{self._head(letter)} [ C ]"

    def values(self, evaluator: Evaluator, largest: bool) -> list[Enclosure]:
        model, d = evaluator.model, self.discount.value
        found = []
        for rows, earned in _chains(model, self.structure):
            # What the discount takes leaves the states for good.
            leaving = [{**{t: d * p for t, p in row.items()}, model.size: (1 - d)} for row in rows]
            solved = linear.solve([*leaving, {}], set(range(model.size)), dict(enumerate(earned)))
            found.append([solved[s] for s in range(model.size)])
        return _best(found, largest)


@dataclass(frozen=True)
class CosafeReward(OwnValues):
    """``R{"r0"} [ ... ]`` until a co-safe formula holds."""

    structure: int
    tree: Tree
    atoms: tuple[Formula, ...]

    def text(self) -> str:
        letter = f'R{{"r{self.structure}"}}'
        return f"{self._head(letter)} [ {_text(self.tree, self.atoms)} ]"

    def parts(self) -> tuple[Formula, ...]:
        return self.atoms

    def values(self, evaluator: Evaluator, largest: bool) -> list[Enclosure]:
        model, letters = evaluator.model, _letters(evaluator, self.atoms)
        pairs = [(s, begun(self.tree)) for s in range(model.size)]
        place = {pair: k for k, pair in enumerate(pairs)}
        target: set[int] = set()
        choices: list[list[tuple[dict[int, Fraction], Fraction]]] = []
        for s, q in pairs:
            then = read(q, letters[s])
            if then == TOLD:
                target.add(len(choices))
            own = []
            for choice in model.choices[s]:
                for t in choice.row:
                    if (t, then) not in place:
                        place[t, then] = len(pairs)
                        pairs.append((t, then))
                row = {place[t, then]: p for t, p in choice.row.items()}
                own.append((row, model.rewards[self.structure][s] + choice.rewards[self.structure]))
            choices.append(own)
        if math.prod(map(len, choices)) > _MOST_SCHEDULERS:
            raise NotImplementedError("too many schedulers of the pairs")
        found = []
        for chosen in product(*choices):
            rows, earned = [row for row, _ in chosen], [r for _, r in chosen]
            found.append(linear.total(rows, earned, target)[: model.size])
        return _best(found, largest)


def further_questions(
    rng: Random, model: Expanded, structures: int, evaluator: Evaluator, count: int
) -> list[Question]:
    """Return some more properties with their answers."""
    writer = _FurtherWriter(rng, model, structures, evaluator)
    found: list[Question] = []
    for _ in range(10 * count):
        if len(found) == count:
            break
        try:
            formula = writer.formula()
            found.append(Question(formula, evaluator.property(formula)))
        except (UndecidedError, NotImplementedError):
            continue
    return found


class _FurtherWriter(Writer):
    """Draws formulas of the kinds above."""

    def formula(self) -> Formula:
        rng = self.rng
        comparison = rng.choice((None, None, "<", "<=", ">", ">="))
        optimum = rng.choice(("min", "max")) if self.is_mdp and comparison is None else None
        asked = optimum, comparison, None if comparison is None else numeral("0")
        kinds = ["T", "R"]
        if self.model.size <= _MOST_STATES:
            kinds += ["P", "P", "P"]
        if not self.timed:
            kinds += ["D", "D"]
        if not self.is_mdp and self.model.size <= _MOST_STATES:
            kinds += ["||", "||"]
        formula = self._drawn(rng.choice(kinds), *asked)
        return formula if comparison is None else self._compared(formula)

    def _drawn(
        self, kind: str, optimum: str | None, comparison: str | None, bound: Numeral | None
    ) -> Bounded:
        rng, asked = self.rng, (optimum, comparison, bound)
        numbers = np.random.default_rng(rng.randrange(2**32))
        atoms = tuple(self.atom() for _ in _NAMES)
        if kind != "P" and self.is_mdp and not self.few:
            raise NotImplementedError("too many schedulers")
        if kind == "T":
            return Elapsed(*asked, self.atom())
        if kind == "D":
            return Discounted(*asked, rng.randrange(self.structures), numeral(rng.choice(_DISCOUNTS)))
        if kind == "R":
            size = int(numbers.integers(2, 5))
            tree = random_cosafe(numbers, size)
            if self.timed and _has_windows(tree):
                raise NotImplementedError("windows of time in a formula")
            return CosafeReward(*asked, rng.randrange(self.structures), tree, atoms)
        size = int(numbers.integers(2, 6))
        if kind == "P":
            return Temporal(*asked, random_tree(numbers, size, 3, not self.timed), atoms)
        path, condition = (self._path(numbers) for _ in range(2))
        return Conditional(*asked, path, condition, atoms)

    def _path(self, numbers: np.random.Generator) -> Tree:
        if numbers.random() < 0.4:
            return random_tree(numbers, int(numbers.integers(2, 5)), 3)
        places = [("p", int(k)) for k in numbers.integers(0, 3, 2)]
        operator = ("F", "F", "G", "X", "U", "W", "R")[numbers.integers(7)]
        return (operator, places[0]) if operator in "FGX" else (operator, *places)

    def _compared(self, formula: Bounded) -> Formula:
        """Put a threshold near a value in the place of the one that stands there."""
        some = [v[0] for v in self.evaluator.numbers(formula) if v is not None and isinstance(v[0], Fraction)]
        if not some:
            return replace(formula, threshold=numeral("1"))
        is_reward = isinstance(formula, (Elapsed, Discounted, CosafeReward))
        return replace(formula, threshold=threshold_near(self.rng, self.rng.choice(some), is_reward))


def _has_windows(tree: Tree) -> bool:
    return tree[0] == "in" or any(_has_windows(part) for part in tree[1:] if isinstance(part, tuple))


def _text(tree: Tree, atoms: Sequence[Formula]) -> str:
    return tree_text(tree, tuple(f"({atom.text()})" for atom in atoms))


def _letters(evaluator: Evaluator, atoms: Sequence[Formula]) -> list[int]:
    sets = [evaluator.states(atom) for atom in atoms]
    return [sum((s in states) << k for k, states in enumerate(sets)) for s in range(evaluator.model.size)]


def _steps(model: Expanded) -> list[dict[int, Fraction]]:
    """Return the probabilities of a chain's steps."""
    rows = [own[0].row for own in model.choices]
    return [{t: p / sum(row.values()) for t, p in row.items()} for row in rows]


def _chains(model: Expanded, structure: int) -> list[tuple[list[dict[int, Fraction]], list[Fraction]]]:
    """Return rows and what a step, or a unit of time, earns, under every memoryless scheduler."""
    if schedulers(model) > _MOST_SCHEDULERS:
        raise NotImplementedError("too many schedulers")
    state = model.rewards[structure] if model.rewards else [Fraction(0)] * model.size
    found = []
    for chosen in product(*model.choices):
        earned = [
            r + (choice.rewards[structure] if model.rewards else 0)
            for r, choice in zip(state, chosen, strict=True)
        ]
        found.append(([dict(choice.row) for choice in chosen], earned))
    return found


def _best(found: Sequence[Sequence[Fraction | float | None]], largest: bool) -> list[Enclosure]:
    """Return the least or the greatest of the values of all schedulers; None where one does not exist."""
    pick = max if largest else min
    return exactly([None if None in values else pick(values) for values in zip(*found, strict=True)])
