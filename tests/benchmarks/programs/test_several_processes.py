"""Programs that start processes of MPI, at a small size; their records are rendered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.programs import overlap
from tests.benchmarks.support import rendered
from tests.builders.processes import needs_mpi


@needs_mpi
@pytest.mark.nightly
def test_products_while_messages_are_under_way(record_of: Callable[..., dict[str, Any]]) -> None:
    small = ("--only", "kanban t=2", "--transport", "shared memory", "--rounds", "3", "--count", "2")
    record = record_of(overlap, *small)
    (row,) = record["rows"]
    assert "error" not in row
    assert row["halo_bytes"] > 1000
    assert 0 < row["messages_seconds"] < row["waiting_seconds"] * 100
    least, middle, most = row["of_waiting"]
    assert 0 < least <= middle <= most
    assert "| kanban t=2 | shared memory |" in rendered("overlap", record)
