"""From a model written out to decision diagrams."""

from hybrid.interchange.compressing.compress import compressed

__all__ = ["compressed"]
