"""The explorer's page: one file of HTML with its style, its programs and its data, that asks for no other.

The parts are files of this folder, put together as they are. Data go in as JSON in which no character can end
the element that holds it. The programs write all of it as text, never as HTML, for labels and names of files
may hold anything. The page's own policy lets nothing run but these programs, by their digests, and lets
nothing be fetched.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from hybrid.base.errors import OptionError

__all__ = ["page_text", "write_page"]

STYLES = ("colours.css", "page.css", "parts.css", "screens.css")
PROGRAMS = ("text.js", "chart.js", "blocks.js", "facts.js", "page.js")
"""Programs of the page, each of which may use those before it."""


def page_text(sheets: Sequence[dict[str, Any]], title: str = "") -> str:
    """Return the page of some models.

    Parameters
    ----------
    sheets : sequence of dict
        One a model, from `hybrid.app.explorer.model_sheet`; at least one.
    title : str
        Of the page; default the first model's file.

    Returns
    -------
    str
        HTML that asks for no other file.

    Raises
    ------
    OptionError
        There is no model.
    """
    if not sheets:
        raise OptionError("a page of levels needs at least one model")
    style = "\n" + "\n".join(map(_part, STYLES))
    program = '"use strict";\n(() => {\n' + "\n".join(map(_part, PROGRAMS)) + "})();\n"
    policy = f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(program)}'"
    holes = {
        "POLICY": policy,
        "TITLE": html.escape(title or Path(sheets[0]["file"]).name),
        "STYLE": style,
        "DATA": _harmless(json.dumps(list(sheets), allow_nan=False, separators=(",", ":"))),
        "PROGRAM": program,
    }
    pieces = _part("page.html").split("@@")
    # Every other piece is the name of a hole; what fills one is not examined again.
    return "".join(holes[piece] if place % 2 else piece for place, piece in enumerate(pieces))


def write_page(sheets: Sequence[dict[str, Any]], path: str | Path, title: str = "") -> None:
    """Write the page of some models, see `page_text`.

    Parameters
    ----------
    sheets : sequence of dict
    path : str or Path
        Overwritten.
    title : str

    Raises
    ------
    OptionError
        There is no model, or the file cannot be written.
    """
    text = page_text(sheets, title)
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise OptionError(f"cannot write the page {str(path)!r}: {error.strerror}") from None


def _part(name: str) -> str:
    """Return a file of the page."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """Return how a policy names a text that it allows."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _harmless(data: str) -> str:
    """Return JSON that stays JSON and has no character which HTML would take for its own."""
    for character in "<>&":
        data = data.replace(character, f"\\u{ord(character):04x}")
    return data
