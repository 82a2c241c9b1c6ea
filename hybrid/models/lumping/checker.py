"""Answers from quotients: each property is checked on the coarsest quotient that it respects."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.run.statistics import SolveStatistics
from hybrid.base.errors import (
    HybridError,
    InterchangeError,
    OptionError,
    PropertyError,
    UnknownError,
    UnsupportedError,
)
from hybrid.base.state_values import StateTruth, StateValues
from hybrid.checking.answer import Answer, EveryState
from hybrid.checking.checker import Checker
from hybrid.checking.filters import Range
from hybrid.checking.formulas import is_truth_value
from hybrid.models.lumping.partition import WrittenChoices
from hybrid.models.lumping.quotient import ModelQuotient, quotient_by_sets
from hybrid.models.model import Model
from hybrid.properties import Properties, parse_properties, registry, resolve_properties
from hybrid.properties.registry import Capability, has_path
from hybrid.properties.tree import (
    OPERATORS,
    STATE_OPERATORS,
    AutomatonPath,
    Divisor,
    Filter,
    Path,
    Property,
    Reward,
    RewardBound,
    RewardBounds,
)
from mtbdd.base.budget import BudgetError
from mtbdd.base.errors import option
from mtbdd.build.model import SymbolicModel
from mtbdd.build.reward_split import RewardSplitError
from mtbdd.build.state_order import for_diagram, for_users
from mtbdd.diagrams.manager import Node
from mtbdd.language.expression_parser import short_text
from mtbdd.language.syntax import ELAPSED, Expression, LabelReference, Name
from mtbdd.language.walk import children, map_children, walk
from mtbdd.offset.states import index_states

# Data that a property needs of the states: sets, reward structures, and whether it counts steps.

STEPS = Capability[bool](lambda e, reason: UnsupportedError(reason), "{} is not supported by the quotient")
"""Operators that quotients answer: whether one may distinguish one step of a CTMC from several in a block."""
STEPS.answers(
    *(registry.NOW, registry.STEADY, registry.AVERAGE, registry.RATIO, registry.DISCOUNTED),
    *(registry.CUMULATIVE, registry.TOTAL, registry.INSTANTANEOUS, registry.ELAPSED_TIME, registry.REACHED),
    *(registry.FILTER, registry.MULTI),
)(lambda e: False)
STEPS.answers(
    *(registry.QUANTIFIED, registry.AUTOMATON, registry.CONDITIONAL, registry.REWARD_BOUNDED),
    registry.REWARDS_BOUNDED,
    *(registry.NEXT, registry.REPEATED, registry.LTL, registry.QUANTILE),
)(lambda e: True)
STEPS.answers(registry.UNTIL, registry.WINDOW)(lambda e: not isinstance(e.path, Path))


@STEPS.answers(registry.COSAFE)
def _of_cosafe(e: Reward) -> bool:
    """Return whether a path operator stands in another one, or beside connectives, or counts steps itself."""
    path = e.target
    if (
        not isinstance(path, Path)
        or path.operator == "X"
        or isinstance(path.bound, (RewardBound, RewardBounds))
    ):
        return has_path(path)
    return any(part is not None and has_path(part) for part in (path.left, path.right))


@dataclass(frozen=True, eq=False)
class Questions:
    """Conditions, labels and rewards of a formula, with the sets of states where they hold."""

    formula: Expression
    # by identity, its largest parts without operators that speak of the states; all are truth values
    conditions: dict[int, Expression]
    sets: dict[int, Node]  # where each of them holds
    labels: dict[str, Node]  # labels that keep their names: those that automata of files may ask for
    rewards: frozenset[int]  # places of the reward structures
    keep_loops: bool  # whether it may matter that a CTMC moves from a state to one that is alike

    @classmethod
    def of(cls, formula: Expression, model: SymbolicModel) -> Questions:
        """Return the questions of a resolved formula.

        Raises UnsupportedError: it has a number that depends on variables. Raises EvaluationError: a
        condition has no value in some reachable state.
        """
        conditions = {id(e): e for e in _conditions(formula)}
        for condition in conditions.values():
            if not is_truth_value(condition, model):
                raise UnsupportedError(
                    f"the number {_text(condition)} depends on the state, and blocks are told apart by "
                    "conditions and rewards alone: make a reward structure of it, or check without the "
                    "quotient"
                )
        sets = {place: model.states(condition) for place, condition in conditions.items()}
        parts = list(walk(formula))
        labels: dict[str, Node] = {}
        if any(isinstance(part, AutomatonPath) for part in parts):
            labels = {label.name: model.states(label.expression) for label in model.source.labels}
            labels |= {"init": model.initial, "deadlock": model.deadlocks}
        rewards = {
            p.index for p in parts if isinstance(p, (Reward, RewardBound, Divisor)) and p.index is not None
        }
        return cls(formula, conditions, sets, labels, frozenset(rewards - {ELAPSED}), _counts_steps(parts))

    def with_labels(self, label: Callable[[Node], str]) -> Expression:
        """Return the formula with a label for each condition."""
        return self._replaced(self.formula, label, {})

    def _replaced(
        self, e: Expression, label: Callable[[Node], str], known: dict[int, Expression]
    ) -> Expression:
        if id(e) in self.conditions:
            return LabelReference(e.position, label(self.sets[id(e)]))
        if id(e) not in known:
            known[id(e)] = map_children(e, lambda part: self._replaced(part, label, known))
        return known[id(e)]


def _conditions(formula: Expression) -> list[Expression]:
    """Return the largest subformulas without operators that mention states."""
    holds = _holding_operators(formula)
    found, stack, seen = [], [formula], set()
    while stack:
        part = stack.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if holds[id(part)]:
            stack.extend(children(part))
        elif any(isinstance(own, (Name, LabelReference)) for own in walk(part)):
            found.append(part)
    return found


def _holding_operators(formula: Expression) -> dict[int, bool]:
    """Return of every part, by identity, whether it is or holds an operator of properties."""
    found: dict[int, bool] = {}
    stack = [(formula, False)]
    while stack:
        part, is_done = stack.pop()
        if is_done:
            found[id(part)] = isinstance(part, OPERATORS) or any(found[id(e)] for e in children(part))
        elif id(part) not in found:
            stack.append((part, True))
            stack.extend((e, False) for e in children(part))
    return found


def _counts_steps(parts: list[Expression]) -> bool:
    """Return whether a formula may distinguish one step of a CTMC from several between bisimilar states."""
    operators = [part for part in parts if isinstance(part, STATE_OPERATORS)]
    return any([STEPS.of(part)(part) for part in operators])


def _text(expression: Expression) -> str:
    try:
        return short_text(expression)
    except TypeError:
        return "of the property"


# Refusals of questions about the states inside of blocks.

_REFUSED = {
    "count": "how many states there are",
    "sum": "how many states have a value",
    "avg": "how many states have a value",
    "first": "the order of the states",
    "argmin": "which states they are",
    "argmax": "which states they are",
    "print": "which states they are",
    "printall": "which states they are",
}
"""Filters whose result on blocks differs, with the reason."""


def refuse_with_quotient(
    options: CheckOptions,
    *,
    scheduler: bool = False,
    witness: bool = False,
    certificate: bool = False,
    parts: bool = False,
) -> None:
    """Refuse options about the states of the model, which a quotient does not have."""
    refused = {
        option("scheduler"): (scheduler, "a scheduler chooses in states"),
        option("witness"): (witness, "a witness is a path of states"),
        option("certificate"): (certificate, "a certificate speaks of all states"),
        option("exact"): (options.exact, "the numbers of blocks are known as doubles"),
        "states shared by processes": (parts, "the list of transitions is that of one process"),
    }
    for name, (is_asked, why) in refused.items():
        if is_asked:
            raise OptionError(f"{option('bisimulation')}: {why}: leave it or {name} out")


def refuse_filters(model: SymbolicModel, questions: Questions) -> None:
    """Refuse filters whose result is not that of the blocks."""
    for part in walk(questions.formula):
        if not isinstance(part, Filter):
            continue
        name = f"filter({part.operator}, ...)"
        if part.operator in _REFUSED:
            raise UnsupportedError(
                f"{name} depends on {_REFUSED[part.operator]}, which blocks do not tell: ask for min, max, "
                f"range, forall or exists, or leave {option('bisimulation')} out"
            )
        if part.operator == "state" and not _is_single_state(model, part, questions):
            raise UnsupportedError(
                f"{name} wants a condition that one state satisfies, and blocks do not tell how many do: "
                f"ask for min or max, or leave {option('bisimulation')} out"
            )


def _is_single_state(model: SymbolicModel, part: Filter, questions: Questions) -> bool:
    """Return whether a filter's condition is known to hold in one state."""
    states = None if part.states is None else questions.sets.get(id(part.states))
    return states is not None and index_states(model.manager, states).size == 1


