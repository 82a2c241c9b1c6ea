"""cuSPARSE's preprocessing: found in the library that the process has, and called once an algorithm."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gpu_kernels.explicit import rows as cusparse
from tests.gpu_kernels.host_device import COMPILER

LIBRARY = """extern "C" int cusparseSpMV_preprocess(void *handle, int operation, const void *,
    const void *matrix, const void *, const void *, void *, int, int algorithm, void *space)
{
    bool right = handle == (void *)7 && matrix == (void *)11 && algorithm == 3;
    return right && space == (void *)(1LL << 40) ? operation : -1;
}
"""


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    cusparse.preprocess_call.cache_clear()
    yield
    cusparse.preprocess_call.cache_clear()


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++) to make a library with")
def test_preprocessing_is_found_among_the_libraries_of_the_process(tmp_path: Path) -> None:
    source, library, maps = tmp_path / "a.cpp", tmp_path / "libcusparse.so.12", tmp_path / "maps"
    source.write_text(LIBRARY)
    subprocess.run([str(COMPILER), "-shared", "-fPIC", "-o", library, source], check=True)
    maps.write_text(f"7f0-7f1 r-xp 00000000 08:01 42   {library}\n7f2-7f3 r--p 00000000 00:00 0\n")
    call = cusparse.preprocess_call(maps)
    assert call is not None
    # A pointer beyond 32 bits arrives whole.
    assert call(7, 5, 1 << 40, 11, 2, 3, 4, 1, 3, 1 << 40) == 5
    assert call(7, 5, 1, 11, 2, 3, 4, 1, 3, 0) == -1
    source.write_text("int nothing;")
    other = tmp_path / "older" / "libcusparse.so.12"
    other.parent.mkdir()
    subprocess.run([str(COMPILER), "-shared", "-fPIC", "-o", other, source], check=True)
    maps.write_text(f"7f0-7f1 r-xp 00000000 08:01 42   {other}\n")
    cusparse.preprocess_call.cache_clear()
    assert cusparse.preprocess_call(maps) is None
    assert cusparse.preprocess_call(tmp_path / "none") is None


@pytest.mark.parametrize("status", [0, 1, None])
def test_a_plan_preprocesses_once_an_algorithm(monkeypatch: pytest.MonkeyPatch, status: int | None) -> None:
    made: list[tuple[str, Any]] = []
    names = iter(range(100, 200))

    def create(array: Any) -> Any:
        return SimpleNamespace(desc=next(names))

    def noted(name: str) -> Any:
        return lambda *arguments: made.append((name, arguments)) or status

    library = SimpleNamespace(
        CUSPARSE_OPERATION_NON_TRANSPOSE=0, spMV_bufferSize=lambda *arguments: 0, spMV=noted("product"),
        setStream=noted("stream"),
    )  # fmt: skip
    stream = SimpleNamespace(ptr=5)
    space = SimpleNamespace(nbytes=1, data=SimpleNamespace(ptr=77))
    cuda = SimpleNamespace(
        device=SimpleNamespace(get_cusparse_handle=lambda: 7), get_current_stream=lambda: stream
    )
    cupy = SimpleNamespace(cuda=cuda, empty=lambda size, kind: space)
    descriptors = SimpleNamespace(create=create)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setitem(
        sys.modules,
        "cupyx.cusparse",
        SimpleNamespace(SpMatDescriptor=descriptors, DnVecDescriptor=descriptors),
    )
    monkeypatch.setitem(sys.modules, "cupy_backends.cuda.libs.cusparse", library)
    monkeypatch.setattr(cusparse, "require_memory", lambda *arguments: None)
    monkeypatch.setattr(cusparse, "CudaDevice", lambda: None)
    call = None if status is None else noted("preprocess")
    monkeypatch.setattr(cusparse, "preprocess_call", lambda: call)
    plan = cusparse.CusparsePlan(matrix=None)
    for algorithm in (0, 0, 3):
        plan.run(np.ones(1), np.ones(1), algorithm)
    kinds = [name for name, _ in made]
    first = ["stream", *(["preprocess"] if call else []), "product"]
    assert kinds == [*first, "product", *first]
    assert plan.preprocessed is (status == 0)
    products = [arguments for name, arguments in made if name == "product"]
    # One descriptor of the matrix an algorithm; vectors have new ones every time.
    assert products[0][3] == products[1][3] != products[2][3]
    for name, arguments in made:
        if name == "preprocess":
            assert arguments in products
