"""From a model written out to decision diagrams."""

from hybrid.models.interchange.compressing.compress import compressed

__all__ = ["compressed"]
