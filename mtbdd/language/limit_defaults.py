"""The limits by name, and their values unless others are given; help shows them and loads nothing else."""

from __future__ import annotations

DEFAULT_LIMITS = {
    "source_bytes": 1 << 28,
    "tokens": 20_000_000,
    "variables": 20_000,
    "bits": 2_000,
    "commands": 1_000_000,
    "nodes": 5_000_000,
    "faults": 100,
    "values": 1 << 17,
    "combinations": 100_000,
    "table_steps": 1 << 32,
    "pair_steps": 1 << 20,
}
"""`mtbdd.language.limits.Limits` describes each of them."""
