"""From a model file to its decision diagrams."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from hybrid.base.errors import OptionError
from hybrid.base.option_types import BuildName, ModelTypeName, OrderName, PackageName
from hybrid.models.interchange.formats import format_of, read_model, reader_arguments
from hybrid.models.model import Model
from mtbdd.base.budget import Budget, spending
from mtbdd.build.build import build_model
from mtbdd.build.order import ORDERS
from mtbdd.language import load_model, parse_model, resolve
from mtbdd.language.constants import Ignored, is_ignored
from mtbdd.language.limits import Limits, limited
from mtbdd.language.syntax import Expression, ModelSyntax, ResolvedModel

Constants = Mapping[str, bool | int | float]


def load(
    path: str | os.PathLike[str],
    constants: Constants | None = None,
    *,
    fix_deadlocks: bool = True,
    package: PackageName = "auto",
    order: OrderName = "auto",
    build: BuildName = "auto",
    ignore_unknown: Ignored = False,
    progress: Callable[[str], None] | None = None,
    timeout: float | None = None,
    memory: int | None = None,
    limits: Limits | None = None,
    type: ModelTypeName | None = None,
    states: str | os.PathLike[str] | None = None,
    labels: str | os.PathLike[str] | None = None,
    state_rewards: Sequence[str | os.PathLike[str]] = (),
    transition_rewards: Sequence[str | os.PathLike[str]] = (),
    settle: Callable[[ResolvedModel], Expression | None] | None = None,
) -> Model:
    """Read a model and build its decision diagrams.

    Parameters
    ----------
    path : str or path-like
        A dtmc, ctmc or mdp: a text in the PRISM language, or a file whose name ends as one of
        `hybrid.models.interchange.formats.FORMATS` does.
    constants : mapping, optional
        Values of the constants that the file leaves open.
    fix_deadlocks : bool
        Give states without successors a self-loop; otherwise they are an error.
    package : {"auto", "cudd", "autoref"}
        Back end of `dd`.
    order : {"auto", "model", "reversed", "force"}
        Variable order: the text's, as PRISM has it, that turned round by modules, or a heuristic's that draws
        related variables together; ``auto`` is the text's unless another is far smaller.
    build : {"auto", "symbolic", "explicit"}
        Of a text: make diagrams of its commands, or list its reachable states and compress the list, which is
        quicker for models of up to some million states without structure; ``auto`` makes diagrams unless the
        commands are costly and the states few.
    ignore_unknown : bool or collection of str
        Pass over constants that the model does not declare (they may belong to properties), all or those of
        these names.
    progress : callable, optional
        Called with a line of text at every stage.
    timeout : float, optional
        Seconds after which building is given up, at the next place where it can be left.
    memory : int, optional
        Bytes of resident memory of the process beyond which it is given up.
    limits : Limits, optional
        What the text may ask for.
    type : {"dtmc", "ctmc", "mdp"}, optional
        Of a model given as ``.tra`` or ``.pexp``, where the file does not have it.
    states, labels : path-like, optional
        The ``.sta`` and ``.lab`` files of a model given as ``.tra``, unless they stand beside it.
    state_rewards, transition_rewards : sequence of path-like
        Its ``.srew`` and ``.trew`` files, likewise.
    settle : callable, optional
        Returns the states of a text that shall have no successors, such as
        `hybrid.models.settled_states.settled_states` of some questions; None for nowhere.

    Returns
    -------
    Model
        A `mtbdd.SymbolicModel` with vectors, tables and pictures, see docs/library.md.  ``model.transitions``
        is the offset-labelled matrix, in an MDP ``model.layer_transitions(i)`` that of a layer of choices; no
        explicit matrix is built.

    Raises
    ------
    mtbdd.language.LanguageError
        The text cannot be read, parsed or built; lists every fault with its place.
    hybrid.models.interchange.InterchangeError
        A file of another format is damaged or holds no model.
    mtbdd.base.budget.BudgetError
        The time or the memory is spent.
    """
    found = format_of(path)
    if found is not None and build == "explicit":
        raise OptionError(
            f"build: expected 'auto' or 'symbolic' for {path}, which is written out already; got {build!r}"
        )
    beside = reader_arguments(found, type, states, labels, state_rewards, transition_rewards)
    if found is None:
        return _build(
            lambda: load_model(path), constants, fix_deadlocks, package, order, build, ignore_unknown,
            progress, timeout, memory, limits, settle,
        )  # fmt: skip
    _check_order(order)
    if not all(is_ignored(name, ignore_unknown) for name in constants or ()):
        raise OptionError(f"constants: expected none, for {path} has no constants left open")
    with spending(_budget(timeout, memory)):
        return Model.of(read_model(path, fix_deadlocks=fix_deadlocks, package=package, order=order, **beside))


def parse(
    text: str,
    constants: Constants | None = None,
    *,
    file: str = "<text>",
    fix_deadlocks: bool = True,
    package: PackageName = "auto",
    order: OrderName = "auto",
    build: BuildName = "auto",
    ignore_unknown: Ignored = False,
    progress: Callable[[str], None] | None = None,
    timeout: float | None = None,
    memory: int | None = None,
    limits: Limits | None = None,
) -> Model:
    """Build the decision diagrams of a model given as text in the PRISM language.

    Parameters
    ----------
    text : str
        ``"dtmc module m ... endmodule"``.
    file : str
        What messages call it.
    constants, fix_deadlocks, package, order, build, ignore_unknown, progress, timeout, memory, limits
        As for `load`.

    Returns
    -------
    Model

    Raises
    ------
    mtbdd.language.LanguageError
        The text cannot be parsed or built; lists every fault with its place.
    mtbdd.base.budget.BudgetError
        The time or the memory is spent.
    """
    return _build(
        lambda: parse_model(text, file), constants, fix_deadlocks, package, order, build, ignore_unknown,
        progress, timeout, memory, limits,
    )  # fmt: skip


def _check_order(order: str) -> None:
    """Raise an `OptionError` if an order of variables is not offered; "search" was, in the version before."""
    if order in ("auto", *ORDERS):
        return
    gone = ": no product was quicker for it; auto looks at the others" if order == "search" else ""
    raise OptionError(f"order: expected one of auto, {', '.join(ORDERS)}, got {order!r}{gone}")


def _budget(timeout: float | None, memory: int | None) -> Budget | None:
    return Budget.of(timeout, memory) if timeout is not None or memory is not None else None


def _build(
    read: Callable[[], ModelSyntax],
    constants: Constants | None,
    fix_deadlocks: bool,
    package: PackageName,
    order: OrderName,
    build: BuildName,
    ignore_unknown: Ignored,
    progress: Callable[[str], None] | None,
    timeout: float | None,
    memory: int | None,
    limits: Limits | None,
    settle: Callable[[ResolvedModel], Expression | None] | None = None,
) -> Model:
    """Read and build a model within its limits."""
    _check_order(order)
    if build not in ("auto", "symbolic", "explicit"):
        raise OptionError(f"build: expected 'auto', 'symbolic' or 'explicit', got {build!r}")
    with limited(limits), spending(_budget(timeout, memory)):
        resolved = resolve(read(), constants, ignore_unknown=ignore_unknown)
        if settle is not None:
            from hybrid.models.settled_states import ended_in  # a model for itself needs no properties

            resolved = ended_in(resolved, settle(resolved))
        made = build_model
        if build == "explicit":
            from hybrid.models.exploration import build_explicitly as made
        elif build == "auto":
            from hybrid.models.exploration import build_automatically as made
        found = made(resolved, fix_deadlocks=fix_deadlocks, package=package, order=order, progress=progress)
    return Model.of(found)
