"""What every communicator has to do, run in each of its processes."""

from __future__ import annotations

import numpy as np

from mtbdd.base.communicator import Communicator

__all__ = ["check_communicator"]


def check_communicator(alike: Communicator) -> bool:
    """Ask all there is to ask; every process calls it, and gets True."""
    rank, size = alike.rank, alike.size
    found = alike.gather([rank, 0.5 * rank])
    assert found.shape == (size, 2)
    assert found.tolist() == [[k, 0.5 * k] for k in range(size)]
    assert np.isnan(alike.greatest(np.nan if rank == size - 1 else 1.0))
    assert alike.greatest(rank) == size - 1
    assert alike.least(rank) == 0
    assert alike.any(rank == size - 1)
    assert not alike.any(False)
    assert alike.all(True)
    assert alike.all(rank == 0) == (size == 1)
    assert alike.total([1.0, 10.0**-rank]).tolist() == [
        size,
        float(np.add.reduce([10.0**-k for k in range(size)])),
    ]
    assert alike.first_text(None) is None
    assert alike.first_text(f"part {rank}" if rank or size == 1 else None) == f"part {min(1, size - 1)}"
    assert alike.first_text("") == ""
    assert alike.gather_bytes(b"x" * rank) == [b"x" * k for k in range(size)]
    for turn in range(3):
        # To process k come k + turn numbers of every other one; nothing is sent to process 0 at first.
        outgoing = [np.full(k + turn, 100.0 * rank + k) for k in range(size)]
        incoming = [np.full(rank + turn, np.nan) for _ in range(size)]
        alike.exchange(outgoing, incoming)
        for k, part in enumerate(incoming):
            assert k == rank or part.tolist() == [100.0 * k + rank] * (rank + turn)
    # Some pairs exchange what no packet has room for, and what is sent next waits behind it.
    outgoing = [np.full(20_000 * ((rank + k) % 2), 1.0 * rank) for k in range(size)]
    incoming = [np.full(20_000 * ((rank + k) % 2), np.nan) for k in range(size)]
    alike.exchange(outgoing, incoming)
    for k, part in enumerate(incoming):
        assert k == rank or (part == k).all()
    assert alike.finish(None) is None
    assert alike.finish("of the last" if rank == size - 1 else None) == "of the last"
    assert alike.finish("" if rank else "of the first") == "of the first"
    return True