# Answers from quotients: each property is checked on the coarsest quotient that it respects.

_OF_ROUNDING = (UnknownError, RewardSplitError)
"""Faults that the model's own numbers may not have."""

_SHARE = 0.5
"""Blocks a state from which the model itself is checked."""

LISTED = 1 << 22
"""States up to which a quotient is made from a list: some 5 microseconds a state."""


@dataclass(frozen=True, eq=False)
class _Asked:
    """A quotient, and what checks properties of it."""

    questions: tuple[frozenset[Node], frozenset[str], frozenset[int], bool]
    found: ModelQuotient
    checker: Checker
    names: dict[Node, str]


class LumpingChecker:
    """Checks properties of a model by its quotients.

    Parameters
    ----------
    model : SymbolicModel
    options : CheckOptions
    progress : callable, optional
        As for `Checker`.
    scheduler, witness : bool
        Refused, with messages about quotients.
    values : bool
        Whether answers hold the values of all states, however many these are.

    Raises
    ------
    OptionError
        Something is requested that speaks of the model's own states.

    Notes
    -----
    Properties that ask for the same sets and rewards share a quotient, if they follow each other.  Time and
    memory of the first: that of `quotient_by_sets`; the list of the transitions is kept for the others.
    """

    def __init__(
        self,
        model: SymbolicModel,
        options: CheckOptions,
        progress: Callable[[int, float], None] | None = None,
        scheduler: bool = False,
        values: bool = False,
        witness: bool = False,
    ) -> None:
        refuse_with_quotient(options, scheduler=scheduler, witness=witness, parts=model.communicator.size > 1)
        self.model, self.options = model, options
        self._progress, self._values = progress, values
        self._written: WrittenChoices | None = None
        self._last: _Asked | None = None

    def answer(self, prop: Property) -> Answer:
        """Return the answer to a resolved property, `Answer.reduction` telling the size of the quotient.

        See `Checker.answer`; questions that a quotient cannot answer are errors of the answer.
        """
        started = time.perf_counter()
        try:
            if prop.error is not None:
                raise prop.error
            questions = Questions.of(prop.formula, self.model)
            refuse_filters(self.model, questions)
            asked = self._asked(questions)
            formula = prop.formula
            if asked.found.model is not self.model:
                formula = questions.with_labels(lambda states: asked.names[states])
        except BudgetError:
            raise
        except HybridError as fault:
            return self._failed(prop, fault)
        except RecursionError:
            return self._failed(prop, PropertyError("expected a property nested less deeply"))
        found = asked.checker.answer(replace(prop, formula=formula))
        reduction, states = asked.found.reduction, found.states
        if isinstance(found.fault, _OF_ROUNDING) and asked.found.model is not self.model:
            # The model's own numbers may be exact; blocks' are off by what doubles may be off.
            found = Checker(self.model, self.options, self._progress, values=self._values).answer(prop)
            reduction = replace(reduction, block_transitions=None)
            return replace(found, reduction=reduction, seconds=time.perf_counter() - started)
        if states is not None and asked.found.model is not self.model:
            states = EveryState(self.model, None, _of_blocks(states, asked.found))
            found = replace(found, range=self._range(found.range))
        seconds = time.perf_counter() - started
        return replace(found, states=states, reduction=reduction, seconds=seconds)

    def _range(self, found: Range | None) -> Range | None:
        """Return a range over blocks as one over states."""
        if found is None:
            return None
        starts = index_states(self.model.manager, self.model.initial).total
        return replace(found, states=starts if found.of_initial else None)

    def _asked(self, questions: Questions) -> _Asked:
        """Return the quotient for some questions; the last one is kept."""
        named = questions.labels
        sets = frozenset(questions.sets.values())
        key = sets, frozenset(named), questions.rewards, questions.keep_loops
        if self._last is not None and self._last.questions == key:
            return self._last
        self._last = None
        # In the order of the property, so that runs repeat.
        own = dict.fromkeys(questions.sets.values())
        word = "condition"
        while any(name.startswith(word) for name in named):
            word += "'"
        names = {states: f"{word} {k}" for k, states in enumerate(own, start=1)}
        try:
            found = quotient_by_sets(
                self.model,
                [*names, *named.values()],
                sorted(questions.rewards),
                labels=[*names.values(), *named],
                keep_loops=questions.keep_loops,
                written=self._listed,
                share=_SHARE,
                listed=LISTED,
            )
        except InterchangeError as fault:  # rewards that a list does not hold
            raise UnsupportedError(f"{fault}; leave {option('bisimulation')} out") from None
        checker = Checker(found.model, self.options, self._progress, values=self._values)
        self._last = _Asked(key, found, checker, names)
        return self._last

    def _listed(self) -> WrittenChoices:
        """Return the model written out, which is kept."""
        if self._written is None:
            self._written = WrittenChoices(self.model)
        return self._written

    def _failed(self, prop: Property, fault: HybridError) -> Answer:
        """Return an answer that says why there is none."""
        return Answer(
            prop.name,
            prop.text,
            None,
            None,
            None,
            str(fault),
            SolveStatistics(),
            0.0,
            self.options.engine,
            fault=fault,
        )


