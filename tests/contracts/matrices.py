"""Every implementation of a matrix that methods run on, by name, made from a dense array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from gpu_kernels import Device
from hybrid.matrix.cpu.csr import CsrMatrix
from hybrid.matrix.explicit import CsrArrays, ExplicitOperator, FunctionOperator
from hybrid.matrix.explicit.operators import write_out
from hybrid.matrix.operators.inject import inject
from tests.builders.matrices import from_dense
from tests.gpu_kernels.devices import DEVICES

__all__ = ["MATRICES", "ON_DEVICE", "Make", "matrix_parameters"]

Make = Callable[[np.ndarray], Any]


def _arrays(dense: np.ndarray) -> CsrArrays:
    return CsrArrays.from_scipy(csr_matrix(dense))


def _levelled(backend: str, share: float) -> Make:
    """Injected at a level that lies so far down the levels."""

    def make(dense: np.ndarray) -> Any:
        matrix = from_dense(dense)
        return inject(matrix, int(share * matrix.n_levels), backend)

    return make


MATRICES: dict[str, Make] = {
    "reference": lambda a: inject(from_dense(a), backend="reference"),
    "reference at the top": _levelled("reference", 0.0),
    "cpu": lambda a: inject(from_dense(a), backend="cpu"),
    "cpu at the top": _levelled("cpu", 0.0),
    "cpu in the middle": _levelled("cpu", 0.5),
    "cpu at the bottom": _levelled("cpu", 1.0),
    "reference, in tasks": lambda a: inject(from_dense(a), 0, "reference", representation="tasks"),
    "cpu, in tasks": lambda a: inject(from_dense(a), backend="cpu", representation="tasks"),
    "compiled rows": lambda a: CsrMatrix(csr_matrix(a)),
    "written out": lambda a: write_out(from_dense(a), "cpu"),
    "arrays": lambda a: ExplicitOperator(_arrays(a)),
    "function": lambda a: FunctionOperator(a.shape, lambda x: _arrays(a).to_scipy() @ x),
}


def _stored(storage: str) -> Callable[[np.ndarray, Device], Any]:
    return lambda a, d: ExplicitOperator(_arrays(a).to_device(d), d, storage)


ON_DEVICE: dict[str, Callable[[np.ndarray, Device], Any]] = {
    "gpu": lambda a, d: inject(from_dense(a), backend="gpu"),
    "gpu at the top": lambda a, d: _levelled("gpu", 0.0)(a),
    "gpu in the middle": lambda a, d: _levelled("gpu", 0.5)(a),
    "gpu at the bottom": lambda a, d: _levelled("gpu", 1.0)(a),
    "gpu, in tasks": lambda a, d: inject(from_dense(a), backend="gpu", representation="tasks"),
    "gpu, written out": lambda a, d: write_out(from_dense(a), "gpu"),
    "gpu, msr": _stored("msr"),
    "gpu, cmsr-stream": _stored("cmsr-stream"),
    "gpu, csell": _stored("csell"),
}
"""Those whose matrix lies on the current device, which is the second argument."""


def matrix_parameters(*only: str) -> list[Any]:
    """Return the parameters of tests over matrices, all or some: names, and for a device's the kind of it."""
    wanted = only or (*MATRICES, *ON_DEVICE)
    found: list[Any] = [pytest.param((name, None), id=name) for name in MATRICES if name in wanted]
    for device in DEVICES:
        kind, marks = (device, ()) if isinstance(device, str) else (device.values[0], device.marks)
        found += [
            pytest.param((name, kind), id=f"{name}-{kind}", marks=marks)
            for name in ON_DEVICE
            if name in wanted
        ]
    return found
