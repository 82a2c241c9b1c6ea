"""What memory the machine has left."""

from __future__ import annotations

from pathlib import Path

__all__ = ["free_memory_bytes"]


def free_memory_bytes() -> int:
    """Return the memory that can be had without swapping."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
    except OSError:
        pass
    return 1 << 62
