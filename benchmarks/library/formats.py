"""Products of explicit formats, one after the other, each freed before the next."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks.library.device import best_seconds, free_device_memory, relative_difference
from gpu_kernels import FORMATS, Device
from gpu_kernels.explicit import CSR_ALGORITHMS, CusparseCsr

__all__ = ["Timer", "measure_formats", "product_seconds"]

Timer = Callable[[Callable[[], None]], float]
"""Returns the seconds of a call."""


def product_seconds(device: Device, multiply: Callable[[], None]) -> float:
    """Return the median seconds of a product on the device, launches hidden."""
    return device.seconds(multiply, 3) if device.xp is np else best_seconds(device.xp, multiply)


def measure_formats(
    device: Device,
    csr: tuple[Any, Any, Any],
    x: Any,
    expected: Any,
    names: Sequence[str],
    timer: Timer | None = None,
) -> Iterator[dict[str, Any]]:
    """Measure formats of one matrix.

    Parameters
    ----------
    device : Device
    csr : tuple of ndarray
        Row starts, columns and values on the device.
    x, expected : ndarray
        Operand, and the result to compare with.
    names : sequence of str
        Of `gpu_kernels.FORMATS`; cuSPARSE's has an entry for each of its algorithms.
    timer : callable, optional
        Instead of `product_seconds`.

    Yields
    ------
    dict
        Name, seconds, bytes, elements an entry, traffic, seconds of the conversion, and the greatest
        difference relative to the greatest element; of cuSPARSE whether its matrix was preprocessed.  A
        format that cannot be made has an ``error``.
    """
    entries = max(1, len(csr[1]))
    timer = timer or functools.partial(product_seconds, device)
    for name in names:
        out = device.xp.empty_like(expected)
        start = time.perf_counter()
        try:
            matrix = FORMATS[name].from_csr(device, *csr, n_columns=len(x))
        except (MemoryError, RuntimeError, ValueError) as error:
            yield {"format": name, "error": str(error)}
            continue
        device.synchronise()
        converted = time.perf_counter() - start
        calls = {name: functools.partial(matrix.multiply, device, x, out)}
        if isinstance(matrix, CusparseCsr):
            run = matrix.plan.run
            calls = {f"{name} {key}": functools.partial(run, x, out, k) for key, k in CSR_ALGORITHMS.items()}
        for label, call in calls.items():
            try:
                seconds = timer(call)
            except (MemoryError, RuntimeError) as error:
                yield {"format": label, "error": str(error)}
                continue
            found = {
                "format": label,
                "seconds": seconds,
                "bytes": matrix.nbytes,
                "elements_an_entry": matrix.n_elements / entries,
                "traffic_bytes": matrix.traffic_bytes,
                "entries_per_second": entries / seconds,
                "convert_seconds": converted,
                "difference": relative_difference(out, expected),
            }
            if isinstance(matrix, CusparseCsr):
                found["preprocessed"] = matrix.plan.preprocessed
            yield found
        # Before the next format is made: large matrices fit the card once or twice only.
        del matrix, calls, call
        free_device_memory(collect=False)
