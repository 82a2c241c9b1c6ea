"""Keys of sources resolve: every one that is cited stands in docs/references.md, and the other way round."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
KEY = re.compile(r"\[([A-Z][A-Za-z]*\d\d)\]")
FOLDERS = ("hybrid", "mtbdd", "gpu_kernels", "benchmarks", "tests", "docs")
ENDINGS = {".py", ".md", ".cu", ".cuh", ".h"}


def keys_in(path: Path) -> set[str]:
    return set(KEY.findall(path.read_text(encoding="utf-8")))


def test_every_key_resolves_and_is_used() -> None:
    page = ROOT / "docs/references.md"
    cited: dict[str, Path] = {}
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in ENDINGS and path not in (page, Path(__file__).resolve()):
                cited |= dict.fromkeys(keys_in(path), path)
    assert {"Tealdi13", "WKB16"} <= cited.keys()
    assert cited.keys() == keys_in(page), {k: str(p) for k, p in cited.items() if k not in keys_in(page)}


NAME = re.compile(r"`((?:hybrid|mtbdd|gpu_kernels)(?:\.[A-Za-z_]\w*)+)`")


def resolves(name: str) -> bool:
    """Whether a dotted name is a module of the packages, or something within one."""
    parts = name.split(".")
    for k in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:k]))
        except ModuleNotFoundError:
            continue
        for part in parts[k:]:
            if not hasattr(found, part):
                return part in getattr(found, "__annotations__", {})
            found = getattr(found, part)
        return True
    return False


@pytest.mark.parametrize("folder", ["hybrid", "mtbdd", "gpu_kernels", "docs"])
def test_names_in_pages_and_docstrings_exist(folder: str) -> None:
    missing = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".py", ".md")
        for name in NAME.findall(path.read_text(encoding="utf-8"))
        if not resolves(name)
    ]
    assert not missing, "\n".join(missing)


def test_names_that_do_not_exist_are_noticed() -> None:
    assert resolves("hybrid.matrix.space.bellman.BellmanOperator.down")
    assert not resolves("hybrid.matrix.space.bellman.Bellmann")
    assert not resolves("hybrid.mdp.until")
