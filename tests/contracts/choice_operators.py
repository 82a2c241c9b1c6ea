"""Every operator over choices, by name, made from offers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hybrid.analysis.run.options import CheckOptions
from hybrid.matrix.operators.array_choices import ArrayChoices
from hybrid.matrix.operators.device_choices import device_choices, device_rows
from hybrid.matrix.operators.explicit_choices import ExplicitChoices, write_choices
from hybrid.matrix.operators.hybrid_choices import hybrid_choices
from hybrid.matrix.space.choice_operator import ChoiceOperator, ChoiceProblem, Quotient
from tests.builders.choice_systems import Choices
from tests.gpu_kernels.devices import DEVICES

__all__ = ["CHOICE_OPERATORS", "ONE_PASS", "Operators", "choice_parameters", "make_operator"]

Operators = Callable[[np.random.Generator, bool, Quotient | None, bool], tuple[Choices, ChoiceOperator]]
"""Draws choices, to maximise or not, with gains of few values or not, and makes the operator of them."""

ONE_PASS = "one pass"
"""The operator that takes rows for all states alone."""

CHOICE_OPERATORS = ("cpu", "cpu at the top", "cpu, in tasks", "reference", "written out", "in arrays")
ON_DEVICE = ("gpu, layer by layer", "gpu, in tasks", ONE_PASS, "gpu, written out")


def make_operator(
    name: str, case: Choices, groups: Quotient | None = None, slack: float = 1e-14
) -> ChoiceOperator:
    """Return an operator; those of a device on the current one."""
    arguments = case.offers, ChoiceProblem(case.size, case.maximise, groups, slack)
    if name == "written out":
        return ExplicitChoices(write_choices(case.offers, case.size), arguments[1])
    if name == "in arrays":
        return ArrayChoices(write_choices(case.offers, case.size), arguments[1])
    if name == "gpu, written out":
        return device_rows(*arguments)
    if name == ONE_PASS:
        found = device_choices(*arguments, CheckOptions(backend="gpu").matrix_backend())
        assert found is not None
        return found
    backend = name.partition(",")[0].partition(" ")[0]
    level = 0 if name.endswith("top") else "auto"
    representation = "tasks" if name.endswith("tasks") else "row-types"
    options = CheckOptions(backend=backend, level=level, representation=representation)
    return hybrid_choices(*arguments, options.matrix_backend(), level, representation)


def choice_parameters() -> list[Any]:
    """Return the parameters of tests over all of them: names, and for a device's the kind of device."""
    found: list[Any] = [pytest.param((name, None), id=name) for name in CHOICE_OPERATORS]
    for device in DEVICES:
        kind, marks = (device, ()) if isinstance(device, str) else (device.values[0], device.marks)
        found += [pytest.param((name, kind), id=f"{name}-{kind}", marks=marks) for name in ON_DEVICE]
    return found
