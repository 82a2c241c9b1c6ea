"""Which event each path takes, compiled: rates from tables, summed up one by one. Importing needs Numba."""

from __future__ import annotations

import numpy as np

from mtbdd.base.compiled import njit


@njit(cache=True, nogil=True)
def draw_events(  # type: ignore[no-untyped-def]
    states, uniform, first_terms, rows, steps, starts, tables, others, sums, out_events, out_totals
):
    """Draw an event by its share of the sum of all rates; the sums are taken in the order of the events.

    `states` is int64, shape (variables, paths), and `uniform`, shape (paths,), from [0, 1). Terms of an
    event's place in its table, `rows` and `steps`, begin at `first_terms`, shape (events + 1,): a place is
    the start of the table plus the sum of values times steps. `starts` are those in `tables`; of a rate
    without table -1 less its row in `others`, shape (rates without table, paths). `sums` is room, shape
    (events,). Written are `out_events`, int32, the number of events where none has a rate, and `out_totals`.
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
