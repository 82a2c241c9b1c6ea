"""Data of an explorer's page, read back from its text."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any

__all__ = ["Scripts", "sheets_of"]


class Scripts(HTMLParser):
    """What a tokenizer finds in a page: elements by name with their attributes, and scripts' texts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self._is_inside = False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag == "script":
            self._is_inside = True
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._is_inside = self._is_inside and tag != "script"

    def handle_data(self, data: str) -> None:
        if self._is_inside:
            self.scripts[-1] += data


def sheets_of(page: str) -> list[dict[str, Any]]:
    """Return what the page knows, a record a model."""
    found: list[dict[str, Any]] = json.loads(Scripts(page).scripts[0])
    return found
