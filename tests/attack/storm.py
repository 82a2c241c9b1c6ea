"""The oracle of the attack against Storm's exact engine, on the same text; needs stormpy.

``python -m tests.attack.storm --cases N --seed S`` prints how many vectors agree; with ``--averages`` of the
cases of ``python -m tests.attack --averages``. A Python with stormpy needs nothing else for that.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from collections import Counter
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

from tests.attack.evaluate import Evaluator
from tests.attack.families import random_spec
from tests.attack.formulas import Bounded, Filtered, Formula, Probability, Reward, subformulas
from tests.attack.questions import average_questions, questions
from tests.attack.spec import Expanded

__all__ = ["compare_case", "comparable"]


def comparable(formula: Formula, model: Expanded) -> bool:
    """Return whether Storm's exact engine means and answers a formula as this project does.

    Windows of time have no exact answer there.  Storm earns nothing in deadlocks, sums no rewards below zero,
    and asks of rewards compared with 0 whether any state on the way earns some.
    """
    if not isinstance(formula, Bounded):
        return False
    for part in subformulas(formula):
        if isinstance(part, Filtered):
            return False
        if isinstance(part, Probability) and part.path.span is not None:
            if model.kind == "ctmc" or (part.path.span.lower > 0 and part.path.left is not None):
                return False
        if isinstance(part, Probability) and part.path.operator in ("R", "W"):
            return False
        if isinstance(part, Reward):
            if part.threshold is not None and part.threshold.value == 0:
                return False
            if model.deadlocks or (model.kind == "ctmc" and part.time is not None):
                return False
            rewards = [r for s in model.rewards for r in s] + [
                r for c in model.choices for x in c for r in x.rewards
            ]
            if any(r < 0 for r in rewards):
                return False
    return True


def compare_case(seed: int, number: int, *, averages: bool = False) -> list[tuple[str, str, str]]:
    """Return, for every property of a case, its text, "same", "different" or "skipped", and details."""
    if averages:
        spec, model, asked, evaluator = average_questions(Random(f"{seed}/{number}/averages"))
    else:
        rng = Random(f"storm/{seed}/{number}")
        spec = random_spec(rng)
        model = Expanded.of(spec)
        asked, evaluator = questions(rng, model, len(spec.structures), 6)
    commands = [c for m in spec.modules for c in m.commands]
    if spec.kind != "ctmc" and any(sum(w.value for w, _ in c.updates) != 1 for c in commands):
        return []  # Storm takes the rows as they are
    found = []
    for question in asked:
        formula = question.formula
        if not comparable(formula, model):
            continue
        try:
            storm = _storm_values(spec.text(), formula.text())
        except Exception as error:  # whatever Storm does not take
            found.append((formula.text(), "skipped", str(error).splitlines()[0]))
            continue
        found.append((formula.text(), *_compared(evaluator, formula, model, storm, spec.text())))
    return found


def _compared(
    evaluator: Evaluator, formula: Formula, model: Expanded, storm: dict[tuple[int, ...], Any], text: str
) -> tuple[str, str]:
    for state, exact in enumerate(evaluator.values(formula)):
        other = storm[model.states[state]]
        same = (
            exact == other if isinstance(exact, bool) else exact is not None and exact[0] <= other <= exact[1]
        )
        if not same:
            return "different", f"in {model.valuation(state)}: {exact} here, {other} there\n{text}"
    return "same", ""


def _storm_values(text: str, formula: str) -> dict[tuple[int, ...], Any]:
    """Return Storm's exact values by state."""
    import stormpy

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.prism"
        path.write_text(text, encoding="utf-8")
        program = stormpy.parse_prism_program(str(path), prism_compatibility=True)
    optimum = "max" if text.startswith("mdp") else ""
    asked, other = stormpy.parse_properties(f"{formula}; P{optimum}=? [ X true ]", program)
    # Built for one formula alone, a model ends where that is decided.
    options = stormpy.BuilderOptions([asked.get_raw_formula(), other.get_raw_formula()])
    options.set_build_state_valuations()
    options.set_build_all_labels()
    options.set_build_all_reward_models()
    model = stormpy.build_model[stormpy.Rational](program, options=options)
    result = stormpy.model_checking(model, asked, only_initial_states=False)
    names = [line.split(":")[0].split()[-1] for line in text.splitlines() if " : [" in line]
    found = {}
    for state in model.states:
        values = _valuation(model.state_valuations, state, names)
        got = result.get_value(state) if hasattr(result, "get_value") else result[state]
        found[values] = got if isinstance(got, bool) else _number(str(got))
    return found


def _valuation(valuations: Any, state: int, names: list[str]) -> tuple[int, ...]:
    """Return the numbers of a state's variables, by their order in the text."""
    told = json.loads(str(valuations.to_json(state)))
    return tuple(int(told[name]) for name in names)


def _number(text: str) -> Fraction | float:
    return math.inf if "inf" in text else Fraction(text)


def main() -> int:
    """Compare cases and print the counts; status 1 if any differ."""
    parser = argparse.ArgumentParser(prog="python -m tests.attack.storm", description=__doc__)
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--averages", action="store_true", help="of decision processes, in the long run")
    chosen = parser.parse_args()
    counts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    models = 0
    for number in range(chosen.cases):
        found = compare_case(chosen.seed, number, averages=chosen.averages)
        models += any(verdict != "skipped" for _, verdict, _ in found)
        for text, verdict, detail in found:
            counts[verdict] += 1
            if verdict == "different":
                print(f"case {number}: {text}\n{detail}")
            elif verdict == "skipped":
                reasons[detail[:90]] += 1
    print(f"{models} models: {dict(counts)}")
    for reason, count in reasons.most_common(10):
        print(f"  skipped {count}: {reason}")
    return 1 if counts["different"] else 0


if __name__ == "__main__":
    sys.exit(main())