def _of_blocks(states: EveryState, found: ModelQuotient) -> Callable[[], StateValues | StateTruth]:
    """Return what finds the values of all states from those of their blocks."""
    return lambda: states.found.at(found.block_of)


# The bisimulation quotient of a model as a model of its own, made for properties given as text.


class QuotientModel(Model):
    """A model whose states are the blocks of another one, by strong bisimulation.

    `hybrid.quotient` makes it.  A state has the variables' values of the first state of its block.

    Attributes
    ----------
    block_of : ndarray of int64, shape (n_states of the original,)
        The number of the state here to which each state of the original belongs.
    """

    block_of: NDArray[np.int64]

    def lift(self, values: ArrayLike) -> NDArray[Any]:
        """Return values of the original's states from values of the blocks.

        Parameters
        ----------
        values : array_like, shape (n_states,), any dtype
            By number of the state here, as `Answer.values` are.

        Returns
        -------
        ndarray, shape (n_states of the original,), the dtype of `values`

        Raises
        ------
        ValueError
            The vector has another shape.
        """
        found = np.asarray(values)
        if found.shape != (self.n_states,):
            raise ValueError(f"values: expected shape ({self.n_states},), got {found.shape}")
        return np.asarray(found[self.block_of])


def quotient(
    model: SymbolicModel,
    properties: str | Sequence[str],
    constants: Mapping[str, bool | int | float] | None = None,
) -> QuotientModel:
    """Return the quotient of a model by the coarsest strong bisimulation that some properties respect.

    Parameters
    ----------
    model : SymbolicModel
        From `hybrid.load`.
    properties : str or sequence of str
        Properties that have the same answers of the quotient as of the model.
    constants : mapping, optional
        Values of constants that the properties declare.

    Returns
    -------
    QuotientModel
        With the labels and reward structures that the properties name.  The properties are asked of it as
        they are; other properties may have other answers.

    Raises
    ------
    hybrid.HybridError
        A property does not parse, or depends on how many states there are, or which.
    MemoryError
        The list of the transitions does not fit.

    Notes
    -----
    Time: O(transitions log states); a model of more than 2^22 states is partitioned on its decision diagrams.
    Memory: some 50 bytes a transition and 100 a state where transitions are listed; 8 bytes a state for
    `block_of`.

    Examples
    --------
    >>> import hybrid
    >>> model = hybrid.parse('''dtmc
    ... module m
    ...   s : [0..3];
    ...   [] s=0 -> 1/2:(s'=1) + 1/2:(s'=2);
    ...   [] s=1 | s=2 -> 1/3:(s'=3) + 2/3:(s'=0);
    ...   [] s=3 -> true;
    ... endmodule''')
    >>> small = hybrid.quotient(model, "P=? [ F<=3 s=3 ]")
    >>> small.n_states, small.block_of.tolist()
    (3, [2, 0, 0, 1])
    >>> small.lift(hybrid.check(small, "P=? [ F<=1 s=3 ]", values=True).values).round(3).tolist()
    [0.0, 0.333, 0.333, 1.0]
    """
    texts = [properties] if isinstance(properties, str) else list(properties)
    parsed = [parse_properties(text) for text in texts]
    asked = [prop for found in parsed for prop in _resolved(model, found, constants)]
    if not asked:
        raise PropertyError("expected a property that the quotient is made for, got none")
    labels = _labels(model, parsed)
    sets: dict[Node, None] = {}
    rewards: set[int] = set()
    keep_loops = False
    for prop in asked:
        questions = Questions.of(prop.formula, model)
        refuse_filters(model, questions)
        labels |= questions.labels
        sets |= dict.fromkeys(questions.sets.values())
        rewards |= questions.rewards
        keep_loops |= questions.keep_loops
    conditions = [states for states in sets if states not in labels.values()]
    names = [_unused(k, labels) for k in range(len(conditions))]
    found = quotient_by_sets(
        model,
        [*conditions, *labels.values()],
        sorted(rewards),
        labels=[*names, *labels],
        keep_loops=keep_loops,
        listed=LISTED,
    )
    return _with_blocks(model, found)


