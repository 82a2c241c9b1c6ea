"""Places of a check: with a folder of checkpoints, with long arrays on a disk, in parts.

Of several processes, or of several parts in one, every part checks its own states. All run the same check;
what one of them decides, all have agreed on. The answer is the same in all.
"""

from __future__ import annotations

import importlib.util
import math
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from hybrid.analysis.run.options import CheckOptions
from hybrid.base.check_options import METHODS, MINUTES
from hybrid.base.errors import HybridError, OptionError
from mtbdd.base.communicator import AgreedMemoryError, Communicator, Share
from mtbdd.base.errors import option
from mtbdd.base.memory import current_store
from mtbdd.build.model import PartModel, SymbolicModel
from mtbdd.diagrams.manager import Node

if TYPE_CHECKING:
    from hybrid.analysis.checkpoints.checkpoint import Checkpoint, Tell


# The checkpoint of a check, made from what its caller asks for.


def checkpoint_of(
    model: SymbolicModel,
    options: CheckOptions,
    folder: str | os.PathLike[str] | None,
    minutes: float = MINUTES,
    tell: Tell | None = None,
) -> Checkpoint | None:
    """Return what keeps the iterations of a check; None if no folder was given.

    Another engine, backend or level, or more iterations, go on with what is kept. All processes call it, each
    with its model. `minutes` lie between two states that are written, 0 for every state that a method offers;
    `tell` passes messages on to the user, by default to a log and Python's warnings. Raises OptionError and
    CheckpointError.
    """
    if folder is None:
        if minutes != MINUTES:
            raise OptionError(
                f"{option('every')} says how often a folder of {option('checkpoint')} is written; give one, "
                "or leave it out"
            )
        return None
    if not (math.isfinite(minutes) and minutes >= 0.0):
        raise OptionError(f"expected minutes between checkpoints, not negative, got {minutes}")
    if options.exact:
        raise OptionError(
            f"{option('checkpoint')} keeps iterations, and exact answers have none; leave one of them out"
        )
    from hybrid.analysis.checkpoints.checkpoint import Checkpoint

    criterion = options.criterion
    kept = {
        "method": options.method,
        "omega": options.omega,
        "epsilon": criterion.epsilon,
        "absolute": criterion.absolute,
    }
    return Checkpoint(Path(folder), minutes, model, kept, tell)


# Checks whose long arrays lie on a disk: what goes with that, and what does not.


def options_on_disk(options: CheckOptions) -> CheckOptions:
    """Return what a check is done with whose long arrays lie on a disk.

    Raises OptionError for what it does not offer.
    """
    named = _named(options, backend=options.backend in ("gpu", "reference"))
    if named:
        raise OptionError(
            f"{option('spill')} is for the hybrid engine on the cpu: leave {named} out, or {option('spill')}"
        )
    return replace(options, engine="hybrid", backend="cpu")


def _named(options: CheckOptions, **more: bool) -> str:
    """Return what is requested that the hybrid engine's iterations do not offer, and more that is refused."""
    refused = {"engine": options.engine in ("explicit", "symbolic"), **more, "exact": options.exact}
    return " and ".join(option(name) for name, is_asked in refused.items() if is_asked)


@contextmanager
def arrays_on_disk(folder: str | os.PathLike[str] | None) -> Iterator[None]:
    """Have long arrays lie in files of a folder while the block lasts; None leaves them in memory.

    Raises OptionError where no file can be made there, or the system has no such files, and DiskError at the
    end where the disk lost what was written.
    """
    if folder is None:
        yield
        return
    if not sys.platform.startswith("linux") or importlib.util.find_spec("numba") is None:
        raise OptionError(f"{option('spill')} needs Linux and the package numba; leave it out")
    from hybrid.base.disk import FileStore  # compiled functions: most checks need none of them

    with FileStore(folder).used():
        yield


# Options that a check refuses before it begins, and the message where memory did not suffice.

_FEW_WORDS = 40  # letters of a message that says nothing of use


def refuse_options(
    model: SymbolicModel, options: CheckOptions, scheduler: bool, checkpoint: bool = False
) -> None:
    """Refuse what does not go together, by OptionError: with the kind of the model, or with schedulers.

    That is a format of matrices for an MDP, whose choices are no matrix, a scheduler of an exact answer, and
    what keeps arrays where vectors are diagrams.
    """
    if options.exact and scheduler:
        raise OptionError(f"schedulers come with bounds: leave {option('exact')} out")
    if options.engine == "symbolic" and (scheduler or checkpoint):
        asked = option("scheduler" if scheduler else "checkpoint")
        raise OptionError(
            f"{asked} keeps arrays, and the engine symbolic has none: choose "
            f"{option('engine', 'hybrid')}, or leave {asked} out"
        )
    if model.is_mdp and options.storage not in ("auto", "csr"):
        raise OptionError(
            f"storage {options.storage!r} holds the matrix of a chain; the choices of an MDP are written out "
            "in one format, a row a choice: leave the storage out"
        )


