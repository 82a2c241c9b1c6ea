"""The searches of :mod:`hybrid.core.backward_search`, compiled; importing needs Numba."""

from __future__ import annotations

from hybrid.core import backward_search
from mtbdd.compiled import njit

search_states = njit(cache=True, nogil=True)(backward_search.search_states)
withdraw_states = njit(cache=True, nogil=True)(backward_search.withdraw_states)
