"""How many commits have changed what a record measures since it was made: told in the page by itself.

The count is that of the moment of rendering. `--check` leaves it aside: a checkout may be shallow, or none.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from benchmarks.rendering.markdown import Row

__all__ = ["MEASURED", "age", "history_is_here", "without_ages"]

ROOT = Path(__file__).resolve().parents[2]

_ALL = ("mtbdd", "gpu_kernels", "hybrid")
_HOST = ("mtbdd", "hybrid")
_CARD = ("gpu_kernels", "hybrid/matrix/gpu")
_FORMATS = ("gpu_kernels", "hybrid/matrix/explicit")
_SHARED = ("hybrid/matrix/parts", "hybrid/base/communicators.py")
_BOUNDS = ("hybrid/analysis", "hybrid/solvers")

_FORMER = {
    "hybrid/matrix/gpu": "hybrid/gpu",
    "hybrid/matrix/explicit": "hybrid/explicit",
    "hybrid/matrix/parts": "hybrid/parts",
    "hybrid/base/communicators.py": "hybrid/base/communicators",
    "hybrid/base/disk.py": "hybrid/base/disk",
    "hybrid/matrix/cpu": "hybrid/cpu",
    "hybrid/matrix/injection": "hybrid/injection",
    "hybrid/matrix/levels": "hybrid/levels",
    "hybrid/models/interchange": "hybrid/interchange",
    "hybrid/properties/automata": "hybrid/automata",
    "hybrid/models/lumping": "hybrid/lumping",
    "hybrid/analysis/graphs": "hybrid/graphs",
    "hybrid/checking/simulation": "hybrid/simulation",
    "mtbdd/build/automaton_product.py": "mtbdd/automaton_product.py",
}
"""Where sources stood when records were taken."""

MEASURED: dict[str, tuple[str, ...]] = {
    "agreement": _HOST,
    "attack": _HOST,
    "cards": (*_SHARED, *_CARD),
    "cards_explicit": (*_SHARED, *_FORMATS),
    "cards_whole": _ALL,
    "certified_pairs": _BOUNDS,
    "certified_pairs_5af5fbf": _BOUNDS,
    "certified_pairs_5af5fbf_gpu": (*_BOUNDS, *_CARD),
    "certified_pairs_averages": _BOUNDS,
    "certified_pairs_averages_gpu": (*_BOUNDS, *_CARD),
    "certified_pairs_gpu": (*_BOUNDS, *_CARD),
    "certified_pairs_gpu_kanban": (*_BOUNDS, *_CARD),
    "certified_pairs_tandem": _BOUNDS,
    "certified_products": _BOUNDS,
    "certified_products_gpu": _BOUNDS,
    "cold_start": _ALL,
    "commit_pairs": _ALL,
    "cpu_iteration": ("hybrid/matrix/cpu", "hybrid/matrix/injection", "hybrid/matrix/levels"),
    "cpu_iteration_16": ("hybrid/matrix/cpu", "hybrid/matrix/injection", "hybrid/matrix/levels"),
    "density_sweep": (*_FORMATS, "hybrid/solvers"),
    "device_lane": (*_ALL, "tests"),
    "engines": _HOST,
    "explicit_formats": _FORMATS,
    "field": _HOST,
    "file_formats": ("hybrid/models/interchange",),
    "first_use": _ALL,
    "first_use_parts": _ALL,
    "gauss_seidel": (),
    "gpu_product": _CARD,
    "kernel_counters": _CARD,
    "logic": ("hybrid/properties/automata", "mtbdd/build/automaton_product.py"),
    "ltl_products": ("hybrid/properties/automata", "hybrid/analysis", "mtbdd/build/automaton_product.py"),
    "long_run": _HOST,
    "long_run_gpu": _ALL,
    "lumping": ("hybrid/models/lumping",),
    "many_vectors": ("hybrid/matrix/cpu",),
    "many_vectors_gpu": _CARD,
    "mdp_agreement": _HOST,
    "mdp_sweep": _CARD,
    "mutants": (*_ALL, "tests"),
    "overlap": (),
    "paper_tables": (*_FORMATS, "hybrid/solvers"),
    "processes": _SHARED,
    "same_answers": _ALL,
    "sanitizers": ("gpu_kernels",),
    "scaling": ("hybrid/matrix/parts",),
    "scaling_eight": ("hybrid/matrix/parts",),
    "scc_mec": ("gpu_kernels/graph", "gpu_kernels/cuda/graph", "hybrid/analysis/graphs"),
    "seeds": (*_HOST, "tests"),
    "simulation": ("hybrid/checking/simulation",),
    "spill": ("hybrid/base/disk.py",),
    "streamed_parts": _FORMATS,
    "structure_plots": ("hybrid/matrix/explicit",),
    "symbolic_build": ("mtbdd",),
    "symbolic_components": ("mtbdd/graph",),
    "trends": ("benchmarks/results",),
    "thesis_tables": (
        "gpu_kernels",
        "hybrid/matrix/cpu",
        "hybrid/matrix/gpu",
        "hybrid/matrix/levels",
        "hybrid/solvers",
    ),
    "thesis_tables_tasks": (
        "gpu_kernels",
        "hybrid/matrix/cpu",
        "hybrid/matrix/gpu",
        "hybrid/matrix/levels",
        "hybrid/solvers",
    ),
    "thesis_memory": (
        "hybrid/matrix/levels",
        "hybrid/matrix/injection",
        "mtbdd/offset/offset.py",
        "mtbdd/offset/convert.py",
    ),
    "variable_orders": ("mtbdd/build/order.py",),
    "whole_answers": _ALL,
    "whole_answers_cpu": _HOST,
    "whole_run": _ALL,
    "whole_run_certified": _ALL,
    "whole_run_certified_large": _ALL,
    "whole_run_large": _ALL,
}
"""The sources that each record measures."""

_AGE = re.compile(
    r"  (?:Since then [\d,]+ commits? changed what it measures|Its commit is not in this repository)\."
)


def _git(*arguments: str) -> str | None:
    """Return what a command of git prints; None if it fails, or there is no git."""
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def history_is_here() -> bool:
    """Return whether there is a repository with all of its commits."""
    return _git("rev-parse", "--is-shallow-repository") == "false"


def age(record: Row) -> str:
    """Return a sentence on the commits since a record was made; empty if none changed what it measures."""
    runs = record.get("runs")
    made = (runs[-1] if runs else record.get("environment", {})).get("commit")
    if made is None:
        return ""
    commit = made.removesuffix("+changes")
    if _git("cat-file", "-e", f"{commit}^{{commit}}") is None:
        return "  Its commit is not in this repository."
    count = int(_git("rev-list", "--count", f"{commit}..HEAD", "--", *_places(record["file"])) or 0)
    if count == 0:
        return ""
    return f"  Since then {count:,} commit{'s' if count > 1 else ''} changed what it measures."


def _places(name: str) -> list[str]:
    """Return what a record measures, with the places where it stood before."""
    places = MEASURED[name]
    return [*places, *(_FORMER[place] for place in places if place in _FORMER)]


def without_ages(text: str) -> str:
    """Return a page without these sentences."""
    return _AGE.sub("", text)
