"""Models as people hold them: what `hybrid.load` and `hybrid.parse` return."""

from hybrid.models.model.held import Model

__all__ = ["Model"]
