"""Packages of decision diagrams that are here: dd has no CUDD on some machines, and tests do without."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import pytest

HAS_CUDD = importlib.util.find_spec("dd.cudd") is not None

DIAGRAM_PACKAGES = ("cudd", "autoref") if HAS_CUDD else ("autoref",)
"""Names that `package=` takes, the fastest first."""

FASTEST = DIAGRAM_PACKAGES[0]

MANAGERS: dict[str, Any] = {name: importlib.import_module(f"dd.{name}").BDD for name in DIAGRAM_PACKAGES}
"""dd's classes of managers, by the name of the package."""

needs_cudd = pytest.mark.skipif(not HAS_CUDD, reason="dd was installed without CUDD")
