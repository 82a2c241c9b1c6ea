"""A case of the attack: model, properties and options, drawn from a seed, and the verdicts on the answers."""

from __future__ import annotations

import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

import hybrid
from hybrid.analysis.run.options import CheckOptions
from hybrid.base.errors import NotConvergedError, OptionError, PropertyError, UnknownError, UnsupportedError
from hybrid.base.state_values import StateValues
from hybrid.checking.checker import Checker
from hybrid.properties import parse_properties, resolve_properties
from mtbdd.build.build import build_model
from mtbdd.build.model import SymbolicModel
from mtbdd.language import LanguageError, parse_model, resolve
from tests.attack.evaluate import Evaluator, Expected
from tests.attack.families import random_spec
from tests.attack.formulas import Bounded
from tests.attack.further import further_questions
from tests.attack.judge import BEYOND_DOUBLES, FAILURES, Verdict, judge, judge_number
from tests.attack.questions import Question, questions
from tests.attack.spec import Expanded, Spec

__all__ = ["Case", "Finding", "Record", "draw_case", "random_options", "run_case"]

_QUESTIONS = 3
_FURTHER = 1
_MOST_ITERATIONS = 5000


Ask = Callable[..., hybrid.Answer]


@dataclass
class Case:
    """A model with properties and options."""

    seed: int
    number: int
    spec: Spec
    model: Expanded
    questions: list[Question]
    evaluator: Evaluator
    options: dict[str, Any]


@dataclass
class Finding:
    """A failure, with all that it takes to see it again."""

    seed: int
    number: int
    text: str
    property: str
    options: dict[str, Any]
    verdict: str
    detail: str

    def report(self) -> str:
        """Return the failure in words."""
        return (
            f"{self.verdict}: seed {self.seed}, case {self.number}: {self.detail}\n"
            f"  property {self.property}\n  options {self.options}\n{self.text}"
        )


@dataclass
class Record:
    """What a case showed: how many answers got which verdict, and the failures."""

    number: int
    kind: str = ""
    family: str = ""
    values: int = 0
    seconds: float = 0.0
    verdicts: dict[str, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)


def draw_case(seed: int, number: int, backend: str | None = None) -> Case:
    """Return a case: the same for the same seed and number, whatever cases were drawn before."""
    rng = Random(f"{seed}/{number}")
    spec = random_spec(rng)
    model = Expanded.of(spec)
    asked, evaluator = questions(rng, model, len(spec.structures), _QUESTIONS)
    options = random_options(rng, spec.kind, backend)
    # A generator of their own: the questions above are those of the seed whatever comes after them.
    further = Random(f"{seed}/{number}/further")
    asked += further_questions(further, model, len(spec.structures), evaluator, _FURTHER)
    return Case(seed, number, spec, model, asked, evaluator, options)


def random_options(rng: Random, kind: str, backend: str | None) -> dict[str, Any]:
    """Return options of a check; `backend` None draws one of those that every machine has."""
    engine = rng.choice(("hybrid", "hybrid", "explicit"))
    estimates = ("jacobi", "power") if kind == "mdp" else ("jacobi", "power", "bicgstab")
    offered = ("cpu",) if engine == "explicit" else ("cpu", "cpu", "reference")
    return {
        "engine": engine,
        "backend": rng.choice(offered) if backend is None else backend,
        "method": rng.choice(("auto", "auto", "auto", "optimistic", "interval"))
        if rng.random() < 0.95
        else rng.choice(estimates),
        "epsilon": 10.0 ** -rng.randint(6, 12),
        "absolute": rng.random() < 0.2,
        "level": rng.choice(("auto", "auto", "min-memory", 0)),
        "max_iterations": _MOST_ITERATIONS,
        "representation": rng.choice(("row-types", "tasks")) if engine == "hybrid" else "row-types",
    }


def build(text: str) -> SymbolicModel:
    """Build a model from its text."""
    return build_model(resolve(parse_model(text), {}))