def _resolved(
    model: SymbolicModel, parsed: Properties, constants: Mapping[str, bool | int | float] | None
) -> tuple[Property, ...]:
    """Return the properties of a text, resolved."""
    found = resolve_properties(parsed, model.source, constants).properties
    for prop in found:
        if prop.error is not None:
            raise prop.error
    return tuple(found)


def _labels(model: SymbolicModel, texts: Sequence[Properties]) -> dict[str, Node]:
    """Return the labels of the model that some texts name, with the states where they hold."""
    parts = (part for text in texts for prop in text.properties for part in walk(prop.formula))
    named = {part.name for part in parts if isinstance(part, LabelReference)}
    found = {label.name: label.expression for label in model.source.labels if label.name in named}
    labels = {name: model.states(expression) for name, expression in found.items()}
    return labels | ({"deadlock": model.deadlocks} if "deadlock" in named else {})


def _unused(k: int, labels: Mapping[str, Node]) -> str:
    """Return a name for condition k that no label has."""
    name = f"condition {k + 1}"
    while name in labels:
        name += "'"
    return name


def _with_blocks(model: SymbolicModel, found: ModelQuotient) -> QuotientModel:
    """Return a quotient as a model that knows its blocks, all by number of the state."""
    made = QuotientModel.__new__(QuotientModel)
    made.__dict__.update(found.model.__dict__)
    numbers = for_diagram(found.model, np.arange(found.model.n_states, dtype=np.int64))
    made.block_of = numbers[for_users(model, found.block_of)]
    return made
