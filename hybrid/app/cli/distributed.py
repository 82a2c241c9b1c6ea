"""`hybrid check --distributed`: one of several processes, of which the first tells the answers."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from gpu_kernels import take_card
from hybrid.app.cli.thread_limit import limited_threads
from hybrid.base.communicators.mpi import MpiCommunicator, mpi_communicator
from hybrid.base.errors import HybridError, OptionError
from hybrid.matrix.cpu.threads import VARIABLE, available_cores, is_bound_to_cores

_ALONE = (
    *("scheduler", "certificate", "plot", "plot_convergence", "diagram"),
    *("timeout", "memory", "witness"),
)
"""Options that ask for what is not brought together, or for limits that processes would reach apart."""


@contextmanager
def distributed(options: argparse.Namespace) -> Iterator[MpiCommunicator | None]:
    """Return who the other processes are; None where the command is alone.

    All processes but the first write nothing, and those of one machine share its cores unless the job binds
    them to some, or a number of threads is given.  Where one of them fails by itself all are ended.

    Raises
    ------
    OptionError
        mpi4py is missing, or an option is given that does not go with several processes.
    """
    if not options.distributed:
        yield None
        return
    refused = [name for name in _ALONE if getattr(options, name, None)]
    if refused:
        named = " and ".join(f"--{name.replace('_', '-')}" for name in refused)
        raise OptionError(
            f"--distributed: {named} is not offered with several processes; leave one of them out"
        )
    communicator = mpi_communicator()
    if communicator.rank:
        options.csv = None
        sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - until the end
    threads = options.threads
    number, beside = communicator.beside()
    if options.backend == "gpu":
        take_card(number)  # before anything is compiled for one
    if threads is None and not os.environ.get(VARIABLE):
        # Each process is offered all cores unless the job binds it to some.
        threads = None if is_bound_to_cores() else max(available_cores() // beside, 1)
    try:
        with limited_threads(threads):
            yield communicator
    except HybridError:
        raise  # in all processes alike
    except BaseException as failure:
        communicator.abort(f"{type(failure).__name__}: {failure}")
        raise
