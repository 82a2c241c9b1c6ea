"""The library's way out: a model to files."""

from __future__ import annotations

import os

from hybrid.interchange.formats import targets_of, write_model
from mtbdd.model import SymbolicModel


def export(model: SymbolicModel, *paths: str | os.PathLike[str], force: bool = False) -> None:
    """Write a model to files, each in the format that its name tells, as ``hybrid export`` does.

    Parameters
    ----------
    model : SymbolicModel
    *paths : str or path-like
        Names that end as one of `hybrid.interchange.formats.FORMATS`.
    force : bool
        Write out models that seem not to fit in memory, and drawings of many states.

    Raises
    ------
    hybrid.HybridError
        A name tells no format, or the model does not fit one.
    MemoryError
        The model written out does not fit; with its size in bytes.
    OSError
        A file cannot be written.

    Notes
    -----
    States are numbered, and choices ordered, as in `hybrid.interchange.written_out`. Time: O(transitions) a
    file; of a symbolic file O(nodes).
    """
    targets = [target for path in paths for target in targets_of(path, len(model.source.rewards))]
    write_model(model, targets, force=force)
