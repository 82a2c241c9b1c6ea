"""The choices of a whole decision process, in the form in which a backend holds them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mtbdd.build.model import SymbolicModel
from mtbdd.offset.offset import OffsetMTBDD

if TYPE_CHECKING:
    from hybrid.matrix.operators.layer_choices import LayerChoices


def square_matrices(model: SymbolicModel) -> list[OffsetMTBDD]:
    """Return the matrix of a chain, or the matrices of an MDP's layers, with a row for every state."""
    from hybrid.matrix.operators.layer_choices import layer_choices_of

    if not model.is_mdp:
        return [model.transitions]
    enabled = [layer.enabled for layer in model.layers]
    choices = layer_choices_of(
        model, model.index, enabled, lambda _, rows: np.zeros(rows.size), True, whole=True
    )
    return [layer.matrix for layer in choices if layer.matrix is not None]


def matrix_held(model: SymbolicModel, backend: str, representation: str) -> OffsetMTBDD | list[LayerChoices]:
    """Return the matrix of a chain, or an MDP's choices as a backend holds them in a representation.

    Parameters
    ----------
    model : SymbolicModel
    backend : str
        Where it is held.
    representation : {"row-types", "tasks"}

    Returns
    -------
    OffsetMTBDD or list of LayerChoices
    """
    if not model.is_mdp:
        return model.transitions
    # In tasks layers are held one by one, on a device too.
    return model_choices(model, "cpu" if representation == "tasks" else backend)


def model_choices(model: SymbolicModel, backend: str = "cpu") -> list[LayerChoices]:
    """Return all choices between the reachable states of an MDP, worth nothing by themselves.

    Parameters
    ----------
    model : SymbolicModel
        An MDP.
    backend : {"cpu", "gpu", "reference"}
        A device takes all layers fused, which needs a row for every state; elsewhere a layer with few
        choices has few rows.

    Returns
    -------
    list of LayerChoices
        For :func:`hybrid.app.explorer.report.report_levels` and
        :func:`hybrid.app.explorer.measure.measure_levels`.

    Raises
    ------
    ValueError
        The model is a chain, which has one matrix, ``model.transitions``.

    Notes
    -----
    A check takes the part of these matrices that lies between the states which it has to solve for.
    """
    from hybrid.matrix.levels.curve import MOST_LAYERS
    from hybrid.matrix.operators.layer_choices import layer_choices_of

    if not model.is_mdp:
        raise ValueError("model: expected an MDP; a chain has one matrix, model.transitions")
    enabled = [layer.enabled for layer in model.layers]
    whole = backend == "gpu" and len(enabled) <= MOST_LAYERS
    return layer_choices_of(model, model.index, enabled, lambda _, rows: np.zeros(rows.size), True, whole)
