"""Which event each path takes, compiled: rates from tables, summed up one by one. Importing needs Numba."""

from __future__ import annotations

import numpy as np

from mtbdd.base.compiled import njit


@njit(cache=True, nogil=True)
def draw_events(  # type: ignore[no-untyped-def]
    states, uniform, first_terms, rows, steps, starts, tables, others, sums, out_events, out_totals
):
    """Draw an event by its share of the sum of all rates; the sums are taken in the order of the events.

    Parameters
    ----------
    states : ndarray of int64, shape (variables, paths)
    uniform : ndarray of float64, shape (paths,)
        From [0, 1).
    first_terms : ndarray of int64, shape (events + 1,)
        Where the terms of each event's place in its table begin.
    rows, steps : ndarray of int64, shape (terms,)
        A place is the start of the table plus the sum of values times steps.
    starts : ndarray of int64, shape (events,)
        Starts in `tables`; of a rate without table -1 less its row in `others`.
    tables : ndarray of float64
    others : ndarray of float64, shape (rates without table, paths)
    sums : ndarray of float64, shape (events,)
        Room.
    out_events : ndarray of int32, shape (paths,)
        The number of events where none has a rate.
    out_totals : ndarray of float64, shape (paths,)
    """
    count = len(starts)
    for path in range(len(uniform)):
        total = 0.0
        for event in range(count):
            place = starts[event]
            begin, end = first_terms[event], first_terms[event + 1]
            if place < 0 and begin == end:
                total += others[-1 - place, path]
            else:
                for term in range(begin, end):
                    place += states[rows[term], path] * steps[term]
                total += tables[place]
            sums[event] = total
        out_totals[path] = total
        event = count
        if total > 0.0:
            threshold = min(uniform[path] * total, np.nextafter(total, -1.0))
            event = 0
            while event < count and sums[event] <= threshold:
                event += 1
        out_events[path] = event
