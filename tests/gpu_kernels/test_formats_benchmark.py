"""The benchmark of the formats, with the emulator in place of a card: its matrices, rows and tables."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import scipy.sparse

from gpu_kernels import FORMATS, Device
from tests.gpu_kernels.devices import to_numpy

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(FOLDER))
    import explicit_formats

    yield explicit_formats
    # The script puts its folder on the path itself; its neighbours have names that others may want.
    for name in ("explicit_formats", "gpu_product", "record"):
        sys.modules.pop(name, None)


def timer(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def test_synthetic_matrix_is_a_matrix_of_few_values(script: ModuleType, device: Device) -> None:
    starts, columns, values = (to_numpy(a) for a in script.synthetic_matrix(device.xp, 1000, 8))
    matrix = scipy.sparse.csr_matrix((values, columns, starts), shape=(1000, 1000))
    assert matrix.has_canonical_format
    assert 3 < matrix.nnz / 1000 < 8
    assert len(np.unique(values)) == 8
    assert len(np.unique(columns - np.repeat(np.arange(1000), np.diff(starts)))) > 5


def test_synthetic_matrix_is_measured_in_every_format(script: ModuleType, device: Device) -> None:
    names = [name for name in FORMATS if name != "cusparse"]
    row = script.measure_synthetic(device, 500, 6, timer, 1e9, names)
    assert [found["format"] for found in row["formats"]] == names
    for found in row["formats"]:
        assert found["difference"] < 1e-14
        assert found["traffic_bytes"] >= found["bytes"]
        assert found["share_of_copy"] == pytest.approx(found["bytes_per_second"] / 1e9)
        assert found["elements_an_entry"] >= 1.0
    assert "delta-csell" in script.table(row)


def test_model_is_measured_beside_the_hybrid_engine(script: ModuleType, device: Device) -> None:
    row = script.measure_model(device, "herman", "N=5", timer, 1e9, ["cmsr-wl", "csell"])
    assert (row["states"], row["entries"]) == (32, 3**5 + 1)
    assert row["hybrid"]["bytes"] > 0
    assert max(found["difference"] for found in row["formats"]) < 1e-14
    lines = script.table(row).splitlines()
    assert lines[0].startswith("herman N=5: 32 states, 244 entries")
    assert len(lines) == 5


def test_formats_that_cannot_be_made_keep_their_reason(script: ModuleType, device: Device) -> None:
    csr = script.synthetic_matrix(device.xp, 50, 3)
    broken = (csr[0], csr[1] + 50, csr[2])
    x = device.xp.ones(50)
    (row,) = script.measure_formats(device, broken, x, device.xp.ones(50), timer, 1e9, ["sell"])
    assert "columns: expected" in row["error"]
    assert "sell" in script.table({"model": "m", "constants": "", "states": 50, "entries": 1, "values": 1,
                                   "hybrid": None, "formats": [row]})  # fmt: skip


def test_unknown_formats_are_refused(script: ModuleType) -> None:
    assert script.formats_of(None) == tuple(FORMATS)
    assert script.formats_of(["sell"]) == ("sell",)
    with pytest.raises(ValueError, match="no format ell; there are msr"):
        script.formats_of(["ell"])


def test_copy_bandwidth_counts_both_directions(script: ModuleType, device: Device) -> None:
    assert script.copy_bandwidth(device, lambda work: (work(), 2.0)[1], size=800) == 800.0
