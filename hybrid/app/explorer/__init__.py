"""The level explorer: memory and time of every injection level of a model, and pictures of its blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mtbdd.base.lazy_loading import lazy_names

if TYPE_CHECKING:
    from hybrid.app.explorer.blocks import BlockPicture, block_picture
    from hybrid.app.explorer.page import page_text, write_page
    from hybrid.app.explorer.report import (
        LevelReport,
        matrix_held,
        model_choices,
        report_levels,
        weigh_levels,
    )
    from hybrid.app.explorer.sheet import measure_levels, measure_representations, model_sheet

_HOMES = {
    "blocks": ("BlockPicture", "block_picture"),
    "page": ("page_text", "write_page"),
    "report": ("LevelReport", "matrix_held", "model_choices", "report_levels", "weigh_levels"),
    "sheet": ("measure_levels", "measure_representations", "model_sheet"),
}

__all__ = [
    "BlockPicture", "LevelReport", "block_picture", "matrix_held", "measure_levels",
    "measure_representations", "model_choices", "model_sheet", "page_text", "report_levels", "weigh_levels",
    "write_page",
]  # fmt: skip

if not TYPE_CHECKING:  # type checkers have the imports above
    # On first use: counting levels does not load the modules that build and draw them.
    __getattr__ = lazy_names(__name__, _HOMES)
