"""Products with compressed rows: SciPy's routine and NumPy's add up the same numbers in the same order."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from hybrid.base import scipy_routines as module
from hybrid.base.scipy_routines import csr_multiplier, scipy_alone
from tests.builders.processes import run_python


@pytest.mark.parametrize("few", [0, 1 << 12], ids=["scipy", "numpy"])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_rows_are_added_up_in_order(
    few: int, index: type, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_FEW", few)
    lengths = rng.integers(0, 5, 40)
    starts = np.append(0, np.cumsum(lengths)).astype(index)
    columns = rng.integers(0, 30, starts[-1]).astype(index)
    values = rng.random(starts[-1]) * 10.0 ** rng.integers(-8, 8, starts[-1])
    multiply, x = csr_multiplier(starts, columns, values, 30), rng.random(60)[::2]
    expected = []
    for row in range(40):
        total = 0.0
        for entry in range(starts[row], starts[row + 1]):
            total += values[entry] * x[columns[entry]]
        expected.append(total)
    assert multiply(x).tolist() == expected
    assert multiply(np.full(30, np.inf)).tolist() == [np.inf if length else 0.0 for length in lengths]


def test_what_is_not_found_alone_is_numpys(monkeypatch: pytest.MonkeyPatch) -> None:
    assert scipy_alone("sparse", "no_such_module") is None
    monkeypatch.setattr(module, "scipy_alone", lambda *path: None)
    monkeypatch.setattr(module, "_FEW", 0)
    assert csr_multiplier(np.array([0, 2]), np.array([0, 1]), np.array([1.0, 2.0]), 2)(
        np.ones(2)
    ).tolist() == [3]


@pytest.mark.skipif(sys.platform != "linux", reason="extension modules are built otherwise elsewhere")
def test_a_routine_is_loaded_without_its_package() -> None:
    code = "import sys; from hybrid.base.scipy_routines import scipy_alone as alone; import numpy; "
    done = run_python("-c", f"{code} assert alone('sparse', '_sparsetools') and 'scipy' not in sys.modules")
    assert done.returncode == 0, done.stderr
