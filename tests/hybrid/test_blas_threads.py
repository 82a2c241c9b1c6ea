"""One thread for small systems of equations: in a block, in several threads, and without a pool."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from hybrid.base import blas_threads
from hybrid.base.blas_threads import blas_pool, one_blas_thread


def test_blocks_have_one_thread_and_give_back_the_others() -> None:
    if (pool := blas_pool()) is None:
        pytest.skip("NumPy has no OpenBLAS")
    ask, tell = pool
    before = ask()
    tell(2)
    try:
        with pytest.raises(np.linalg.LinAlgError), one_blas_thread():
            with one_blas_thread():
                assert ask() == 1
            assert ask() == 1
            np.linalg.solve(np.zeros((2, 2)), np.ones(2))
        assert ask() == 2
    finally:
        tell(before)


def test_the_last_block_of_several_threads_gives_the_pool_back(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[int] = []
    pool: Any = lambda: 7, told.append  # noqa: E731
    monkeypatch.setattr(blas_threads, "blas_pool", lambda: pool)
    inside, over = threading.Event(), threading.Event()

    def other() -> None:
        with one_blas_thread():
            inside.set()
            over.wait(60)

    thread = threading.Thread(target=other)
    with one_blas_thread():
        thread.start()
        assert inside.wait(60)
    assert told == [1]
    over.set()
    thread.join()
    assert told == [1, 7]


def test_without_a_pool_a_block_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blas_threads, "blas_pool", lambda: None)
    with one_blas_thread():
        assert np.linalg.solve(2.0 * np.eye(2), np.ones(2)).tolist() == [0.5, 0.5]
