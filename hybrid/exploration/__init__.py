"""Building explicitly: the reachable states of a text, found one after another, and then compressed.

For models without structure, whose diagrams take longer to make than their states to list; and the choice
between the two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hybrid.exploration.automatic import build_automatically

if TYPE_CHECKING:
    from hybrid.exploration.build import build_explicitly

__all__ = ["build_automatically", "build_explicitly"]

if not TYPE_CHECKING:  # type checkers have the imports above

    def __getattr__(name: str) -> Any:
        """Load what lists states where it is first used."""
        if name == "build_explicitly":
            from hybrid.exploration.build import build_explicitly

            return build_explicitly
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
