"""A smaller case that fails in the same way: fewer commands, rewards and states, plainer options."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tests.attack.cases import Case, Finding, draw_case, run_case
from tests.attack.evaluate import Evaluator, UndecidedError
from tests.attack.questions import Question
from tests.attack.spec import Expanded, Spec

__all__ = ["shrunk"]

_PLAIN = {
    "engine": "hybrid",
    "backend": "cpu",
    "method": "auto",
    "epsilon": 1e-8,
    "absolute": False,
    "level": "auto",
    "max_iterations": 100_000,
}
_MOST_TRIES = 60


def shrunk(finding: Finding, backend: str | None = None) -> Finding:
    """Return a finding about a smaller model and plainer options that still is a failure, or the same one."""
    case = draw_case(finding.seed, finding.number, backend)
    questions = [q for q in case.questions if q.text == finding.property]
    if not questions:
        return finding
    case = replace(case, questions=questions[:1])
    best, tries = finding, 0
    changed = True
    while changed and tries < _MOST_TRIES:
        changed = False
        for smaller in _smaller(case, backend):
            tries += 1
            found = _fails(smaller)
            if found is not None:
                case, best, changed = smaller, found, True
                break
            if tries >= _MOST_TRIES:
                break
    return best


def _fails(case: Case) -> Finding | None:
    findings = run_case(case).findings
    return findings[0] if findings else None


def _smaller(case: Case, backend: str | None) -> Iterator[Case]:
    """Return simpler cases, the most promising first."""
    for name, plain in _PLAIN.items():
        value = backend if name == "backend" and backend is not None else plain
        if case.options[name] != value:
            yield replace(case, options={**case.options, name: value})
    if case.spec.everywhere:
        yield from _with_spec(case, replace(case.spec, everywhere=False))
    for spec in _smaller_specs(case.spec):
        yield from _with_spec(case, spec)


def _smaller_specs(spec: Spec) -> Iterator[Spec]:
    for i, items in enumerate(spec.structures):
        for k in range(len(items)):
            fewer = (*spec.structures[:i], (*items[:k], *items[k + 1 :]), *spec.structures[i + 1 :])
            yield replace(spec, structures=fewer)
    for i, module in enumerate(spec.modules):
        for k in range(len(module.commands)):
            rest = (*module.commands[:k], *module.commands[k + 1 :])
            modules = (*spec.modules[:i], replace(module, commands=rest), *spec.modules[i + 1 :])
            yield replace(spec, modules=modules)


def _with_spec(case: Case, spec: Spec) -> Iterator[Case]:
    """Return the case with another model, if the property still has an answer there."""
    try:
        model = Expanded.of(spec)
        evaluator = Evaluator(model)
        (question,) = case.questions
        expected = evaluator.property(question.formula)
    except (UndecidedError, NotImplementedError, ValueError, IndexError, ZeroDivisionError):
        return
    again = Question(question.formula, expected)
    yield replace(case, spec=spec, model=model, evaluator=evaluator, questions=[again])
