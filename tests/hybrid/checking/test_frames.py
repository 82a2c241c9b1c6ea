"""How deep the main job is: Python frames from `hybrid.check` to the compiled kernel."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import hybrid
from hybrid.matrix.cpu import kernels as products
from hybrid.matrix.cpu import shadow_kernels, vector_kernels

MOST = 24
"""Frames of the packages, the first one that of `hybrid.check`, the last one that which calls the kernel."""

COUNTED = (
    (products, "block_spmv"),
    (vector_kernels, "add_scaled_rows"),
    (vector_kernels, "image_rows"),
    (shadow_kernels, "turn_rows"),
)
"""Kernels of the main job."""


@pytest.mark.parametrize("method", ["optimistic", "auto"])
def test_the_main_job_reaches_the_kernel_in_few_frames(
    examples_folder: Path, monkeypatch: pytest.MonkeyPatch, method: Any
) -> None:
    model = hybrid.load(examples_folder / "brp.prism", {"N": 16, "MAX": 2})
    packages = tuple(str(Path(hybrid.__file__).parents[1] / name) for name in ("hybrid", "mtbdd"))
    deepest: list[str] = []
    kernels: set[str] = set()

    def counted(kernel: Any) -> Any:
        def call(*arguments: Any) -> None:
            frame: FrameType | None = sys._getframe(1)
            frames = []
            kernels.add(kernel.__name__)
            while frame is not None:
                if frame.f_code.co_filename.startswith(packages):
                    frames.append(frame.f_code.co_qualname)
                frame = frame.f_back
            if len(frames) > len(deepest):
                deepest[:] = reversed(frames)
            kernel(*arguments)

        return call

    for module, name in COUNTED:
        monkeypatch.setattr(module, name, counted(getattr(module, name)))
    monkeypatch.setenv("HYBRID_NUM_THREADS", "1")
    answer = hybrid.check(model, "P=? [ F s=5 ]", backend="cpu", engine="hybrid", method=method)
    assert answer.value == pytest.approx(4.2333e-4, rel=1e-4)
    assert "block_spmv" in kernels
    assert deepest[0] == "check"
    assert len(deepest) <= MOST, "\n".join(deepest)
