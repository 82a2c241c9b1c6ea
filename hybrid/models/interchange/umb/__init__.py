"""The Unified Markov Binary (UMB) format, https://pmc-tools.github.io/umb."""

from hybrid.models.interchange.umb.reading import read_umb
from hybrid.models.interchange.umb.writing import write_umb

__all__ = ["read_umb", "write_umb"]
