"""The level explorer: what every injection level of a model takes, and pictures of it."""

from hybrid.explorer.measure import measure_levels
from hybrid.explorer.model_choices import model_choices
from hybrid.explorer.report import LevelReport, report_levels
from hybrid.explorer.weigh import weigh_levels

__all__ = ["LevelReport", "measure_levels", "model_choices", "report_levels", "weigh_levels"]
