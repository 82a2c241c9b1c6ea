"""Answers from quotients: each property is checked on the coarsest quotient that it respects."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.run.statistics import SolveStatistics
from hybrid.base.errors import HybridError, PropertyError, UnknownError
from hybrid.base.state_values import StateTruth, StateValues
from hybrid.checking.answer import Answer, EveryState
from hybrid.checking.checker import Checker
from hybrid.checking.filters import Range
from hybrid.models.lumping.partition import WrittenChoices
from hybrid.models.lumping.questions import Questions, refuse_filters, refuse_with_quotient
from hybrid.models.lumping.quotient import ModelQuotient, quotient_by_sets
from hybrid.properties.tree import Property
from mtbdd.base.budget import BudgetError
from mtbdd.build.model import SymbolicModel
from mtbdd.build.reward_split import RewardSplitError
from mtbdd.diagrams.manager import Node
from mtbdd.offset.states import index_states

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
