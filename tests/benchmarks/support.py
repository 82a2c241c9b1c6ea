"""What tests of benchmarks share."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.rendering import render
from tests.gpu_kernels.host_device import COMPILER

ROOT = Path(__file__).resolve().parents[2]
NEEDS_COMPILER = pytest.mark.skipif(
    COMPILER is None, reason="no C++ compiler (g++) to run the kernels on the host with"
)
WHERE = {
    "environment": {
        "date": "2026-01-01T00:00:00+00:00", "commit": "abc", "python": "3.11", "packages": {"numpy": "2.0"},
        "processor": "a processor", "cores": 2,
    },
    "device": None,
}  # fmt: skip


def options(**more: Any) -> argparse.Namespace:
    """Options of a program that measures everything and writes nothing, but for those given."""
    common = {"out": None, "only": None, "seconds": None, "resume": False, "quick": True}
    return argparse.Namespace(**common | more)


def rendered(name: str, record: dict[str, Any]) -> str:
    """A section of the page, from a record as it comes from a file; its tables are tables."""
    text = render.SECTIONS[name](json.loads(json.dumps({"benchmark": name, **record})))
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert lines
    width = 0
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        width = line.count("|") if following.startswith("| ---") else width
        assert line.count("|") == width, line
    return text
