"""Building explicitly: the reachable states of a text, found one after another, and then compressed.

For models without structure, whose diagrams take longer to make than their states to list.
"""

from __future__ import annotations

from hybrid.exploration.build import build_explicitly

__all__ = ["build_explicitly"]