def told(fault: MemoryError) -> MemoryError:
    """Return a memory fault that says what to do; libraries beneath us may say next to nothing.

    Where long arrays lie on a disk it is a `hybrid.base.errors.DiskError`, if the disk is the reason.
    """
    fault = _of_disk(fault)
    if len(str(fault)) > _FEW_WORDS:
        return fault
    kind = AgreedMemoryError if isinstance(fault, AgreedMemoryError) else MemoryError
    return kind(
        f"memory could not be allocated ({fault or 'no detail was given'}): free some, choose another "
        f"{option('backend')} or {option('level')}, or a smaller model"
    )


def failure_of(fault: MemoryError) -> HybridError:
    """Return why a property has no answer, if a disk had no room; what memory had none for is raised."""
    known = told(fault)
    if isinstance(known, HybridError):
        return known
    raise known from fault


def reason(error: Exception) -> str:
    """Return what a run or a property fails for; of memory it says so."""
    known = _of_disk(error) if isinstance(error, MemoryError) else error
    if isinstance(known, HybridError) or not isinstance(known, MemoryError):
        return str(known)
    return f"out of memory: {known}" if str(known) else f"out of memory; choose another {option('level')}"


def _of_disk(fault: MemoryError) -> MemoryError:
    """Return what the disk that has long arrays says of a fault of memory; the fault if it says nothing."""
    found = None if isinstance(fault, HybridError) else current_store().fault()
    return found if isinstance(found, MemoryError) else fault


T = TypeVar("T")

Ranks = int | Communicator | Any
"""Parts in this process, a communicator of the library, or one of mpi4py."""


def in_parts(
    model: SymbolicModel,
    ranks: Ranks,
    run: Callable[[SymbolicModel], T],
    owners: tuple[Node, ...] | None = None,
) -> T:
    """Run a check on the parts of a model, and return what the first part of this process returns.

    The model is the whole one, the same in every process. `ranks` says how many parts this process has, all
    of them, or who the other processes are, by mpi4py; `run` is called with the model of each part. The
    `owners` have the states of every part, by default by `hybrid.matrix.parts.plan.plan_parts`. Raises
    OptionError. An error of one process alone ends all processes of MPI; a refusal of memory that all of
    them agree on is an `AgreedMemoryError` in all.
    """
    # Imported here: most checks need none of it.
    from hybrid.base.communicators import MpiCommunicator, in_threads
    from hybrid.matrix.parts.plan import planned_owners, require_same

    if isinstance(ranks, bool) or not (isinstance(ranks, (int, Communicator)) or hasattr(ranks, "Get_size")):
        raise OptionError(
            f"ranks: expected a number of parts or a communicator of mpi4py, got {type(ranks).__name__}"
        )
    communicator = ranks if isinstance(ranks, (int, Communicator)) else MpiCommunicator(ranks)
    size = communicator if isinstance(communicator, int) else communicator.size
    if owners is None:
        owners = planned_owners(model, size)
    if isinstance(communicator, Communicator):
        require_same(model, communicator)
        try:
            return run(PartModel(model, Share(communicator, owners)))
        except (HybridError, AgreedMemoryError):
            raise  # in all processes alike
        except BaseException as failure:
            # The others would wait for this process for ever.
            communicator.abort(f"{type(failure).__name__}: {failure}")
            raise
    return in_threads(size, lambda part: run(PartModel(model, Share(part, owners))))[0]


def take_own_card(communicator: Communicator, options: CheckOptions) -> None:
    """Have each process or part of a machine use a card of its own, as far as there are so many.

    All of them call it at once.
    """
    if options.backend == "gpu":
        from gpu_kernels import take_card

        take_card(communicator.local_rank()[0])


def part_of(model: SymbolicModel, communicator: Communicator) -> PartModel:
    """Return a model as this process has it, of whose states it owns those that a plan of parts gives it.

    Raises OptionError where there are fewer states than processes, or they have built different models.
    """
    from hybrid.matrix.parts.plan import planned_owners, require_same

    require_same(model, communicator)
    return PartModel(model, Share(communicator, planned_owners(model, communicator.size)))


def options_of_parts(options: CheckOptions) -> CheckOptions:
    """Return what a check in parts is done with; OptionError for what it does not offer."""
    named = _named(options, method=not METHODS[options.method].parts)
    if named:
        raise OptionError(
            "parts of a model are solved by the hybrid engine, between bounds or by iterations: "
            f"leave {named} out, or ask without parts"
        )
    options = replace(options, engine="hybrid")
    if options.backend != "auto":
        return options
    from hybrid.matrix.backends import choose_backend

    return replace(options, backend="reference" if choose_backend("auto").name == "reference" else "cpu")
