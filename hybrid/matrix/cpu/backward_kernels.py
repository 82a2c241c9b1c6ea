"""The searches of :mod:`hybrid.base.backward_search`, compiled; importing needs Numba."""

from __future__ import annotations

from hybrid.base import backward_search
from mtbdd.base.compiled import njit

search_states = njit(cache=True, nogil=True)(backward_search.search_states)
withdraw_states = njit(cache=True, nogil=True)(backward_search.withdraw_states)
