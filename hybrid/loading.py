"""From a model file to its decision diagrams."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from mtbdd.budget import Budget, spending
from mtbdd.build import build_model
from mtbdd.language import load_model, resolve
from mtbdd.language.limits import Limits, limited
from mtbdd.model import SymbolicModel

Constants = Mapping[str, bool | int | float]


def load(
    path: str | os.PathLike[str],
    constants: Constants | None = None,
    *,
    fix_deadlocks: bool = True,
    package: str = "auto",
    order: str = "auto",
    ignore_unknown: bool = False,
    progress: Callable[[str], None] | None = None,
    timeout: float | None = None,
    memory: int | None = None,
    limits: Limits | None = None,
) -> SymbolicModel:
    """Read a PRISM-language model and build its decision diagrams.

    Parameters
    ----------
    path : path-like
        Model file (dtmc, ctmc or mdp).
    constants : mapping, optional
        Values of the constants that the file leaves open.
    fix_deadlocks : bool
        Give states without successors a self-loop; otherwise they are an error.
    package : {"auto", "cudd", "autoref"}
        Back end of `dd`.
    order : {"auto", "model", "reversed", "force"}
        Variable order: the text's, as PRISM has it, that turned round by modules, or a heuristic's that draws
        related variables together; ``auto`` is the text's unless another is far smaller.
    ignore_unknown : bool
        Pass over constants that the model does not declare (they may belong to properties).
    progress : callable, optional
        Called with a line of text at every stage.
    timeout : float, optional
        Seconds after which building is given up, at the next place where it can be left.
    memory : int, optional
        Bytes of resident memory of the process beyond which it is given up.
    limits : Limits, optional
        What the text may ask for, see docs/limits.md.

    Returns
    -------
    SymbolicModel
        ``model.transitions`` is the offset-labelled matrix, in an MDP ``model.layer_transitions(i)`` that of
        a layer of choices; no explicit matrix is built.

    Raises
    ------
    mtbdd.language.LanguageError
        The file cannot be read, parsed or built; lists every fault with its place.
    mtbdd.budget.BudgetError
        The time or the memory is spent.
    """
    budget = Budget.of(timeout, memory) if timeout is not None or memory is not None else None
    with limited(limits), spending(budget):
        resolved = resolve(load_model(path), constants, ignore_unknown=ignore_unknown)
        return build_model(
            resolved, fix_deadlocks=fix_deadlocks, package=package, order=order, progress=progress
        )
