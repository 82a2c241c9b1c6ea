"""A cost model of the CPU backend's product, evaluated on row types without building anything.

A product runs over the terms of the slices of every group; four groups of one row type share the
reading of a term. The model counts terms as entries over a typical number of entries a term, and charges

- for every group and term: one load of x and one multiplication;
- for every batch of four groups and term: the reading of the term, which is dearer the larger the tables are,
  because they are read again for every batch;
- for every group, slot and slice: bookkeeping; a slot begins a new stream of x, and costs more where x
  exceeds the fast caches.

Its constants were fitted to measured products of the case studies at all levels. They need only rank levels.
"""

from __future__ import annotations

import numpy as np

from hybrid.matrix.injection.row_types import RowTypes
from hybrid.matrix.injection.slices import WIDTH

_ENTRIES_PER_TERM = 4.5
_MEMBERS = 4
_SECONDS_TERM = 0.95e-9
_SECONDS_SCALE = 0.15e-9
_SECONDS_SHARED_TERM = 0.45e-9
_SECONDS_SLICE = 2.0e-9
_SECONDS_SHARED_SLICE = 8.0e-9
_SECONDS_GROUP = 12e-9
_SECONDS_SLOT = 3e-9
_SECONDS_FAR_SLOT = 10e-9
_FAR_BYTES = 1 << 23
"""Size of x from which a slot begins outside the fast caches, as a rule."""
_TERM_BYTES = 12
_DISTINCT_TERMS = 0.7
"""Share of the terms of all row types that remain when equal patterns are stored once."""
_FAST_BYTES = 1 << 17
_BUILD_SECONDS_ENTRY = 1e-6
_PRODUCTS = 1000
"""Products over which the time to build the tables is spread."""


def predict_seconds(types: RowTypes, k: int) -> float:
    """Predict the time of one product with the row types of level k, on one thread.

    Parameters
    ----------
    types : RowTypes
        Row types of the matrix; level k must be among them.
    k : int
        Level.

    Returns
    -------
    float
        Seconds.

    Notes
    -----
    Time: O(slots of the row types).
    """
    level = types[k]
    if level.n_types == 0:
        return 0.0
    rows = level.rows.astype(np.float64)
    slices = np.ceil(rows / WIDTH)
    entries = level.entries.astype(np.float64)
    # In a slice that is not full, a term has fewer entries.
    terms = entries / (1 + (_ENTRIES_PER_TERM - 1) * rows / (WIDTH * slices))
    groups = level.groups.astype(np.float64)
    batches = np.ceil(groups / _MEMBERS)
    table = _DISTINCT_TERMS * _TERM_BYTES * float(terms.sum())
    pressure = 1 + 0.15 * np.log2(1 + table / _FAST_BYTES)
    slot = _slot_seconds(types)
    each = groups * (
        terms * _term_seconds(types) + slices * _SECONDS_SLICE + level.lengths * slot + _SECONDS_GROUP
    )
    shared = batches * (terms * _SECONDS_SHARED_TERM * pressure + slices * _SECONDS_SHARED_SLICE)
    # Classes are cut into slices once, however many row types share them.
    contents = float(types.classes.entries(k).sum())
    build = contents * _BUILD_SECONDS_ENTRY / _PRODUCTS
    return float((each + shared).sum()) + build


def least_seconds(types: RowTypes, k: int) -> float:
    """Return what `predict_seconds` is not below, at level k and at all levels below it.

    Groups and their slots become more from level to level, and the rows of a group fewer, so that no term
    gets more entries.

    Notes
    -----
    Time: O(slots of the row types).
    """
    level = types[k]
    if level.n_types == 0:
        return 0.0
    full = np.minimum(level.rows / WIDTH, 1.0)
    terms = float((level.groups * level.entries / (1 + (_ENTRIES_PER_TERM - 1) * full)).sum())
    term = _term_seconds(types) + _SECONDS_SHARED_TERM / _MEMBERS
    group = _SECONDS_GROUP + _SECONDS_SLICE + _SECONDS_SHARED_SLICE / _MEMBERS
    return terms * term + level.n_groups * group + level.group_slots * _slot_seconds(types)


def _term_seconds(types: RowTypes) -> float:
    return _SECONDS_TERM + (_SECONDS_SCALE if types.classes.scaled else 0.0)


def _slot_seconds(types: RowTypes) -> float:
    far = min(1.0, 8 * types.classes.matrix.n_columns / _FAR_BYTES)
    return _SECONDS_SLOT + far * _SECONDS_FAR_SLOT
