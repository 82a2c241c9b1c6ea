"""Cases of the attack in parts: any states to any part, the same judge."""

from __future__ import annotations

import time
import traceback
import warnings
from random import Random

import numpy as np

from hybrid.analysis.run.options import CheckOptions
from hybrid.base.errors import NotConvergedError, OptionError, PropertyError, UnknownError, UnsupportedError
from hybrid.base.state_values import StateTruth, StateValues
from hybrid.checking.answer import Answer
from hybrid.checking.checker import Checker
from hybrid.checking.filters import gathered
from hybrid.checking.in_parts import in_parts, options_of_parts
from hybrid.properties import parse_properties, resolve_properties
from hybrid.properties.tree import Property
from mtbdd.build.model import SymbolicModel
from mtbdd.diagrams.manager import Node
from mtbdd.language import LanguageError
from mtbdd.offset.states import states_from
from tests.attack.cases import Case, Finding, Record, build, state_order
from tests.attack.evaluate import Expected
from tests.attack.formulas import Bounded
from tests.attack.judge import FAILURES, Verdict, judge, judge_number
from tests.attack.questions import Question


class _TakesLongError(Exception):
    """A question with a million steps, which one process answers by powers of its matrix."""


class _Patience:
    """Ends a question that takes longer than a second or so, as progress is told twice a second."""

    def __init__(self) -> None:
        self._told = 0

    def __call__(self, iteration: int, difference: float) -> None:
        self._told += 1
        if self._told > 2:
            raise _TakesLongError


def random_owners(model: SymbolicModel, rng: Random) -> tuple[tuple[Node, ...], np.ndarray]:
    """Return disjoint sets of states, some maybe empty, and the part of every state, by index."""
    parts = min(rng.choice((2, 3, 4, 7)), model.n_states)
    part = np.array([rng.randrange(parts) for _ in range(model.n_states)])
    if rng.random() < 0.5:
        part = np.sort(part)
    return tuple(states_from(model.manager, model.index, part == p) for p in range(parts)), part


def run_in_parts(case: Case) -> Record:
    """Check the properties of a case in parts and judge the answers, and the values of all states."""
    start = time.perf_counter()
    record = Record(case.number, case.spec.kind, case.spec.family)
    text = case.spec.text()
    try:
        model = build(text)
    except LanguageError:
        record.verdicts["refused"] = 1  # what one process refuses: see `run_case`
        return record
    owners, part = random_owners(model, Random(f"{case.seed}/{case.number}/parts"))
    options = case.options | {"engine": "hybrid"}
    for question in case.questions:
        verdict, count = _judged(model, owners, part, case, question, options)
        record.values += count
        record.verdicts[verdict.kind] = record.verdicts.get(verdict.kind, 0) + 1
        if verdict.kind in FAILURES:
            record.findings.append(
                Finding(
                    case.seed, case.number, text, question.text, options, verdict.kind,
                    f"{len(owners)} parts: {verdict.detail}",
                )
            )  # fmt: skip
    record.seconds = time.perf_counter() - start
    return record


def _judged(
    model: SymbolicModel,
    owners: tuple[Node, ...],
    part: np.ndarray,
    case: Case,
    question: Question,
    options: dict[str, object],
) -> tuple[Verdict, int]:
    """Judge the answer to a property and the values of all states; a warning is a fault."""
    (prop,) = resolve_properties(parse_properties(question.text), model.source).properties
    wants_all = isinstance(question.formula, Bounded)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            answer, values = _asked(model, owners, prop, options, wants_all)
    except _TakesLongError:
        return Verdict("refused"), 0
    except Exception:
        return Verdict("crash", traceback.format_exc()), 0
    verdict, count = judge(question.expected, answer, question.formula, options), 1
    if verdict.kind in FAILURES or not isinstance(values, StateValues):
        return verdict, count
    expected, order = case.evaluator.values(question.formula), state_order(model, case.model)
    for place, state in enumerate(np.argsort(part, kind="stable")):
        exact = expected[order[state]]
        if exact is None:
            continue
        value, lower, upper = (float(v[place]) for v in (values.values, values.lower, values.upper))
        ends = (None, None) if lower != lower and upper != upper else (lower, upper)
        own = judge_number(Expected("number", *exact), value, *ends, options)
        count += 1
        if own.kind in FAILURES:
            return Verdict(own.kind, f"in state {state}: {own.detail}"), count
    return verdict, count


def _asked(
    model: SymbolicModel,
    owners: tuple[Node, ...],
    prop: Property,
    options: dict[str, object],
    wants_all: bool,
) -> tuple[Answer, StateValues | StateTruth | None]:
    """Return the answer, and the values of all states, part by part, if there is one."""
    chosen = options_of_parts(CheckOptions.of(**options))  # type: ignore[arg-type]

    def run(part: SymbolicModel) -> tuple[Answer, StateValues | StateTruth | None]:
        checker = Checker(part, chosen, _Patience() if part.communicator.rank == 0 else None)
        answer = checker.answer(prop)
        if answer.error is not None or not wants_all:
            return answer, None
        try:
            found = checker.every_state(prop.formula)
        except (NotConvergedError, OptionError, PropertyError, UnknownError, UnsupportedError):
            return answer, None
        return answer, gathered(part.communicator, found, np.arange(found.values.size))

    return in_parts(model, len(owners), run, owners)
