"""Cases of the attack, asked in the symbolic engine, whose vectors are diagrams; the same judge."""

from __future__ import annotations

from dataclasses import replace

from tests.attack.cases import Case, Record, run_case

MOST_ITERATIONS = 500
"""Of systems whose steps are slow beside those of arrays."""

BOUNDS = ("auto", "optimistic", "interval")
"""Methods of the engine."""


def run_symbolic(case: Case) -> Record:
    """Check the properties of a case in the symbolic engine and judge the answers."""
    method = case.options["method"] if case.options["method"] in BOUNDS else "auto"
    own = {"engine": "symbolic", "backend": "auto", "method": method, "representation": "row-types"}
    own |= {"max_iterations": MOST_ITERATIONS}
    return run_case(replace(case, options=case.options | own))
