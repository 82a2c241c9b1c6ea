"""Answer a property by Storm's sound methods, in a Python that has stormpy, and print JSON.

Usage: python storm_command.py MODEL PROPERTIES NAME CONSTANTS

The precision is Storm's own, 1e-6 relative. The file imports nothing of this repository.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import stormpy
from stormpy import environments


def answer(source: str, properties: str, name: str, constants: str) -> dict[str, Any]:
    """Return states, value and, where there are any, bounds.

    Raises
    ------
    ValueError
        If there are several initial states.
    """
    program: Any = stormpy.parse_prism_program(source, prism_compatibility=True)
    text = Path(properties).read_text(encoding="utf-8")
    text = re.sub(r'^(".*[^;\s])\s*$', r"\1;", text, flags=re.MULTILINE)  # lines end properties, as in PRISM
    asked: Any = stormpy.parse_properties(text, program, property_filter=[name])
    program, asked = stormpy.instantiate_constants(program, constants, asked)
    model: Any = stormpy.build_model(program, asked)
    if len(model.initial_states) != 1:
        raise ValueError(f"{len(model.initial_states)} initial states")
    result: Any = stormpy.model_checking(
        model, asked[0], only_initial_states=True, environment=environments.sound()
    )
    value = result[model.initial_states[0]]
    found = {"value": float(value), "lower": None, "upper": None}
    for bound in ("lower", "upper"):
        known = getattr(value, bound, None)
        found[bound] = None if known is None else float(known)
    return {"states": model.nr_states, **found}


if __name__ == "__main__":
    print(json.dumps(answer(*sys.argv[1:])))
