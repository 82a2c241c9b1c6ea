"""The notebooks of docs/notebooks: read, run with and without Jupyter, and written with what they print.

``python -m tests.notebooks`` runs them all with Jupyter and keeps their outputs.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import os
from typing import Any

from tests.source_tree import ROOT

FOLDER = ROOT / "docs/notebooks"
IMAGES = ROOT / "docs/images"  # each notebook's first picture, for the gallery
SECONDS = 120  # a cell may take


def notebooks() -> list[str]:
    """The names of all notebooks, without their ending."""
    return sorted(path.stem for path in FOLDER.glob("*.ipynb"))


def read(name: str) -> dict[str, Any]:
    """A notebook as JSON."""
    return json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))


def code_cells(book: dict[str, Any]) -> list[dict[str, Any]]:
    """The cells that run."""
    return [cell for cell in book["cells"] if cell["cell_type"] == "code"]


def text_of(value: str | list[str]) -> str:
    """A text of a notebook, which may be a list of its lines."""
    return value if isinstance(value, str) else "".join(value)


def shown_by(cell: dict[str, Any]) -> str:
    """What a cell shows as text: what it printed, then its value."""
    told = "".join(text_of(found["text"]) for found in cell["outputs"] if found["output_type"] == "stream")
    for found in cell["outputs"]:
        if found["output_type"] == "execute_result":
            told += text_of(found["data"]["text/plain"]) + "\n"
    return told


def pictures_of(cell: dict[str, Any]) -> int:
    """How many pictures a cell shows."""
    return sum("image/png" in found.get("data", {}) for found in cell["outputs"])


def first_picture(book: dict[str, Any]) -> bytes:
    """The first picture that a notebook shows, as a PNG."""
    shown = (found.get("data", {}) for cell in code_cells(book) for found in cell["outputs"])
    return base64.b64decode(next(text_of(data["image/png"]) for data in shown if "image/png" in data))


def run_cell(source: str, place: str, names: dict[str, Any]) -> str:
    """Run a cell as a plain text of Python; return what it printed, then the last line's value."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(tree, place, "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), place, "eval"), names)
            if value is not None:
                print(repr(value))
    return out.getvalue()


def run_with_jupyter(book: dict[str, Any]) -> dict[str, Any]:
    """Run a notebook in a kernel of Jupyter; return it with its outputs."""
    import nbformat
    from nbclient import NotebookClient

    node = nbformat.reads(json.dumps(book), as_version=4)
    options = {"kernel_name": "python3", "record_timing": False, "coalesce_streams": True}
    client = NotebookClient(node, timeout=SECONDS, **options)
    # Pictures go into the notebook, whatever is drawn with otherwise here.
    client.execute(env=os.environ | {"MPLBACKEND": "module://matplotlib_inline.backend_inline"})
    return json.loads(nbformat.writes(node))


def main() -> None:
    """Run all notebooks and keep what they show."""
    for name in notebooks():
        book = run_with_jupyter(read(name))
        book["metadata"] = {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        }
        text = json.dumps(book, indent=1, ensure_ascii=False) + "\n"
        (FOLDER / f"{name}.ipynb").write_text(text, encoding="utf-8")
        (IMAGES / f"notebook-{name}.png").write_bytes(first_picture(book))
        print(name)


if __name__ == "__main__":
    main()
