"""The Unified Markov Binary (UMB) format, https://pmc-tools.github.io/umb."""

from hybrid.models.interchange.umb.file import read_umb, write_umb

__all__ = ["read_umb", "write_umb"]
