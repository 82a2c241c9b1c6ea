"""Programs of benchmarks/, run with arguments in this process."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.gpu_kernels.devices import device

__all__ = ["device"]


@pytest.fixture
def record_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    """Runs a program's main function with arguments, and returns the record that it wrote."""

    def run(program: ModuleType, *arguments: str) -> dict[str, Any]:
        out = tmp_path / "record.json"
        monkeypatch.setattr(sys, "argv", [program.__name__, *arguments, "--out", str(out)])
        program.main()
        record: dict[str, Any] = json.loads(out.read_text())
        assert record["benchmark"] == program.__name__.rsplit(".", 1)[1]
        return record

    return run
