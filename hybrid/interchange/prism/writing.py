"""Models written as PRISM's explicit files: ``.tra``, ``.sta``, ``.lab``, ``.srew`` and ``.trew``."""

from __future__ import annotations

from pathlib import Path

from hybrid.interchange.explicit_model import ExplicitModel
from hybrid.interchange.faults import InterchangeError
from hybrid.interchange.prism.files import PACKED
from hybrid.interchange.prism.tables import (
    label_blocks,
    state_blocks,
    state_reward_blocks,
    transition_blocks,
    transition_reward_blocks,
)
from hybrid.interchange.text.source import write_text


def write_tra(model: ExplicitModel, path: str | Path) -> Path:
    """Write the transitions, with the type of the model in a comment, as PRISM does.

    Parameters
    ----------
    model : ExplicitModel
        Its transitions are written in its order; PRISM adds up those with the same ends.
    path : str or Path
        Compressed if it ends with ``.gz`` or ``.xz``.

    Returns
    -------
    Path
        What was written.

    Raises
    ------
    InterchangeError
        A name that PRISM does not have, or a file that cannot be written.

    Notes
    -----
    Numbers are written so that they read as the same doubles. Time: some microsecond a transition.
    """
    write_text(path, transition_blocks(model))
    return Path(path)


def write_sta(model: ExplicitModel, path: str | Path) -> Path:
    """Write the states' variables; without variables one, ``x``, has the number of the state.

    Parameters
    ----------
    model : ExplicitModel
    path : str or Path

    Returns
    -------
    Path

    Raises
    ------
    InterchangeError
    """
    write_text(path, state_blocks(model))
    return Path(path)


def write_lab(model: ExplicitModel, path: str | Path) -> Path:
    """Write the labels, and the initial states as label ``init``.

    Parameters
    ----------
    model : ExplicitModel
    path : str or Path

    Returns
    -------
    Path

    Raises
    ------
    InterchangeError
    """
    write_text(path, label_blocks(model))
    return Path(path)


def write_srew(model: ExplicitModel, path: str | Path) -> list[Path]:
    """Write the rewards of states.

    Parameters
    ----------
    model : ExplicitModel
    path : str or Path
        ``m.srew``; of several reward structures ``m1.srew``, ``m2.srew`` and so on are written, as PRISM
        does.

    Returns
    -------
    list of Path
        What was written, a file a reward structure.

    Raises
    ------
    InterchangeError
        The model has no rewards, or a name is none of PRISM's.
    """
    paths = _numbered(model, Path(path))
    for target, reward in zip(paths, model.rewards, strict=True):
        write_text(target, state_reward_blocks(model, reward))
    return paths


def write_trew(model: ExplicitModel, path: str | Path) -> list[Path]:
    """Write the rewards of choices as rewards of transitions.

    Every transition of a choice gets the choice's reward (of a CTMC that of a jump). This is the same in
    every expected measure, because the probabilities of a choice's transitions add up to 1; the distribution
    of what is earned on a path differs where a source had unequal rewards.

    Parameters
    ----------
    model : ExplicitModel
    path : str or Path
        As for `write_srew`.

    Returns
    -------
    list of Path

    Raises
    ------
    InterchangeError
    """
    paths = _numbered(model, Path(path))
    for target, reward in zip(paths, model.rewards, strict=True):
        write_text(target, transition_reward_blocks(model, reward))
    return paths


def _numbered(model: ExplicitModel, path: Path) -> list[Path]:
    """Return a path for every reward structure."""
    n = len(model.rewards)
    if not n:
        raise InterchangeError(f"{path}: a model with rewards expected, got none; write the other files only")
    if n == 1:
        return [path]
    packed = path.suffix if path.suffix in PACKED else ""
    name = path.name.removesuffix(packed)
    stem, suffix = Path(name).stem, Path(name).suffix
    return [path.with_name(f"{stem}{k}{suffix}{packed}") for k in range(1, n + 1)]
