"""The verifier shares nothing with what made the answer."""

from __future__ import annotations

import subprocess
import sys

from tests.source_tree import ROOT, imports_of_modules

MAKERS = {f"hybrid.checking.certificates.{name}" for name in ("builder", "end_components")}
ALLOWED = (
    "hybrid.checking.certificates",
    "hybrid.base.errors",
    "hybrid.properties",
    "mtbdd.base.errors",
    "mtbdd.language",
    "mtbdd.base.lazy_loading",
    "mtbdd.base.records",
)


def test_the_verifier_imports_only_the_parsers() -> None:
    imports = imports_of_modules()
    waiting, reached = ["hybrid.checking.certificates.verify"], set()
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += imports[name]
    assert "hybrid.checking.certificates.conditions" in reached
    assert not reached & MAKERS
    assert {n for n in reached if not n.startswith(ALLOWED)} == set()


def test_making_is_left_to_two_modules() -> None:
    for name, needed in imports_of_modules().items():
        if name.startswith("hybrid.checking.certificates") and name not in MAKERS:
            assert not needed & MAKERS, name


def test_verifying_loads_nothing_else() -> None:
    code = (
        "import sys, hybrid.checking.certificates.verify, hybrid.app.cli.verify\n"
        "ours = ('hybrid', 'numba', 'dd', 'cupy', 'gpu_kernels')\n"
        "print(*(n for n in sys.modules if n.split('.')[0] in ours))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120, check=True
    )
    loaded = set(run.stdout.split())
    assert "hybrid.checking.certificates.conditions" in loaded
    barred = ("hybrid.solvers", "hybrid.analysis.", "hybrid.matrix.", "hybrid.models.")
    assert not [n for n in loaded if n.startswith(barred)]
    own = "hybrid.checking.certificates"
    assert not [n for n in loaded if n.startswith("hybrid.checking.") and not n.startswith(own)]
    assert not [n for n in loaded if n.split(".")[0] in ("numba", "dd", "cupy", "gpu_kernels")]
