"""Render the records in benchmarks/results/ as docs/benchmarks.md, and as tables and figures in other pages.

Tables in hand-written pages stand between markers, and so does every figure in their prose
(`benchmarks/rendering/figures.py`), so that text and figures stay together. With ``--check`` nothing is
written: what stands otherwise than the records say is told, page and line, with status 1.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.rendering import runs, trends
from benchmarks.rendering.ages import age, history_is_here, without_ages
from benchmarks.rendering.answers import (
    certified_products,
    commit_pairs,
    ltl_products,
    quotients,
    same_answers,
    several_processes,
    vectors_on_disk,
)
from benchmarks.rendering.components import auto_choice, scc_mec
from benchmarks.rendering.decision_processes import mdp_agreement, mdp_sweep, symbolic_components
from benchmarks.rendering.field import engines, field, huge, long_run
from benchmarks.rendering.figures import Difference, figure_differences, with_figures
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
from benchmarks.rendering.parts import (
    cards,
    eight_on_paper,
    explicit_on_cards,
    halos,
    on_paper,
    whole_on_cards,
)
from benchmarks.rendering.processes import cold_start, first_use, whole_run
from benchmarks.rendering.spmv_papers import density_sweep, paper_tables, streamed_parts
from benchmarks.rendering.thesis import thesis_memory, thesis_tables
from benchmarks.rendering.whole_answers import whole_answers

__all__ = [
    "BLOCKS",
    "SECTIONS",
    "differences",
    "load",
    "page",
    "pages",
    "rendered",
    "replace_block",
    "with_blocks",
]

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "benchmarks.md"

HEAD = """# Benchmarks

