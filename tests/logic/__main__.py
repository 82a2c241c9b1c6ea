"""Random formulas of linear temporal logic in the number that reliability asks for.

``python -m tests.logic --formulas 2000 --models 500`` translates so many formulas and asks so many models of
each kind; with Spot and Storm beside the definitions where `spottl` and `stormpy` are installed.  Status 1 if
anything differs.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import sys
import time
from collections import Counter
from importlib.util import find_spec
from typing import Any

from tests.logic.languages import language_case
from tests.logic.values import value_case
from tests.runs import add_record_option, append_run


def main(arguments: list[str] | None = None) -> int:
    """Run and print counts, sizes and everything that differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.logic", description=__doc__)
    parser.add_argument("--formulas", type=int, default=2000)
    parser.add_argument("--models", type=int, default=500)
    parser.add_argument("--words", type=int, default=40, help="words a shape and formula (default 40)")
    parser.add_argument("--seed", type=int, default=1)
    add_record_option(parser, "logic")
    chosen = parser.parse_args(arguments)
    begin = time.perf_counter()
    spot = importlib.import_module("spot") if find_spec("spot") else None
    told = _languages(chosen.seed, chosen.formulas, chosen.words, spot)
    values = [_values(chosen.seed, chosen.models, kind) for kind in ("dtmc", "ctmc", "mdp")]
    if chosen.record is not None:
        seconds = round(time.perf_counter() - begin)
        append_run(chosen.record, seed=chosen.seed, **told, values=values, seconds=seconds)
    return 1 if told["differ"] or any(kind["differ"] for kind in values) else 0


def _languages(seed: int, count: int, words: int, spot: object) -> dict[str, Any]:
    """Compare automata with the definition and with Spot's; return what came of it."""
    cases = [language_case(seed, number, words, spot) for number in range(count)]  # type: ignore[arg-type]
    faults = [case.difference for case in cases if case.difference is not None]
    print(f"{count} formulas, {len(faults)} differ, Spot {'asked' if spot else 'not installed'}", *faults)
    told: dict[str, Any] = {"formulas": count, "words": words, "differ": len(faults)}
    ratios = sorted(case.states / case.spot_states for case in cases if case.spot_states)
    if ratios:
        middle = statistics.median(ratios)
        tail = [ratios[int(len(ratios) * q)] for q in (0.9, 0.99)]
        print(f"  states against Spot: median {middle:.2f}, 90% {tail[0]:.2f}, 99% {tail[1]:.2f}")
        told["states_over_spot"] = [middle, *tail]
    return told


def _values(seed: int, count: int, kind: str) -> dict[str, Any]:
    """Compare probabilities on models of a kind with exact ones and with Storm's; return what came of it."""
    with_storm = find_spec("stormpy") is not None
    cases = [case for number in range(count) for case in value_case(seed, number, kind, with_storm)]
    faults = [case.difference for case in cases if case.difference is not None]
    told = dict(Counter(case.storm for case in cases))
    print(f"{count} models of type {kind}, {len(cases)} values, {len(faults)} differ, Storm {told}", *faults)
    return {"kind": kind, "models": count, "values": len(cases), "differ": len(faults), "storm": told}


if __name__ == "__main__":
    sys.exit(main())
