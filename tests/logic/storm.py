"""Storm's answers to formulas of linear temporal logic, where stormpy is installed."""

from __future__ import annotations

import json
import tempfile
from fractions import Fraction
from pathlib import Path

from tests.builders.labelled import LABELS, LabelledModel
from tests.oracles.lasso_words import Tree

__all__ = ["storm_text", "storm_values"]


def storm_text(tree: Tree) -> str:
    """A formula without the operators that Storm does not read."""
    kind = tree[0]
    if kind == "p":
        return LABELS[tree[1]]
    parts = [storm_text(part) for part in tree[1:]]
    if kind in ("!", "X", "F", "G"):
        return f"({kind} {parts[0]})"
    a, b = parts
    return {
        "&": f"({a} & {b})",
        "|": f"({a} | {b})",
        "=>": f"((!{a}) | {b})",
        "<=>": f"(({a} & {b}) | ((!{a}) & (!{b})))",
        "U": f"({a} U {b})",
        "W": f"((G {a}) | ({a} U {b}))",
        "R": f"((G {b}) | ({b} U ({a} & {b})))",
    }[kind]


def storm_values(labelled: LabelledModel, operator: str, tree: Tree) -> list[Fraction] | str:
    """Storm's values in all states, or why there are none."""
    import stormpy

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.prism"
        path.write_text(labelled.text(), encoding="utf-8")
        program = stormpy.parse_prism_program(str(path), prism_compatibility=True)
    try:
        asked = stormpy.parse_properties(f"{operator} [ {storm_text(tree)} ]", program)[0]
        options = stormpy.BuilderOptions()
        options.set_build_state_valuations()
        options.set_build_all_labels()
        model = stormpy.build_model[stormpy.Rational](program, options=options)
        result = stormpy.model_checking(model, asked, only_initial_states=False)
    except RuntimeError as error:
        return str(error).splitlines()[0]
    found = [Fraction(0)] * labelled.n_states
    for state in model.states:
        place = int(json.loads(str(model.state_valuations.to_json(state)))["s"])
        found[place] = Fraction(str(result.get_value(state)))
    return found
