"""Render the records in benchmarks/results/ as docs/benchmarks.md, and as tables in other pages.

Usage: python benchmarks/render.py
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from markdown_text import made, number, table
from render_blocks import BLOCKS, replace_block
from render_gpu import explicit_formats, gpu_product
from render_graphs import mdp_agreement, mdp_sweep, scc_mec, symbolic_components
from render_papers import density_sweep, paper_tables, streamed_parts
from render_profiles import first_use, kernel_counters, whole_run
from render_thesis import thesis_tables

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "benchmarks.md"

HEAD = """# Benchmarks

Rendered by `python benchmarks/render.py` from the records in `benchmarks/results/`; each record names commit,
versions and processor.  Times of two programs are compared within one run; PRISM's figures were measured
apart, on the same kind of machine, and stand beside for orientation.
"""


def cpu_iteration(record: dict[str, Any]) -> str:
    """Return the section on products."""
    rows = []
    for r in record["results"]:
        ns = r["ns_per_transition"]
        prism = r.get("prism_ns_per_transition") or {}
        rows.append(
            [
                r["model"].replace(":", " "),
                f"{r['transitions']:,}",
                f"{r['representation_memory_bytes'] / 1e6:.1f}",
                f"{100 * r['representation_memory_bytes'] / r['csr_bytes']:.1f} %",
                number(ns["scipy_csr"]),
                number(ns["product_one_thread"]),
                number(ns["product"]),
                f"{r['speedup']:.2f}",
                number(prism.get("hybrid")),
                number(prism.get("sparse")),
            ]
        )
    columns = ["model", "transitions", "MB", "of CSR", "SciPy CSR", "1 thread", "all threads", "gain"]
    columns += ["PRISM hybrid", "PRISM sparse"]
    return "\n\n".join(
        [
            "## A product on the CPU",
            "Nanoseconds a transition of one product `M @ x` (medians); SciPy's CSR product uses one core, "
            "PRISM's engines too.  Geometric mean of the gain over the models with more than 10⁶ "
            f"transitions: {record['geometric_mean_speedup']:.2f}, least {record['least_speedup']:.2f}.",
            table(columns, rows),
            f"[`cpu_iteration.json`](../benchmarks/results/cpu_iteration.json), {made(record)}",
        ]
    )


def symbolic_build(record: dict[str, Any]) -> str:
    """Return the section on the symbolic build."""
    rows = [
        [
            f"{r['model']} {r['constants']}",
            f"{r['states']:,}",
            f"{r['transitions']:,}",
            f"{r['mtbdd_nodes']:,}",
            f"{r['seconds']:.3f}",
            number(r.get("prism_seconds")),
        ]
        for r in record["rows"]
    ]
    columns = ["model", "states", "transitions", "MTBDD nodes", "seconds", "PRISM's construction"]
    same = all(r.get("same_sizes", True) for r in record["rows"])
    return "\n\n".join(
        [
            "## The symbolic build",
            "From text to offset-labelled matrix, medians of three builds in one process."
            + ("  States, transitions and nodes equal PRISM's in every row." if same else ""),
            table(columns, rows),
            f"[`symbolic_build.json`](../benchmarks/results/symbolic_build.json), {made(record)}",
        ]
    )


def agreement(record: dict[str, Any]) -> str:
    """Return the section on values."""
    rows = []
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for r in record["rows"]:
        explicit = r.get("engine") == "explicit"
        groups.setdefault((r["model"].split("/")[0], "explicit" if explicit else r["backend"]), []).append(r)
    for (model, backend), members in groups.items():
        worst = max((m["relative_error"] for m in members if m["relative_error"] is not None), default=None)
        good = sum(m["agrees"] for m in members)
        bounded = [m for m in members if m["inside"] is not None]
        between = f"{sum(m['inside'] for m in bounded)} of {len(bounded)}"
        rows.append([model, backend, f"{good} of {len(members)}", number(worst, 2), between])
    levels = ", ".join(sorted({r["policy"] for r in record["rows"] if r.get("engine") != "explicit"}))
    return "\n\n".join(
        [
            "## Values",
            f"Reference values obtained elsewhere, epsilon {record['epsilon']:g}, at the levels {levels}: "
            "how many agree within their tolerance of 10⁻⁶, and the greatest relative error.",
            table(["model", "backend", "agree", "greatest error", "between the bounds"], rows),
            f"[`agreement.json`](../benchmarks/results/agreement.json), {made(record)}",
        ]
    )


SECTIONS = {
    "cpu_iteration": cpu_iteration,
    "gpu_product": gpu_product,
    "kernel_counters": kernel_counters,
    "thesis_tables": thesis_tables,
    "whole_run": whole_run,
    "first_use": first_use,
    "explicit_formats": explicit_formats,
    "paper_tables": paper_tables,
    "density_sweep": density_sweep,
    "streamed_parts": streamed_parts,
    "mdp_sweep": mdp_sweep,
    "scc_mec": scc_mec,
    "symbolic_components": symbolic_components,
    "symbolic_build": symbolic_build,
    "agreement": agreement,
    "mdp_agreement": mdp_agreement,
}


def load(name: str) -> dict[str, Any] | None:
    """Return a record; None if there is none yet."""
    path = RESULTS / f"{name}.json"
    if not path.exists():
        return None
    record: dict[str, Any] = json.loads(path.read_text())
    return record


def main() -> None:
    """Write the page, and the blocks of other pages."""
    parts = [HEAD.rstrip()]
    for name, render in SECTIONS.items():
        record = load(name)
        if record is not None:
            parts.append(render(record))
    PAGE.write_text("\n\n".join(parts) + "\n")
    print(f"wrote {PAGE.relative_to(ROOT)}")
    for (page, block), (name, render) in BLOCKS.items():
        record, path = load(name), PAGE.with_name(page)
        if record is not None:
            path.write_text(replace_block(path.read_text(), block, render(record)))
            print(f"wrote {block} in {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
