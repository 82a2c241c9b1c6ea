"""`hybrid cards`: cards of this machine, which of them reach each other, NCCL and MPI."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from typing import Any

from hybrid.app.cli.console import Console
from hybrid.base.units import bytes_text
from hybrid.matrix.gpu.transports import VARIABLE

_ASK_MPI = """
import mpi4py
mpi4py.rc.initialize = False
from mpi4py import MPI
library = MPI.Get_library_version().splitlines()[0].strip("\\0")
print(f"mpi4py {mpi4py.__version__},", " ".join(library.split()))
"""

_COPIED = 1 << 28
"""Bytes of a copy whose rate is measured."""


def run(options: argparse.Namespace, console: Console) -> int:
    """Print what is there, or why nothing is; return the exit status."""
    found = cards_record(options.measure)
    if options.json:
        console.print(json.dumps(found))
    else:
        for line in _lines(found):
            console.print(line)
    return 0


def cards_record(measure: bool = False) -> dict[str, Any]:
    """Return cards, who reaches whom, NCCL and MPI, as plain JSON values; `problem`: why there is no card."""
    from gpu_kernels import device_problem

    problem = device_problem()
    return {
        "problem": problem,
        "cards": [] if problem else _cards(measure),
        "nccl": "not used without a card" if problem else _nccl(),
        "mpi": _mpi(),
        VARIABLE: os.environ.get(VARIABLE),
    }


def _cards(measure: bool) -> list[dict[str, Any]]:
    """Return the cards in CUDA's order, each with those whose memory it can write to, or rates of copies."""
    from cupy import cuda

    runtime, found = cuda.runtime, []
    count = int(runtime.getDeviceCount())
    for number in range(count):
        properties = runtime.getDeviceProperties(number)
        with cuda.Device(number):
            free, total = (int(size) for size in runtime.memGetInfo())
        found.append(
            {
                "number": number,
                "name": properties["name"].decode(),
                "uuid": bytes(properties["uuid"]).hex(),
                "pci": str(runtime.deviceGetPCIBusId(number)),
                "total_bytes": total,
                "free_bytes": free,
                "reaches": [
                    other
                    for other in range(count)
                    if other != number and runtime.deviceCanAccessPeer(number, other)
                ],
            }
        )
        if measure:
            rates = {str(other): _rate(number, other) for other in range(count) if other != number}
            found[-1]["bytes_per_second"] = rates
    return found


def _rate(source: int, target: int) -> float:
    """Return the bytes a second of a copy from card to card, through the host where they do not reach it."""
    import cupy

    with cupy.cuda.Device(target):
        there = cupy.empty(_COPIED, "u1")
    with cupy.cuda.Device(source):
        here, stream = cupy.zeros(_COPIED, "u1"), cupy.cuda.get_current_stream()
        for _ in range(2):  # the first one sets the way up
            begin, end = cupy.cuda.Event(), cupy.cuda.Event()
            begin.record()
            cupy.cuda.runtime.memcpyPeerAsync(
                there.data.ptr, target, here.data.ptr, source, _COPIED, stream.ptr
            )
            end.record()
            end.synchronize()
        return 1e3 * _COPIED / float(cupy.cuda.get_elapsed_time(begin, end))


def _nccl() -> str:
    """Return NCCL's version, or why there is none."""
    try:
        from cupy.cuda import nccl

        return str(nccl.get_version())
    except (ImportError, AttributeError, RuntimeError) as fault:
        return f"none: {fault}"


def _mpi() -> str:
    """Return the versions of mpi4py and its MPI library, or why there is none; another process loads them."""
    done = subprocess.run([sys.executable, "-c", _ASK_MPI], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return done.stdout.strip()
    return f"none: {(done.stderr.strip().splitlines() or ['no reason was given'])[-1]}"


def _lines(found: dict[str, Any]) -> list[str]:
    """Return a record as lines of text."""
    lines = [f"no card: {found['problem']}"] if found["problem"] else []
    for card in found["cards"]:
        others = ", ".join(map(str, card["reaches"])) or "none"
        lines += [
            f"card {card['number']}  {card['name']}, {bytes_text(card['free_bytes'])} of "
            f"{bytes_text(card['total_bytes'])} free",
            f"        {card['pci']}, UUID {card['uuid']}; writes to cards: {others}",
        ]
        rates = card.get("bytes_per_second", {})
        lines += [f"        to card {other}: {rate / 1e9:.0f} GB/s" for other, rate in rates.items()]
    forced = found[VARIABLE]
    return [
        *lines,
        f"NCCL    {found['nccl']}",
        f"MPI     {found['mpi']}",
        f"{VARIABLE} is {forced}" if forced else f"{VARIABLE} is not set: the quickest way that there is",
    ]