def run_case(case: Case, ask: Ask | None = None) -> Record:
    """Check the properties of a case and judge the answers; faults of the program are findings, too.

    Parameters
    ----------
    ask : callable, optional
        Called as `hybrid.check`, in whose place it answers.
    """
    start = time.perf_counter()
    record = Record(case.number, case.spec.kind, case.spec.family)
    text = case.spec.text()

    def note(verdict: Verdict, prop: str) -> None:
        record.verdicts[verdict.kind] = record.verdicts.get(verdict.kind, 0) + 1
        if verdict.kind in FAILURES:
            record.findings.append(
                Finding(case.seed, case.number, text, prop, case.options, verdict.kind, verdict.detail)
            )

    try:
        model = build(text)
        if model.n_states != case.model.size:
            note(Verdict("wrong", f"{model.n_states} states, expected {case.model.size}"), "")
            return record
    except Exception as error:
        beyond = isinstance(error, LanguageError) and BEYOND_DOUBLES.search(str(error))
        note(Verdict("refused" if beyond else "crash", traceback.format_exc()), "")
        return record
    for question in case.questions:
        verdict, count = _judge_question(model, case, question, ask or hybrid.check)
        record.values += count
        note(verdict, question.text)
    record.seconds = time.perf_counter() - start
    return record


def _judge_question(model: SymbolicModel, case: Case, question: Question, ask: Ask) -> tuple[Verdict, int]:
    """Judge the answer to a property, and the values of all states; return how many numbers were looked at.

    A warning is a failure where the answer is none: warnings are for developers, not for users.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            answer = ask(model, question.text, **({"throw": False} | case.options))
            verdict, count = judge(question.expected, answer, question.formula, case.options), 1
            if verdict.kind not in FAILURES and isinstance(question.formula, Bounded):
                found, more = _judge_states(model, case, question)
                verdict, count = verdict if found is None else found, count + more
        except Exception:
            return Verdict("crash", traceback.format_exc()), 0
    if caught and verdict.kind not in FAILURES:
        first = caught[0]
        return Verdict(
            "warned", f"{first.category.__name__}: {first.message} at {first.filename}:{first.lineno}"
        ), count
    return verdict, count


def _judge_states(model: SymbolicModel, case: Case, question: Question) -> tuple[Verdict | None, int]:
    """Judge the values or truths of all states; return a failure, if any, and how many were looked at."""
    checker = Checker(model, CheckOptions.of(**case.options))
    (prop,) = resolve_properties(parse_properties(question.text), model.source).properties
    try:
        found = checker.evaluate(prop.formula)
    except (NotConvergedError, OptionError, UnknownError, UnsupportedError):
        return None, 0
    except (LanguageError, PropertyError, OverflowError) as error:
        # The same refusal as that of the answer.
        if BEYOND_DOUBLES.search(str(error)):
            return None, 0
        raise
    expected = case.evaluator.values(question.formula)
    order = state_order(model, case.model)
    for place, state in enumerate(order):
        where = f"in state {case.model.valuation(state)}: "
        exact = expected[state]
        if isinstance(found, StateValues):
            if exact is None:
                continue
            numbers = (float(v[place]) for v in (found.values, found.lower, found.upper))
            value, lower, upper = numbers
            ends = (None, None) if lower != lower and upper != upper else (lower, upper)
            verdict = judge_number(Expected("number", *exact), value, *ends, case.options)
        else:
            if found.unknown is not None and found.unknown[place]:
                continue
            if found.unproven is not None and found.unproven[place]:
                continue
            good = bool(found.values[place]) == exact
            verdict = Verdict("right") if good else Verdict("wrong", f"expected {exact}")
        if verdict.kind in FAILURES:
            return Verdict(verdict.kind, where + verdict.detail), len(order)
    return None, len(order)


def state_order(model: SymbolicModel, expanded: Expanded) -> Sequence[int]:
    """Return the numbers of the states in the order that the checker has them."""
    index = {state: i for i, state in enumerate(expanded.states)}
    described = model.describe(np.arange(model.n_states))
    return [index[tuple(int(state[name]) for name in expanded.names)] for state in described]
