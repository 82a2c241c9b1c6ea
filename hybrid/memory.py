"""What memory the machine has left; see `mtbdd.memory`."""

from __future__ import annotations

from mtbdd.memory import free_memory_bytes, require_memory

__all__ = ["free_memory_bytes", "require_memory"]
