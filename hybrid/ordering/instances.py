"""Small instances of a model: the constants that it leaves open, made smaller."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from fractions import Fraction

from mtbdd.budget import BudgetError
from mtbdd.build import build_model
from mtbdd.errors import HybridError
from mtbdd.language import resolve
from mtbdd.language.constants import Ignored
from mtbdd.language.model_syntax import ModelSyntax, ResolvedModel

_log = logging.getLogger(__name__)

Constants = Mapping[str, bool | int | float]

_SHARES = (*(Fraction(1, 1 << k) for k in range(10, 4, -1)), *(Fraction(k, 16) for k in range(1, 17)))
"""Shares of the constants, ascending."""

_STATES = 10_000
"""States from which on an instance is large enough to tell orders apart, and larger ones cost too much."""


def small_instance(
    syntax: ModelSyntax, constants: Constants | None, ignore_unknown: Ignored
) -> ResolvedModel:
    """Return an instance of a model with some thousand states, or the smallest that there is.

    Parameters
    ----------
    syntax : ModelSyntax
    constants : mapping or None
        Values of the constants that the model leaves open; whole numbers above 1 are made smaller, all by the
        same share.
    ignore_unknown : bool or collection of str
        Whether constants may be given that the model does not declare.

    Returns
    -------
    ResolvedModel
        The model itself where nothing can be made smaller, or no smaller instance is a model.

    Notes
    -----
    Instances are built from the smallest on, until one has 10,000 states. All have the same variables.
    """
    given = dict(constants or {})
    best, tried = resolve(syntax, given, ignore_unknown=ignore_unknown), None
    for share in _SHARES:
        own = {name: _smaller(value, share) for name, value in given.items()}
        if own == tried:
            continue
        tried = own
        try:
            instance = resolve(syntax, own, ignore_unknown=ignore_unknown)
            states = build_model(instance).n_states
        except BudgetError:
            raise
        except HybridError as error:
            _log.debug("no instance with %s: %s", own, error)
            continue
        best = instance
        if states >= _STATES:
            break
    return best


def _smaller(value: bool | int | float, share: Fraction) -> bool | int | float:
    if isinstance(value, bool) or not isinstance(value, int) or value <= 1:
        return value
    return max(1, -(-value * share.numerator // share.denominator))
