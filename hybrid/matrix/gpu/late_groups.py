"""Groups of rows that wait for elements of others, and so share no item with those that do not."""

from __future__ import annotations

from typing import Any

from gpu_kernels.runtime.coded import pointers
from hybrid.base.arrays import Array, counts, to_host
from hybrid.matrix.injection.groups import RowGroups, enumerate_groups
from hybrid.matrix.injection.row_types import RowTypes


def late_groups(xp: Any, types: RowTypes, k: int, groups: RowGroups, own_columns: int) -> Array:
    """Return which groups of level k have a slot that ends behind the own columns, shape (groups,), bool."""
    width = xp.asarray(types.classes.matrix.columns[k])[groups.node]
    late_ptr = pointers(xp, xp.greater(groups.base + width, own_columns).astype(xp.int64))
    return late_ptr[groups.ptr[1:]] > late_ptr[groups.ptr[:-1]]


def groups_apart(xp: Any, types: RowTypes, k: int, own_columns: int | None) -> list[Array]:
    """Return how many groups every type has in each set whose groups share items.

    Returns
    -------
    list of ndarray, shape (types,), int64
        On the host: of the late groups and of the others, or of all groups where all columns are own ones.

    Notes
    -----
    Time: that of `enumerate_groups`, whose result is let go, since tiles are made before it is needed again.
    """
    level = types[k]
    if own_columns is None:
        return [level.groups]
    groups = enumerate_groups(xp, types, k)
    late = late_groups(xp, types, k, groups, own_columns)
    return [to_host(counts(xp, groups.type[which], level.n_types)) for which in (late, ~late)]
