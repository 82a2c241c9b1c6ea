"""Solutions that there is no room for are refused before their vectors are made."""

from __future__ import annotations

import numpy as np
import pytest

from hybrid.matrix.cpu.csr import CsrMatrix
from hybrid.matrix.space.host import HostSpace


def test_r14_host_counts_vectors_without_operands(monkeypatch: pytest.MonkeyPatch) -> None:
    from scipy.sparse import csr_matrix

    monkeypatch.setattr("mtbdd.base.memory.free_memory_bytes", lambda: 10**9)
    space = HostSpace(CsrMatrix(csr_matrix(np.eye(2))))
    # Two of the vectors are the operands, which are there already: 7 of 17 million elements fit, of 18 not.
    space.reserve(9, 17_000_000)
    with pytest.raises(
        MemoryError, match=r"9 vectors of 18000000 elements needs 1008000000 bytes .* smaller"
    ):
        space.reserve(9, 18_000_000)
    space.reserve(1, 10**12)
