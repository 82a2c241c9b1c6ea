"""What a check refuses before it begins, and what it says where memory was not to be had."""

from __future__ import annotations

from hybrid.analysis.run.options import CheckOptions
from hybrid.base.errors import HybridError, OptionError
from mtbdd.base.memory import current_store
from mtbdd.base.wording import option
from mtbdd.build.model import SymbolicModel

_FEW_WORDS = 40  # letters of a message that says nothing of use


def refuse_options(model: SymbolicModel, options: CheckOptions, scheduler: bool) -> None:
    """Refuse what does not go together: with the kind of the model, or with schedulers.

    Raises
    ------
    OptionError
        A format of matrices for an MDP, whose choices are no matrix; a scheduler of an exact answer.
    """
    if options.exact and scheduler:
        raise OptionError(f"schedulers come with bounds: leave {option('exact')} out")
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
    return MemoryError(
        f"memory could not be allocated ({fault or 'no detail was given'}): free some, choose another "
        f"{option('backend')} or {option('level')}, or a smaller model"
    )


def failure_of(fault: MemoryError) -> HybridError:
    """Return why a property has no answer, if a disk had no room; what memory had none for is raised.

    Raises
    ------
    MemoryError
    """
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
    store = None if isinstance(fault, HybridError) else current_store()
    found = None if store is None else store.fault()
    return found if isinstance(found, MemoryError) else fault
