"""Answers from several processes, or from several parts in one: every part checks its own states.

All parts run the same check; what one of them decides, all have agreed on.  The answer is the same in all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from hybrid.analysis.run.options import CheckOptions
from hybrid.base.errors import HybridError, OptionError
from hybrid.base.methods import METHODS
from mtbdd.base.communicator import Communicator
from mtbdd.base.shares import Share
from mtbdd.base.wording import option
from mtbdd.build.model import SymbolicModel
from mtbdd.build.part_model import PartModel
from mtbdd.diagrams.manager import Node

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

    Parameters
    ----------
    model : SymbolicModel
        The whole model, the same in every process.
    ranks : int or communicator
        How many parts this process has, all of them; or who the other processes are, by mpi4py.
    run : callable
        Called with the model of each part.
    owners : tuple of Node, optional
        The states of every part; default by `hybrid.matrix.parts.plan.plan_parts`.

    Raises
    ------
    OptionError

    Notes
    -----
    What one process raises by itself, out of memory among it, ends all processes of MPI.
    """
    # Imported here: most checks need none of it.
    from hybrid.base.communicators.mpi import MpiCommunicator
    from hybrid.base.communicators.threads import in_threads
    from hybrid.matrix.parts.sharing import planned_owners, require_same

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
        except HybridError:
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

        take_card(communicator.beside()[0])


def part_of(model: SymbolicModel, communicator: Communicator) -> PartModel:
    """Return a model as this process has it, of whose states it owns those that a plan of parts gives it.

    Raises
    ------
    OptionError
        If there are fewer states than processes, or they have built different models.
    """
    from hybrid.matrix.parts.sharing import planned_owners, require_same

    require_same(model, communicator)
    return PartModel(model, Share(communicator, planned_owners(model, communicator.size)))


def options_of_parts(options: CheckOptions) -> CheckOptions:
    """Return what a check in parts is done with; refuse what it does not offer.

    Raises
    ------
    OptionError
    """
    refused = {
        "engine": options.engine == "explicit",
        "method": not METHODS[options.method].parts,
        "exact": options.exact,
    }
    named = [name for name, is_asked in refused.items() if is_asked]
    if named:
        raise OptionError(
            f"parts of a model are solved by the hybrid engine, between bounds or by iterations: "
            f"leave {' and '.join(option(name) for name in named)} out, or ask without parts"
        )
    from dataclasses import replace

    options = replace(options, engine="hybrid")
    if options.backend != "auto":
        return options
    from hybrid.matrix.backends import choose_backend

    return replace(options, backend="reference" if choose_backend("auto").name == "reference" else "cpu")
