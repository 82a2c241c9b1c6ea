"""Paths of models drawn from their texts, and estimates from such paths."""

from __future__ import annotations

from hybrid.checking.simulation.estimates import Estimate, estimate
from hybrid.checking.simulation.paths import simulate
from hybrid.checking.simulation.walk import SamplePaths

__all__ = ["Estimate", "SamplePaths", "estimate", "simulate"]
