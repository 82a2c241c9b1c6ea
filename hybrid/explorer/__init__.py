"""The level explorer: what every injection level of a model takes, and pictures of it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

# Not on first use: a function and its module have one name.
from hybrid.explorer.model_choices import matrix_held, model_choices

if TYPE_CHECKING:
    from hybrid.explorer.blocks import BlockPicture, block_picture
    from hybrid.explorer.measure import measure_levels
    from hybrid.explorer.page import page_text, write_page
    from hybrid.explorer.report import LevelReport, report_levels
    from hybrid.explorer.sheet import measure_representations, model_sheet
    from hybrid.explorer.weigh import weigh_levels

_HOMES = {
    "BlockPicture": "blocks",
    "LevelReport": "report",
    "block_picture": "blocks",
    "measure_levels": "measure",
    "measure_representations": "sheet",
    "model_sheet": "sheet",
    "page_text": "page",
    "report_levels": "report",
    "weigh_levels": "weigh",
    "write_page": "page",
}

__all__ = [
    "BlockPicture",
    "LevelReport",
    "block_picture",
    "matrix_held",
    "measure_levels",
    "measure_representations",
    "model_choices",
    "model_sheet",
    "page_text",
    "report_levels",
    "weigh_levels",
    "write_page",
]


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that counting levels does not load what builds and draws them."""
    if name not in _HOMES:
        raise AttributeError(f"module 'hybrid.explorer' has no attribute {name!r}")
    value = getattr(import_module(f"hybrid.explorer.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
