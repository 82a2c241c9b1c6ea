"""Long-run averages of random processes: between bounds, exact, and of the chains that schedulers leave."""

from __future__ import annotations

from fractions import Fraction
from random import Random
from typing import Any

import hybrid
from hybrid.models.model import Model
from mtbdd.build.model import SymbolicModel
from tests.attack.cases import Case, Finding, Record, build, random_options, run_case
from tests.attack.formulas import LongRun, Reward
from tests.attack.in_parts import run_in_parts
from tests.attack.judge import ENCLOSING
from tests.attack.questions import Question, average_questions

__all__ = ["average_case", "run_averages"]

_MOST_ITERATIONS = 600  # a few slow cases take as long as all others otherwise
_IN_PARTS = 10  # cases of which one is asked in parts, too


def average_case(seed: int, number: int, backend: str | None = None) -> Case:
    """Return a process with questions about averages: the same for the same seed and number."""
    rng = Random(f"{seed}/{number}/averages")
    spec, model, asked, evaluator = average_questions(rng)
    options = random_options(rng, "mdp", backend) | {"max_iterations": _MOST_ITERATIONS}
    return Case(seed, number, spec, model, asked, evaluator, options)


def run_averages(case: Case) -> Record:
    """Draw a process of the same seed and number in the place of a case, and judge the answers about it."""
    own = average_case(case.seed, case.number, "gpu" if case.options["backend"] == "gpu" else None)
    record = run_case(own)
    if own.number % _IN_PARTS == 0:
        shared = run_in_parts(own)
        record.findings += shared.findings
        for verdict, count in shared.verdicts.items():
            record.verdicts[verdict] = record.verdicts.get(verdict, 0) + count
    model, text = build(own.spec.text()), own.spec.text()
    for question in own.questions:
        kinds = (_exact_fault, _scheduler_fault)
        for fault in (found for kind in kinds if (found := kind(model, own, question)) is not None):
            record.verdicts["wrong"] = record.verdicts.get("wrong", 0) + 1
            finding = Finding(own.seed, own.number, text, question.text, own.options, "wrong", fault)
            record.findings.append(finding)
    return record


def _asks_average(question: Question) -> bool:
    formula = question.formula
    is_average = isinstance(formula, LongRun) or (isinstance(formula, Reward) and formula.kind == "S")
    return is_average and formula.comparison is None and question.expected.kind == "number"


def _exact_fault(model: SymbolicModel, case: Case, question: Question) -> str | None:
    """Return how the exact answer differs from the expected one."""
    if not _asks_average(question):
        return None
    answer = hybrid.check(model, question.text, exact=True, throw=False)
    if answer.error is not None or answer.exact == question.expected.low:
        return None
    return f"exactly {answer.exact}, expected {question.expected.low}"


def _scheduler_fault(model: SymbolicModel, case: Case, question: Question) -> str | None:
    """Return how the chain of the scheduler differs: its average has to be within the bounds.

    Operators in one another ask something else of a chain.
    """
    is_nested = isinstance(question.formula, LongRun) and any(
        op in question.formula.states.text() for op in "PSR"
    )
    if is_nested or not _asks_average(question) or case.options["method"] not in ENCLOSING:
        return None
    options: dict[str, Any] = case.options | {"method": "auto"}
    answer = hybrid.check(model, question.text, scheduler=True, throw=False, **options)
    if answer.error is not None:
        return None
    chain = Model.of(model).with_scheduler(answer.scheduler)
    text = question.text.replace("Smax", "S").replace("Smin", "S").replace("}max", "}").replace("}min", "}")
    own = hybrid.check(chain, text, exact=True, throw=False)
    if own.error is not None:
        return None
    low, value, high = Fraction(answer.lower), own.exact, Fraction(answer.upper)
    return (
        None if low <= value <= high else f"the scheduler's chain has {float(value)}, expected {low}, {high}"
    )
