"""What a check refuses before it begins, and what it says where memory was not to be had."""

from __future__ import annotations

from hybrid.errors import OptionError
from hybrid.run.options import CheckOptions
from mtbdd.model import SymbolicModel
from mtbdd.wording import option

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
    """Return a memory fault that says what to do; libraries beneath us may say next to nothing."""
    if len(str(fault)) > _FEW_WORDS:
        return fault
    return MemoryError(
        f"memory could not be allocated ({fault or 'no detail was given'}): free some, choose another "
        f"{option('backend')} or {option('level')}, or a smaller model"
    )
