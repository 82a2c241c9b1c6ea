"""Example models in every explicit format: the symbolic matrix's products, and the entries back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hybrid
from gpu_kernels import FORMATS, Device
from hybrid.matrix.explicit import CsrArrays, ExplicitOperator
from tests.gpu_kernels.devices import to_numpy

MODELS: dict[str, dict[str, int]] = {"kanban": {"t": 1}, "brp": {"N": 4, "MAX": 2}, "herman": {}}
_MATRICES: dict[str, tuple[CsrArrays, hybrid.HybridMatrix]] = {}


def matrix_of(folder: Path, name: str) -> tuple[CsrArrays, hybrid.HybridMatrix]:
    """Return a model's matrix, explicit and compressed."""
    if name not in _MATRICES:
        model = hybrid.load(folder / f"{name}.prism", constants=MODELS[name])
        explicit = hybrid.explicit_matrix(model.transitions)
        assert explicit.nnz == model.n_transitions
        _MATRICES[name] = explicit, hybrid.inject(model.transitions, backend="cpu")
    return _MATRICES[name]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("storage", sorted(FORMATS))
def test_every_format_holds_models(
    device: Device, rng: np.random.Generator, examples_folder: Path, storage: str, model: str
) -> None:
    if storage == "cusparse" and device.name == "host":
        pytest.skip("cuSPARSE is called on a CUDA device")
    matrix, compressed = matrix_of(examples_folder, model)
    operator = ExplicitOperator(matrix.to_device(device), device, storage)
    assert operator.storage == storage
    x = rng.random(matrix.shape[1])
    np.testing.assert_allclose(to_numpy(operator @ device.xp.asarray(x)), compressed @ x, rtol=1e-13)
    back = operator.matrix
    for name in ("row_starts", "columns", "values"):
        np.testing.assert_array_equal(to_numpy(getattr(back, name)), getattr(matrix, name))
