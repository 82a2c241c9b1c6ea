"""The registry of methods says of each what its solver says, and refusals list what it offers."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from hybrid.analysis.run.options import CheckOptions
from hybrid.base.check_options import ESTIMATE, METHODS, WITH_BOUNDS, advised
from hybrid.base.errors import OptionError
from hybrid.base.option_types import MethodName


@pytest.mark.parametrize("name", METHODS)
def test_a_record_says_what_the_solver_does(name: Any) -> None:
    method, options = METHODS[name], CheckOptions(method=name)
    bounding = options.bounding_method()
    solver = options.solver(False) if bounding is None else bounding
    assert (method.linear == WITH_BOUNDS) == (bounding is not None)
    assert method.vectors == solver.vectors
    assert solver.name == (name if name != "auto" else "optimistic")
    if not method.average:
        with pytest.raises(OptionError, match="choose auto, interval or bicgstab"):
            options.average_reward()
    else:
        assert (method.average == ESTIMATE) == (options.average_reward() is None)
    if method.steady:
        assert options.solver(True).vectors <= method.vectors
    else:
        with pytest.raises(OptionError, match="choose auto"):
            options.solver(True)


@pytest.mark.parametrize("name", METHODS)
def test_relaxation_is_refused_where_the_record_says_so(name: Any) -> None:
    if METHODS[name].relaxed or name == "auto":
        assert METHODS[CheckOptions.of(method=name, omega=0.5).method].relaxed
    else:
        with pytest.raises(OptionError, match="omega belongs to the methods jor and gauss-seidel, not to"):
            CheckOptions.of(method=name, omega=0.5)


def test_every_method_has_a_place_in_advice_of_its_own() -> None:
    assert tuple(METHODS) == get_args(MethodName)
    assert sorted(method.advice for method in METHODS.values()) == list(range(len(METHODS)))
    assert advised(["jor"]) == "jor"
    assert advised(["power", "auto", "jor"]) == "auto, jor or power"
