"""Makers of every implementation, each on the device that it is for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from hybrid.matrix.space.choice_operator import ChoiceOperator, Quotient
from tests.builders.choice_systems import Choices, random_choices
from tests.contracts.bellman import BellmanCase, chain_case, choice_case
from tests.contracts.choice_operators import ONE_PASS, Operators, choice_parameters, make_operator
from tests.contracts.matrices import MATRICES, ON_DEVICE, Make, matrix_parameters
from tests.gpu_kernels.devices import device_of


@pytest.fixture(params=matrix_parameters())
def make(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """A function that makes a matrix of one implementation from a dense array."""
    name, kind = request.param
    if kind is None:
        yield MATRICES[name]
        return
    # Matrices of tests are few items, which the host would lay out; what the device does is to be tested.
    monkeypatch.setattr("gpu_kernels.runtime.device.HOST_ITEMS", -1)
    with device_of(kind) as device:
        yield lambda dense: ON_DEVICE[name](dense, device)


@pytest.fixture(params=choice_parameters())
def operator_name(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of one operator over choices, its device the current one."""
    name, kind = request.param
    if kind is None:
        yield name
        return
    monkeypatch.setattr("gpu_kernels.runtime.device.HOST_ITEMS", -1)
    with device_of(kind):
        yield name


@pytest.fixture
def operators(operator_name: str) -> Operators:
    """A function that draws choices and makes one implementation's operator of them."""

    def draw(
        rng: np.random.Generator, maximise: bool, groups: Quotient | None, few: bool
    ) -> tuple[Choices, ChoiceOperator]:
        case = random_choices(rng, maximise, partial=operator_name != ONE_PASS, few=few)
        return case, make_operator(operator_name, case, groups)

    return draw


@pytest.fixture
def chain(make: Make, seed: int) -> BellmanCase:
    """A chain's equation on one implementation of its matrix."""
    return chain_case(make, seed)


@pytest.fixture(params=[True, False], ids=["max", "min"])
def choices(request: pytest.FixtureRequest, operator_name: str, seed: int) -> BellmanCase:
    """An optimum's equation on one operator over choices."""
    return choice_case(operator_name, seed, request.param)
