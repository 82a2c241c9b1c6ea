"""The level explorer: what every injection level of a model takes, and pictures of it."""

from hybrid.explorer.blocks import BlockPicture, block_picture
from hybrid.explorer.measure import measure_levels
from hybrid.explorer.model_choices import model_choices
from hybrid.explorer.page import page_text, write_page
from hybrid.explorer.report import LevelReport, report_levels
from hybrid.explorer.sheet import matrix_held, measure_representations, model_sheet
from hybrid.explorer.weigh import weigh_levels

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
