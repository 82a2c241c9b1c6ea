"""Building explicitly: the reachable states of a text, found one after another, and then compressed.

For models without structure, whose diagrams take longer to make than their states to list; and the choice
between the two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hybrid.models.exploration.automatic import build_automatically
from mtbdd.base.lazy_loading import lazy_names

if TYPE_CHECKING:
    from hybrid.models.exploration.build import build_explicitly

__all__ = ["build_automatically", "build_explicitly"]
_HOMES = {"build_explicitly": "build"}

if not TYPE_CHECKING:  # type checkers have the imports above
    # On first use: what lists states is loaded where states are listed.
    __getattr__ = lazy_names(__name__, _HOMES)
