"""The property language: PCTL, CSL, CTL and reward operators over models of the PRISM language."""

from __future__ import annotations

from hybrid.properties.parser import load_properties, parse_properties
from hybrid.properties.resolve import resolve_properties
from hybrid.properties.tree import (
    Cumulative,
    Filter,
    Instantaneous,
    LongRun,
    MultiObjective,
    Path,
    Probability,
    Properties,
    Property,
    Quantified,
    Quantile,
    Reward,
    RewardBound,
    RewardBounds,
    SteadyState,
    TimeBound,
)

__all__ = [
    "Cumulative", "Filter", "Instantaneous", "LongRun", "MultiObjective", "Path", "Probability", "Properties",
    "Property", "Quantified", "Quantile", "Reward", "RewardBound", "RewardBounds", "SteadyState", "TimeBound",
    "load_properties", "parse_properties", "resolve_properties",
]  # fmt: skip
