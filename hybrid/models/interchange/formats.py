"""Formats of model files by suffix, with their readers and writers."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybrid.base.errors import InterchangeError, OptionError
from mtbdd.base.records import Record
from mtbdd.build.model import SymbolicModel
from mtbdd.language.syntax import ModelType
from mtbdd.language.tokens import near_file

if TYPE_CHECKING:
    from hybrid.models.interchange.explicit_model import ExplicitModel

_PACKED = (".gz", ".xz")


class FileFormat(Record):
    """One kind of file.

    `what`: for help and messages. `reader`, `writer`: ``module:function`` below `hybrid.models.interchange`,
    imported when needed. A reader takes a path and returns an `ExplicitModel` (a symbolic format: a
    `SymbolicModel`). A writer takes a model, and yields the text in blocks; of formats that are no text it
    takes a path, too. `is_symbolic`: whether it holds diagrams. `is_text`: whether it may be packed as
    ``.gz`` or ``.xz``.
    """

    what: str
    reader: str | None
    writer: str | None
    is_symbolic: bool = False
    is_text: bool = True


FORMATS: dict[str, FileFormat] = {
    ".tra": FileFormat(
        "PRISM's transitions", "text.prism:read_prism_files", "text.writing:transition_blocks"
    ),
    ".sta": FileFormat("PRISM's states", None, "text.writing:state_blocks"),
    ".lab": FileFormat("PRISM's labels", None, "text.writing:label_blocks"),
    ".srew": FileFormat("PRISM's state rewards", None, "text.writing:state_reward_blocks"),
    ".trew": FileFormat("PRISM's transition rewards", None, "text.writing:transition_reward_blocks"),
    ".pexp": FileFormat("PRISM's files in one", "text.prism:read_pexp", "text.writing:combined_blocks"),
    ".drn": FileFormat("Storm's explicit text", "text.drn:read_drn", "text.writing:drn_blocks"),
    ".umb": FileFormat("unified Markov binary", "umb:read_umb", "umb:write_umb", is_text=False),
    ".mtx": FileFormat("MatrixMarket", None, "text.writing:matrix_blocks"),
    ".dot": FileFormat("a drawing for Graphviz", None, "write_out:dot_blocks"),
    ".dd": FileFormat(
        "decision diagrams",
        "symbolic:read_symbolic",
        "symbolic:write_symbolic",
        is_symbolic=True,
        is_text=False,
    ),
}
"""By suffix."""

_GONE = {
    ".npz": "models are not kept as .npz any more; the version before reads them and writes .umb, which "
    "takes less room; a matrix of SciPy comes in by hybrid.from_scipy, and goes out as .mtx"
}
"""Suffixes that the version before had, and what to use in their place."""


def format_of(path: str | os.PathLike[str]) -> FileFormat | None:
    """Return the format by the suffix of a file's name; None for others, such as texts in the PRISM language.

    Raises InterchangeError: the suffix is one of the version before, or a compression where the format has
    its own.
    """
    name = os.path.basename(os.fspath(path))
    stem, suffix = os.path.splitext(name)
    packed = suffix in _PACKED
    if packed:
        suffix = os.path.splitext(stem)[1]
    if suffix in _GONE:
        raise InterchangeError(f"{path}: {_GONE[suffix]}")
    found = FORMATS.get(suffix)
    if found is not None and packed and not found.is_text:
        raise InterchangeError(
            f"{path}: expected no packing outside the format, which may be packed by itself"
        )
    return found


def reader_arguments(
    found: FileFormat | None,
    type: str | None,
    states: str | os.PathLike[str] | None,
    labels: str | os.PathLike[str] | None,
    state_rewards: Sequence[str | os.PathLike[str]],
    transition_rewards: Sequence[str | os.PathLike[str]],
) -> dict[str, Any]:
    """Return the arguments about a model beside its file as options of the file's reader.

    Raises OptionError: the format takes no such thing.
    """
    told: dict[str, Any] = {
        "type": type, "sta": states, "lab": labels, "srew": state_rewards, "trew": transition_rewards,
    }  # fmt: skip
    options = {"type": "type", "sta": "states", "lab": "labels"}
    options |= {"srew": "state_rewards", "trew": "transition_rewards"}
    given = {key: value for key, value in told.items() if value}
    taken = {".tra": set(told), ".pexp": {"type"}}
    mine = next((keys for suffix, keys in taken.items() if found is FORMATS[suffix]), set())
    for key in given.keys() - mine:
        raise OptionError(f"{options[key]}: expected for a model given as .tra alone; leave it out")
    if type is not None:
        try:
            given["type"] = ModelType(type)
        except ValueError:
            raise OptionError(f"type: expected dtmc, ctmc or mdp, got {type!r}") from None
    return given


def read_model(
    path: str | os.PathLike[str],
    *,
    fix_deadlocks: bool = True,
    package: str = "auto",
    order: str = "auto",
    **options: Any,
) -> SymbolicModel:
    """Read a model from a file of any format that can be read.

    Parameters
    ----------
    path : path-like
    fix_deadlocks, package, order
        See `hybrid.load`; a symbolic file has an order of its own.
    **options
        For the reader of PRISM's files: where its neighbours are, and the model's type.

    Returns
    -------
    SymbolicModel

    Raises
    ------
    InterchangeError
        The file is damaged, holds no model, or is of a format that is only written.
    """
    from hybrid.models.interchange.explicit_model import ExplicitModel

    found = format_of(path)
    if found is None or found.reader is None:
        readable = ", ".join(suffix for suffix, known in FORMATS.items() if known.reader is not None)
        raise InterchangeError(f"{path}: expected a file that a model can be read from ({readable})")
    if found.is_symbolic:
        if order not in ("auto", "model"):
            raise OptionError(f"order: expected auto or model for a symbolic file, got {order!r}")
        options = {"package": package}
    try:
        model = _function(found.reader)(Path(path), **options)
    except OSError as error:
        # The files beside a `.tra` have names of their own.
        name, near = error.filename or os.fspath(path), ""
        if isinstance(error, FileNotFoundError):
            near = near_file(name) or "; check the path"
        raise InterchangeError(f"{name}: cannot be read: {error.strerror or error}{near}") from None
    if isinstance(model, ExplicitModel):
        model = _function("compressing:compressed")(
            model, fix_deadlocks=fix_deadlocks, package=package, order=order
        )
    symbolic: SymbolicModel = model
    return symbolic


class Target(Record):
    """A file to write: its name, its format, and which reward structure it holds (None: all of them)."""

    path: Path
    format: FileFormat
    structure: int | None = None

    def at(self, path: Path) -> Target:
        """Return the same under another name."""
        return Target(path, self.format, self.structure)


def targets_of(path: str | os.PathLike[str], n_rewards: int) -> list[Target]:
    """Return the files that a name asks for: of several reward structures each has a numbered one.

    Parameters
    ----------
    path : path-like
        The name; its suffix is that of the format.
    n_rewards : int
        How many reward structures the model has.

    Returns
    -------
    list of Target

    Raises
    ------
    InterchangeError
        The suffix is that of no format.
    """
    found, name = writable_format(path), Path(path)
    if found not in (FORMATS[".srew"], FORMATS[".trew"]):
        return [Target(name, found)]
    if not n_rewards:
        raise InterchangeError(f"{path}: expected a model with rewards, got one without; leave it out")
    if n_rewards == 1:
        return [Target(name, found)]
    stem, dot, suffixes = name.name.rpartition(".srew" if found is FORMATS[".srew"] else ".trew")
    return [
        Target(name.with_name(f"{stem}{number + 1}{dot}{suffixes}"), found, number)
        for number in range(n_rewards)
    ]


def write_model(model: SymbolicModel, targets: Sequence[Target], *, force: bool = False) -> None:
    """Write a model to files.

    Parameters
    ----------
    model : SymbolicModel
    targets : sequence of Target
        See `targets_of`.
    force : bool
        Write out models that seem not to fit in memory, and drawings of many states.

    Raises
    ------
    InterchangeError
        The model does not fit a format, or a file cannot be written.
    MemoryError
        The model written out does not fit; with its size.

    Notes
    -----
    The model is written out once for all files. Time: O(transitions) a file; symbolic files O(nodes).
    """
    explicit: ExplicitModel | None = None
    for target in targets:
        if target.format.is_symbolic:
            write_target(model, target)
            continue
        if explicit is None:
            explicit = _function("write_out:written_out")(model, force=force)
        write_target(explicit, target, force=force)


def write_target(model: SymbolicModel | ExplicitModel, target: Target, *, force: bool = False) -> None:
    """Write one file of a model, which is written out unless the format is symbolic.

    Raises InterchangeError: the model does not fit the format, or the file cannot be written.
    """
    from hybrid.models.interchange.explicit_model import ExplicitModel

    assert target.format.writer is not None
    write = _function(target.format.writer)
    if target.structure is not None and isinstance(model, ExplicitModel):
        model = replace(model, rewards=(model.rewards[target.structure],))
    try:
        if not target.format.is_text:
            write(model, target.path)
            return
        options = {"force": force} if target.format is FORMATS[".dot"] else {}
        _function("text.writing:write_text")(target.path, write(model, **options))
    except InterchangeError as error:
        if not target.format.is_text:
            raise
        raise InterchangeError(f"{target.path}: {error}") from None
    except OSError as error:
        raise InterchangeError(f"{target.path}: cannot be written: {error.strerror or error}") from None


def writable_format(path: str | os.PathLike[str]) -> FileFormat:
    """Return the format by the suffix of a file's name.

    Raises InterchangeError: the suffix is that of no format.
    """
    found = format_of(path)
    if found is None or found.writer is None:
        known = ", ".join(FORMATS)
        raise InterchangeError(f"{path}: expected a name that ends in one of {known}")
    return found


def _function(name: str) -> Callable[..., Any]:
    """Return a reader or a writer."""
    module, _, function = name.partition(":")
    found: Callable[..., Any] = getattr(import_module(f"hybrid.models.interchange.{module}"), function)
    return found


def export(model: SymbolicModel, *paths: str | os.PathLike[str], force: bool = False) -> None:
    """Write a model to files, each in the format of its suffix, as ``hybrid export`` does.

    Parameters
    ----------
    model : SymbolicModel
    *paths : str or path-like
        Names that end as one of `hybrid.models.interchange.formats.FORMATS`.
    force : bool
        Write out models that seem not to fit in memory, and drawings of many states.

    Raises
    ------
    hybrid.HybridError
        A suffix is that of no format, or the model does not fit one.
    MemoryError
        The model written out does not fit; with its size in bytes.
    OSError
        A file cannot be written.

    Notes
    -----
    States are numbered, and choices ordered, as in `hybrid.models.interchange.written_out`. Time:
    O(transitions) a file; of a symbolic file O(nodes).
    """
    targets = [target for path in paths for target in targets_of(path, len(model.source.rewards))]
    write_model(model, targets, force=force)
