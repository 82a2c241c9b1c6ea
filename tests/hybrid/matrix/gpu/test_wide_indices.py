"""Kernels with 64-bit indices on small data: those that other tests launch with 32 bits alone."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from gpu_kernels import ChoiceStep, Device, Tuning, run_choices
from gpu_kernels.explicit import MsrStream
from gpu_kernels.explicit.rows import STREAM_TILE
from gpu_kernels.graph import attractor
from hybrid.matrix.explicit import explicit_matrix
from hybrid.matrix.explicit import extract as extraction
from hybrid.matrix.gpu.tuning import LayoutOptions
from tests.builders.choice_systems import SIZE, best_of, laid_out, random_layers
from tests.builders.matrices import from_dense, random_sparse
from tests.gpu_kernels.devices import to_numpy
from tests.gpu_kernels.graph_cases import RUNNING_EXAMPLE


def launched(device: Device, name: str) -> bool:
    """Whether the emulator was asked for a kernel; on a card nobody counts."""
    return name in getattr(device, "launches", [name])


@pytest.mark.parametrize("maximise", [True, False])
def test_rows_without_entries_in_any_layer(device: Device, rng: np.random.Generator, maximise: bool) -> None:
    case = random_layers(rng)
    for matrix in case.dense.values():
        matrix[30:71] = 0.0
    tiles = laid_out(device, case, 6, LayoutOptions(Tuning(64, 1, 2), wide=True))
    assert tiles.index_bits == 64
    assert tiles.gap_rows > 0
    x = rng.random(SIZE)
    out = device.xp.full(SIZE, np.nan)
    gains = case.coded(device, tiles, maximise)
    run_choices(device, tiles, gains, ChoiceStep(maximise), device.xp.asarray(x), out)
    np.testing.assert_allclose(to_numpy(out), best_of(case.worth(x, maximise), maximise), rtol=1e-14)
    assert launched(device, "step_choice_gaps")


def test_attractors(device: Device) -> None:
    graph, xp = RUNNING_EXAMPLE.graph(device, wide=True), device.xp
    assert graph.bits == 64
    for states, expected in (([3], [1, 3]), ([2], [0, 1, 2]), ([3, 4], [0, 1, 3, 4, 7])):
        inside = xp.zeros(8, np.bool_)
        inside[states] = True
        assert np.flatnonzero(to_numpy(attractor(device, graph, inside))).tolist() == expected
    assert launched(device, "grow_attractor")


@pytest.mark.parametrize("compact", [False, True])
def test_rows_that_go_on_over_tiles(device: Device, rng: np.random.Generator, compact: bool) -> None:
    lengths = np.array([3, 2 * STREAM_TILE + 5, 0, STREAM_TILE, 7])
    columns = np.concatenate([np.arange(k) for k in lengths])
    values, starts = rng.choice([0.5, 0.25, 3.0], len(columns)), np.append(0, np.cumsum(lengths))
    matrix = csr_matrix((values, columns, starts), shape=(5, lengths.max()))
    form = MsrStream.from_csr(device, starts, columns, values, matrix.shape[1], wide=True, compact=compact)
    assert form.row_starts.dtype == form.tile_rows.dtype == np.int64
    x, out = rng.random(matrix.shape[1]), device.xp.full(5, np.nan)
    form.multiply(device, device.xp.asarray(x), out)
    np.testing.assert_allclose(to_numpy(out), matrix @ x, rtol=1e-13)
    assert launched(device, "add_leads")


def test_matrices_written_out(
    device: Device, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extraction, "index_types", lambda columns, entries: (np.int64, np.int64))
    dense = random_sparse(rng, 90, 110, 0.1)
    for backend in ("cpu", "gpu"):
        found = explicit_matrix(from_dense(dense, n_bits=7), backend)
        assert found.row_starts.dtype == found.columns.dtype == np.int64
        np.testing.assert_array_equal(found.to_host().to_scipy().toarray(), dense)
