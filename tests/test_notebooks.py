"""The notebooks of the pages show what they print, with Jupyter and without."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

from tests.notebooks import (
    IMAGES,
    code_cells,
    first_picture,
    notebooks,
    pictures_of,
    read,
    run_cell,
    run_with_jupyter,
    shown_by,
    text_of,
)
from tests.source_tree import ROOT

MISSING = [name for name in ("nbclient", "nbformat", "ipykernel") if importlib.util.find_spec(name) is None]


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in a folder that is empty: a notebook that was downloaded has nothing beside it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def test_there_are_five_and_the_site_shows_them() -> None:
    assert notebooks() == ["chain", "diagrams", "levels", "scheduler", "solvers"]
    index = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    listed = index[index.index("toctree") :].split()
    for name in notebooks():
        assert f"notebooks/{name}" in listed
        assert f"(notebooks/{name}.ipynb)" in index


@pytest.mark.parametrize("name", notebooks())
def test_cells_show_what_they_print(
    name: str, elsewhere: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPLBACKEND", "agg")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    names: dict[str, object] = {"__name__": "__main__"}
    try:
        for number, cell in enumerate(code_cells(read(name)), 1):
            place = f"{name}, cell {number}"
            told = run_cell(text_of(cell["source"]), place, names)
            assert told == shown_by(cell), place
            assert len(pyplot.get_fignums()) == pictures_of(cell), place
            pyplot.close("all")
    finally:
        # Functions hold the names: what is left to the collector goes in any order, managers first.
        names.clear()
        pyplot.close("all")
    assert not list(tmp_path.iterdir())


@pytest.mark.nightly
@pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}, of the extra 'notebook'")
def test_jupyter_shows_what_they_print(elsewhere: None) -> None:
    """One kernel runs one: starting it takes as long as several; each begins without names."""
    books = {name: read(name) for name in notebooks()[2:3]}
    forget = {
        "cell_type": "code",
        "source": "%reset -f",
        "metadata": {},
        "outputs": [],
        "execution_count": None,
    }
    cells: list[dict[str, Any]] = []
    for name, book in books.items():
        own = [*code_cells(book), forget]
        cells += [cell | {"id": f"{name}-{number}"} for number, cell in enumerate(own)]
    again = iter(run_with_jupyter(book | {"cells": cells})["cells"])
    for name, book in books.items():
        for number, stored in enumerate(code_cells(book), 1):
            found = next(again)
            assert shown_by(found) == shown_by(stored), f"{name}, cell {number}"
            assert pictures_of(found) == pictures_of(stored), f"{name}, cell {number}"
        assert shown_by(next(again)) == ""


@pytest.mark.parametrize("name", notebooks())
def test_notebooks_are_whole(name: str) -> None:
    book = read(name)
    first = book["cells"][0]
    assert first["cell_type"] == "markdown" and text_of(first["source"]).startswith("# ")
    cells = code_cells(book)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [found for cell in cells for found in cell["outputs"]]
    streams = [[found["output_type"] for found in cell["outputs"]].count("stream") for cell in cells]
    assert max(streams) == 1  # what a cell prints stands in one piece
    assert all(found.get("name", "stdout") == "stdout" for found in outputs)
    assert not any(found["output_type"] == "error" for found in outputs)
    assert len({cell["id"] for cell in book["cells"]}) == len(book["cells"])
    assert book["metadata"].keys() == {"kernelspec", "language_info"}
    assert (IMAGES / f"notebook-{name}.png").read_bytes() == first_picture(book)


def test_the_gallery_leads_to_every_notebook() -> None:
    page = (ROOT / "docs/gallery.md").read_text(encoding="utf-8")
    for name in notebooks():
        assert f"](images/notebook-{name}.png)](notebooks/{name}.ipynb)" in page
        assert f"[file](../docs/notebooks/{name}.ipynb)" in page
    for path in re.findall(r"\]\(([^)#]+)[^)]*\)", page):
        assert (ROOT / "docs" / path).exists(), path
