"""Render the records in benchmarks/results/ as docs/benchmarks.md, and as tables in other pages.

Tables in hand-written pages stand between markers, so that text and figures stay together.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

from benchmarks.rendering.answers import (
    certified_products,
    ltl_products,
    quotients,
    several_processes,
    vectors_on_disk,
)
from benchmarks.rendering.components import auto_choice, scc_mec
from benchmarks.rendering.decision_processes import mdp_agreement, mdp_sweep, symbolic_components
from benchmarks.rendering.formats import byte_traffic, explicit_formats, structure_table
from benchmarks.rendering.gpu import gpu_product, kernel_counters, limits
from benchmarks.rendering.host import (
    agreement,
    cpu_iteration,
    file_formats,
    many_vectors,
    simulation,
    symbolic_build,
    variable_orders,
)
from benchmarks.rendering.markdown import Row
from benchmarks.rendering.parts import cards, on_paper, overlap, whole_on_cards
from benchmarks.rendering.processes import cold_start, first_use, whole_run
from benchmarks.rendering.spmv_papers import density_sweep, paper_tables, streamed_parts
from benchmarks.rendering.thesis import thesis_tables
from benchmarks.rendering.whole_answers import whole_answers

__all__ = ["BLOCKS", "SECTIONS", "load", "page", "replace_block", "with_blocks"]

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "benchmarks.md"

HEAD = """# Benchmarks

Rendered by `python -m benchmarks.rendering.render` from the records in `benchmarks/results/`; each record
names commit, versions and processor.  Times of two programs are compared within one run; PRISM's figures were
measured apart, on the same kind of machine, and stand beside for orientation.  Which program makes which
table is in [benchmarks/README.md](../benchmarks/README.md)."""


def load(name: str) -> Row | None:
    """Return a record, with the name of its file without the suffix; None if there is none."""
    path = RESULTS / f"{name}.json"
    return {**json.loads(path.read_text()), "file": name} if path.exists() else None


Renderer = Callable[[Row], str]

SECTIONS: dict[str, Renderer] = {
    "cpu_iteration": cpu_iteration,
    "cpu_iteration_16": cpu_iteration,
    "many_vectors": many_vectors,
    "many_vectors_gpu": many_vectors,
    "file_formats": file_formats,
    "gpu_product": gpu_product,
    "kernel_counters": lambda record: kernel_counters(record, load("gpu_product")),
    "thesis_tables": thesis_tables,
    "whole_answers": lambda record: whole_answers(record, load("whole_answers_cpu")),
    "whole_answers_cpu": whole_answers,
    "whole_run": whole_run,
    "whole_run_certified": whole_run,
    "whole_run_certified_large": whole_run,
    "whole_run_large": whole_run,
    "first_use": first_use,
    "cold_start": cold_start,
    "explicit_formats": explicit_formats,
    "paper_tables": paper_tables,
    "density_sweep": density_sweep,
    "streamed_parts": streamed_parts,
    "mdp_sweep": mdp_sweep,
    "scc_mec": scc_mec,
    "symbolic_components": symbolic_components,
    "symbolic_build": symbolic_build,
    "variable_orders": variable_orders,
    "simulation": simulation,
    "certified_products": certified_products,
    "certified_products_gpu": certified_products,
    "ltl_products": ltl_products,
    "processes": several_processes,
    "overlap": overlap,
    "cards": cards,
    "cards_whole": whole_on_cards,
    "scaling": on_paper,
    "spill": vectors_on_disk,
    "lumping": quotients,
    "agreement": agreement,
    "mdp_agreement": mdp_agreement,
}
"""Sections of the page, by record."""

BLOCKS: dict[tuple[str, str], tuple[str, Renderer]] = {
    ("explicit.md", "byte traffic"): ("explicit_formats", byte_traffic),
    ("explicit.md", "structures"): ("structure_plots", structure_table),
    ("gpu.md", "limits"): ("gpu_product", limits),
    ("graphs.md", "the choice"): ("scc_mec", auto_choice),
}
"""Record and renderer of every table in another page, by page and name."""


def page() -> str:
    """Return the page of results."""
    found = ((render, load(name)) for name, render in SECTIONS.items())
    return "\n\n".join([HEAD, *(render(record) for render, record in found if record is not None)]) + "\n"


def with_blocks(name: str) -> str:
    """Return a hand-written page with its tables made anew."""
    text = PAGE.with_name(name).read_text()
    for (where, block), (source, render) in BLOCKS.items():
        record = load(source) if where == name else None
        if record is not None:
            text = replace_block(text, block, render(record))
    return text


def replace_block(text: str, name: str, block: str) -> str:
    """Return a page with the text between the markers of a block replaced.

    Raises
    ------
    ValueError
        If the page does not have each of the two markers once, in order.
    """
    first, last = f"<!-- rendered: {name} -->", f"<!-- end: {name} -->"
    if text.count(first) != 1 or text.count(last) != 1 or text.index(first) > text.index(last):
        raise ValueError(f"expected the lines {first} and {last} once each, in this order")
    before, after = text[: text.index(first) + len(first)], text[text.index(last) :]
    return f"{before}\n\n{block}\n\n{after}"


def main() -> None:
    """Write the page of results, and the tables of other pages."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    pages = {PAGE: page()}
    pages |= {PAGE.with_name(name): with_blocks(name) for name in dict.fromkeys(where for where, _ in BLOCKS)}
    for path, text in pages.items():
        path.write_text(text)
        print(f"wrote {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