Rendered by `python -m benchmarks.rendering.render` from the records in `benchmarks/results/`; each record
names commit, versions and processor, and how many commits have changed what it measures since, counted when
this page was rendered.  Times of two programs are compared within one run; PRISM's figures were measured
apart, on the same kind of machine, and stand beside for orientation.  Which program makes which table is in
[benchmarks/README.md](../benchmarks/README.md)."""


def load(name: str) -> Row | None:
    """Return a record, with the name of its file without the suffix; None if there is none."""
    path = RESULTS / f"{name}.json"
    return {**json.loads(path.read_text(encoding="utf-8")), "file": name} if path.exists() else None


def load_with_age(name: str) -> Row | None:
    """Return a record as :func:`load` does, with how many commits changed what it measures since."""
    record = load(name)
    return None if record is None else {**record, "age": age(record)}


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
    "thesis_tables_tasks": thesis_tables,
    "thesis_memory": thesis_memory,
    "whole_answers": lambda record: whole_answers(record, load("whole_answers_cpu")),
    "whole_answers_cpu": whole_answers,
    "field": field,
    "long_run": long_run,
    "long_run_gpu": lambda record: field(record, "Averages of decision processes on a card"),
    "engines": engines,
    "whole_run": whole_run,
    "whole_run_certified": whole_run,
    "whole_run_certified_large": whole_run,
    "whole_run_large": whole_run,
    "first_use": first_use,
    "cold_start": cold_start,
    "explicit_formats": explicit_formats,
    "paper_tables": paper_tables,
    "cards_explicit": lambda record: explicit_on_cards(record, load("paper_tables")),
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
    "cards": cards,
    "cards_whole": whole_on_cards,
    "scaling": on_paper,
    "scaling_eight": eight_on_paper,
    "spill": vectors_on_disk,
    "lumping": quotients,
    "agreement": agreement,
    "same_answers": same_answers,
    "commit_pairs": commit_pairs,
    "mdp_agreement": mdp_agreement,
}
"""Sections of the page, by record."""

LANES = ("attack", "mutants", "device_lane", "sanitizers")
"""Records that every run appends to."""

BLOCKS: dict[tuple[str, str], tuple[str, Renderer]] = {
    ("explicit.md", "byte traffic"): ("explicit_formats", byte_traffic),
    ("explicit.md", "structures"): ("structure_plots", structure_table),
    ("gpu.md", "limits"): ("gpu_product", limits),
    ("graphs.md", "the choice"): ("scc_mec", auto_choice),
    ("parts.md", "halos"): ("scaling", halos),
    ("properties.md", "huge models"): ("field", huge),
    ("reliability.md", "attack"): ("attack", runs.attack),
    ("reliability.md", "formulas"): ("logic", runs.formulas),
    ("reliability.md", "mutants"): ("mutants", runs.mutants),
    ("reliability.md", "seeds"): ("seeds", runs.seeds),
    ("reliability.md", "device lane"): ("device_lane", runs.device_lane),
    ("reliability.md", "sanitizers"): ("sanitizers", runs.sanitizers),
    ("trends.md", "figures"): ("trends", trends.figures),
    ("trends.md", "lanes"): ("attack", lambda record: trends.lanes({name: load(name) for name in LANES})),
}
"""Record and renderer of every table in another page, by page and name."""


def page(load: Callable[[str], Row | None] = load) -> str:
    """Return the page of results."""
    found = ((render, load(name)) for name, render in SECTIONS.items())
    return "\n\n".join([HEAD, *(render(record) for render, record in found if record is not None)]) + "\n"


def pages() -> list[Path]:
    """Return README and the pages of docs."""
    found = [path for path in PAGE.parent.rglob("*.md") if "generated" not in path.parts]
    return [ROOT / "README.md", *sorted(found)]


def rendered(path: Path, text: str, load: Callable[[str], Row | None] = load) -> str:
    """Return a page with its tables and figures made anew from the records, as `load` has them.

    Raises
    ------
    ValueError
        If markers of a table or a figure are broken, or no record has what they name.
    """
    if path == PAGE:
        return page(load)
    return with_figures(with_blocks(path.name, text, load), functools.cache(load))


def with_blocks(name: str, text: str, load: Callable[[str], Row | None] = load) -> str:
    """Return a hand-written page with its tables made anew."""
    for (where, block), (source, render) in BLOCKS.items():
        record = load(source) if where == name else None
        if record is not None:
            text = replace_block(text, block, render(record))
    return text


def differences(path: Path, text: str) -> Iterator[Difference]:
    """Yield what stands in a page otherwise than the records say, figures first, then lines of tables.

    How many commits are younger than a record is left aside: that is counted when a page is written.

    Raises
    ------
    ValueError
        As :func:`rendered` does.
    """
    text = without_ages(text)
    right = without_ages(rendered(path, text))
    if path != PAGE:
        yield from figure_differences(text, functools.cache(load))
        # Lines of prose differ in figures alone, which were told.
        text = with_figures(text, functools.cache(load))
    lines, others = text.splitlines(), right.splitlines()
    for number, (line, other) in enumerate(itertools.zip_longest(lines, others, fillvalue=""), 1):
        if line != other:
            yield Difference(number, line, other, "the rendering")
            if len(lines) != len(others):
                return  # the lines after it have moved


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


def main() -> int:
    """Write the pages, or check them; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; status 1 if a page differs")
    check = parser.parse_args().check
    counted = load_with_age if history_is_here() else load
    if not check and counted is load:
        print("there is no whole history here: pages say nothing of commits since their records")
    status = 0
    for path in pages():
        name, text = path.relative_to(ROOT), path.read_text(encoding="utf-8")
        try:
            found = list(differences(path, text)) if check else []
            right = text if check else rendered(path, text, functools.cache(counted))
        except ValueError as error:
            print(f"{name}: {error}", file=sys.stderr)
            status = 1
            continue
        for difference in found:
            print(f"{name}:{difference}", file=sys.stderr)
            status = 1
        if right != text:
            path.write_text(right, encoding="utf-8")
            print(f"wrote {name}")
    return status


if __name__ == "__main__":
    sys.exit(main())
