"""Keys of sources resolve: every one that is cited stands in docs/references.md, and the other way round."""

from __future__ import annotations

import re
from pathlib import Path

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
