"""Ragged lists: what every array module does, against loops."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from gpu_kernels.runtime.coded import array_module, owners, pointers, ranges


class OtherModule:
    """NumPy under another name, for which the way of other modules is taken."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


@pytest.mark.parametrize("xp", [np, OtherModule()], ids=["numpy", "other"])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("lengths", [[], [0], [3], [0, 2, 0, 0, 1, 4, 0], [1, 1, 1]])
def test_lists_are_expanded_as_by_loops(xp: Any, index: Any, lengths: list[int]) -> None:
    ptr = pointers(xp, np.array(lengths, index))
    assert ptr.dtype == np.int64
    assert ptr.tolist() == [sum(lengths[:i]) for i in range(len(lengths) + 1)]
    total = sum(lengths)
    expected = [i for i, n in enumerate(lengths) for _ in range(n)]
    found = owners(xp, ptr.astype(index), total)
    assert (found.dtype, found.tolist()) == (np.int64, expected)
    starts = np.array([10 * i - 7 for i in range(len(lengths))], np.int64)
    numbers, owner = ranges(xp, starts, ptr, total)
    assert numbers.tolist() == [starts[i] + j for i, n in enumerate(lengths) for j in range(n)]
    assert owner.tolist() == expected
    assert array_module(numbers) is np


def test_arrays_with_an_interface_of_cuda_are_cupys(monkeypatch: pytest.MonkeyPatch) -> None:
    class OnDevice:
        @property
        def __cuda_array_interface__(self) -> dict[str, Any]:
            raise AssertionError("the type tells")

    other = OtherModule()
    monkeypatch.setitem(sys.modules, "cupy", other)  # type: ignore[arg-type]
    assert array_module(OnDevice()) is other
    assert array_module([1.0]) is np
