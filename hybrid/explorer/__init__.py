"""The level explorer: what every injection level of a model takes, and pictures of it."""

from hybrid.explorer.measure import measure_levels
from hybrid.explorer.model_offers import model_offers
from hybrid.explorer.report import LevelReport, report_levels

__all__ = ["LevelReport", "measure_levels", "model_offers", "report_levels"]
