"""Options have types, which say what is taken: mypy reads them in tests/test_public_names.py."""

from __future__ import annotations

from typing import Any, get_args

import pytest

import hybrid
from gpu_kernels.explicit import FORMATS
from hybrid.analysis.run.options import ENGINES
from hybrid.app.experiments import experiment
from hybrid.base import option_types
from hybrid.base.check_options import HOST_STORAGES, METHODS, REPRESENTATIONS
from hybrid.matrix.backends import BACKENDS
from mtbdd.language.syntax import ModelType


@pytest.mark.parametrize(
    ("names", "taken"),
    [
        (option_types.CheckEngine, ENGINES),
        (option_types.BackendName, BACKENDS),
        (option_types.MethodName, tuple(METHODS)),
        (option_types.Representation, REPRESENTATIONS),
        (option_types.StorageName, ("auto", *FORMATS, *HOST_STORAGES)),
        (option_types.ModelTypeName, tuple(kind.value for kind in ModelType)),
    ],
    ids=["engine", "backend", "method", "representation", "storage", "type"],
)
def test_types_name_what_the_program_takes(names: Any, taken: tuple[str, ...]) -> None:
    assert sorted(get_args(names)) == sorted(taken)


COIN = "dtmc module m x : [0..2]; [] x=0 -> 0.5 : (x'=1) + 0.5 : (x'=2); endmodule"


def test_keywords_that_do_not_exist_are_refused_at_run_time_too() -> None:
    model: Any = hybrid.parse(COIN)
    wrong: dict[str, Any] = {"metod": "x"}
    for refused in (
        lambda: hybrid.check(model, "P=? [ F x=1 ]", **wrong),
        lambda: model.steady_state(**wrong),
        lambda: experiment(model, "P=? [ F x=1 ]", {}, **wrong),
    ):
        with pytest.raises(TypeError, match="metod"):
            refused()
