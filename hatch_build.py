"""Hooks of the build: a README whose links lead somewhere, and examples within the wheel."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

_RELATIVE = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#|mailto:)([^)\s]*)\)")


class Readme(MetadataHookInterface):
    """The README as the description of the package.

    Its links are paths within the repository. With a project URL named ``Source`` they become addresses
    there; without one, or with a placeholder (a host in ``.invalid``), they become plain text, which is
    better than a link that leads nowhere.
    """

    def update(self, metadata: dict[str, Any]) -> None:
        """Give the metadata the text."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        source = address_of(metadata.get("urls", {}))
        metadata["readme"] = {"content-type": "text/markdown", "text": readable_elsewhere(text, source)}


def address_of(urls: dict[str, str]) -> str | None:
    """Return where the source is, or None as long as a placeholder stands there."""
    source = urls.get("Source")
    return None if source is None or (urlsplit(source).hostname or "").endswith(".invalid") else source


def readable_elsewhere(text: str, source: str | None) -> str:
    """Return a text in Markdown with its relative links made absolute, or, without an address, made text."""

    def changed(link: re.Match[str]) -> str:
        image, name, path = link.groups()
        if source is not None:
            folder = "raw" if image else "blob"
            return f"{image}[{name}]({source.rstrip('/')}/{folder}/main/{path})"
        return "" if image else name

    return _RELATIVE.sub(changed, text)


class ExamplesInWheel(BuildHookInterface[Any]):
    """Models and properties of ``examples`` as ``hybrid/examples`` in wheels, where a command finds them."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the files, but to editable installs, which see the folder itself."""
        if version != "standard":
            return
        for path in sorted((Path(self.root) / "examples").iterdir()):
            if path.suffix in (".prism", ".props"):
                build_data["force_include"][str(path)] = f"hybrid/examples/{path.name}"
