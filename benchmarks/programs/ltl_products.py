"""Whole answers to questions in linear temporal logic, on compressed and on written-out matrices.

The model is built before.  An answer is the translation, the product of model and automaton, its graph, and
reachability between bounds with all its set-up; every engine answers twice, and the second answer counts:
what is compiled is compiled.  The bounds of all have to meet.
"""

from __future__ import annotations

import time

import hybrid
from benchmarks.library.arguments import parser
from benchmarks.library.models import EXAMPLES
from benchmarks.library.records import Records, Row
from hybrid.base.option_types import BackendName, Engine
from mtbdd.language import parse_constants

QUESTIONS = {
    "kanban": "P=? [ (z4<t) U (x2=t & (X ((z4<t) U (x3=t)))) ]",
    "coin": "Pmax=? [ (F (heads1 & at1=3)) & (G F at2=3) & (F (G !heads2)) ]",
}
DEFAULT = ("kanban:t=2", "kanban:t=3", "coin:K=8", "coin:K=24")
ENGINES: tuple[Engine, ...] = ("hybrid", "explicit")


def measure(row: Row, name: str, constants: str, backend: BackendName) -> None:
    """Measure one model on both engines."""
    model = hybrid.load(EXAMPLES / f"{name}.prism", parse_constants(constants))
    row.update(question=QUESTIONS[name], states=model.n_states, transitions=model.n_transitions)
    lowest, highest = 0.0, 1.0
    for engine in ENGINES:
        for turn in ("first_seconds", "seconds"):
            started = time.perf_counter()
            answer = hybrid.check(model, QUESTIONS[name], engine=engine, backend=backend)
            seconds = time.perf_counter() - started
            row.setdefault(engine, {})[turn] = seconds
        assert answer.lower is not None and answer.upper is not None
        lowest, highest = max(lowest, answer.lower), min(highest, answer.upper)
        own = answer.statistics
        row[engine] |= {
            "value": answer.value,
            "iterations": own.iterations,
            "iteration_seconds": own.seconds,
            "matrix_bytes": own.representation_bytes,
            "backend": own.backend,
        }
    if lowest > highest:
        raise ArithmeticError("the bounds of the two engines do not meet")


def main() -> None:
    """Measure, print a table, write a record."""
    arguments = parser(__doc__, "seconds", "resume")
    arguments.add_argument("models", nargs="*", metavar="MODEL:CONSTANTS")
    arguments.add_argument("--backend", choices=("cpu", "gpu"), default="cpu")
    options = arguments.parse_args()
    records = Records("ltl_products", options, backend=options.backend)
    for spec in options.models or DEFAULT:
        name, _, constants = spec.partition(":")
        records.run({"model": spec}, measure, name, constants, options.backend)
    records.show()


if __name__ == "__main__":
    main()
