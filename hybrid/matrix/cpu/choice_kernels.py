"""Compiled passes over the unknown states: substitution, the best choice, and the change of a step."""

from __future__ import annotations

import numpy as np

from mtbdd.base.compiled import njit

# Compiled solution of states over choices, one after another, each after those that it leads to.


@njit(cache=True, nogil=True)
def substitute_rows(  # type: ignore[no-untyped-def]
    order, choice_ptr, offsets, columns, values, least, most, low, high, maximise, slack, underflow, tiny,
    upper_bound, lower, upper,
):  # fmt: skip
    """Write bounds of states whose choices lead to states with bounds, or to the state itself.

    A row of a chain is a state with one choice.

    A choice that gains g, and stays with the probability p, has the value ``(g + values of other successors)
    / (1 - p)``.

    Parameters
    ----------
    order : ndarray, shape (k,), int64
        States, in an order in which every state comes after those it leads to.
    choice_ptr, offsets, columns, values
        As for `hybrid.matrix.cpu.choice_kernels.explicit_step`; every state has a choice.
    least, most : ndarray, shape (choices,), float64
        Bounds on gains.
    low, high : ndarray, shape (n,), float64
        The diagonal scaled up and down by the rounding error of a row; of choices the diagonal is 1.
    maximise : bool
    slack : float64
        Bound on the relative error of a step, operands included.
    underflow : float64
        Bound on what underflow adds to a state's value.
    tiny : float64
        Positive values below it may have lost digits to underflow: their bounds are 0 and `tiny`.
    upper_bound : float64
        A bound on all values known beforehand, or infinity.
    lower, upper : ndarray, shape (n,), float64
        Those of the states are written.
    """
    worst = -np.inf if maximise else np.inf
    for k in range(len(order)):
        i = order[k]
        lowest, highest, is_positive = worst, worst, not maximise
        for c in range(choice_ptr[i], choice_ptr[i + 1]):
            below = least[c]
            above = most[c]
            positive = above > 0.0
            stays = 0.0
            for e in range(offsets[c], offsets[c + 1]):
                j = columns[e]
                if j == i:
                    stays += values[e]
                    continue
                below += values[e] * lower[j]
                above += values[e] * upper[j]
                positive = positive or upper[j] > 0.0
            below /= low[i]
            above /= high[i]
            if positive:
                below = max(below - underflow, 0.0)
                above += underflow
            if stays > 0.0:
                # One slack is the probability's own; the other, of some dozens of units, is for what rounding
                # its product adds, which is not relative to the divisor.
                below = below * (1.0 - slack) / (1.0 - stays * (1.0 - 2.0 * slack))
                leaving = 1.0 - stays * (1.0 + 2.0 * slack)
                above = above / (1.0 - slack) / leaving if leaving > 0.0 else np.inf
            if maximise:
                lowest = max(lowest, below)
                highest = max(highest, above)
                is_positive = is_positive or positive
            else:
                lowest = min(lowest, below)
                highest = min(highest, above)
                is_positive = is_positive and positive
        if is_positive and highest < tiny:
            lowest, highest = 0.0, tiny
        lower[i] = lowest
        upper[i] = min(highest, upper_bound)


@njit(cache=True, nogil=True)
def take_better(  # type: ignore[no-untyped-def]
    begin, end, product, has_product, codes, coded, gains, factors, has_factors, first, maximise,
    policy, has_policy, layer, out,
):  # fmt: skip
    """Take the choices of a layer that all rows are part of into account, rows begin .. end.

    Parameters
    ----------
    product : ndarray, shape (n,), float64
        The product with the layer's matrix; not read unless `has_product`.
    codes : ndarray, shape (n,), unsigned
        With `coded`, the place of every row's operands in `gains` and `factors`; else those have a row's own.
    gains, factors : ndarray, shape (distinct operands,) with `coded`, else (n,), float64
        ``factors * product + gains`` is what a choice is worth; infinite gains stand for no choice.
    first : bool
        Overwrite `out` without reading it.
    policy : ndarray, shape (n,), uint16
        With `has_policy`, only rows whose number in it is `layer` have the choice.
    out : ndarray, shape (n,), float64
        In place: the better of what was there and of this layer's choices.
    """
    if coded and has_product and not has_factors and not has_policy:
        # Slices and unsigned codes spare the tests for negative places, so that this common case vectorises.
        own, terms, numbers = out[begin:end], product[begin:end], codes[begin:end]
        if first:
            for s in range(len(own)):
                own[s] = terms[s] + gains[numbers[s]]
        elif maximise:
            for s in range(len(own)):
                value = terms[s] + gains[numbers[s]]
                own[s] = value if value > own[s] else own[s]
        else:
            for s in range(len(own)):
                value = terms[s] + gains[numbers[s]]
                own[s] = value if value < own[s] else own[s]
        return
    worst = -np.inf if maximise else np.inf
    for s in range(begin, end):
        e = np.int64(codes[s]) if coded else s
        value = gains[e]
        if has_product:
            value += product[s] * factors[e] if has_factors else product[s]
        if has_policy and policy[s] != layer:
            value = worst
        if first:
            out[s] = value
        elif maximise:
            out[s] = value if value > out[s] else out[s]
        else:
            out[s] = value if value < out[s] else out[s]


@njit(cache=True, nogil=True)
def take_better_at(  # type: ignore[no-untyped-def]
    begin, end, place, product, has_product, codes, coded, gains, factors, has_factors, maximise,
    policy, has_policy, layer, out,
):  # fmt: skip
    """Do the same as `take_better` for a layer whose row j is the state ``place[j]``, rows begin .. end."""
    for j in range(begin, end):
        s = place[j]
        if has_policy and policy[s] != layer:
            continue
        e = np.int64(codes[j]) if coded else j
        value = gains[e]
        if has_product:
            value += product[j] * factors[e] if has_factors else product[j]
        if maximise:
            out[s] = max(out[s], value)
        else:
            out[s] = min(out[s], value)


@njit(cache=True, nogil=True)
def finish_rows(begin, end, x, factor, shape, has_shape, out, out_changes):  # type: ignore[no-untyped-def]
    """Scale new values, add a vector, and measure how far they are from the old ones, rows begin .. end.

    Parameters
    ----------
    x, out : ndarray, shape (n,), float64
        Old and new values; `out` becomes ``factor * out + shape``.
    shape : ndarray, shape (n,), float64
        The vector that is added. Not read unless `has_shape`.
    out_changes : ndarray, shape (3,), float64
        Greatest absolute and relative change, and a number that is not finite if some new value is not.
    """
    greatest, relative, check = 0.0, 0.0, 0.0
    for s in range(begin, end):
        new = out[s] * factor
        if has_shape:
            new += shape[s]
        out[s] = new
        change = abs(new - x[s])
        if change > 0.0:
            greatest = max(greatest, change)
            relative = max(relative, change / abs(new) if new != 0.0 else np.inf)
        check += new - new
    out_changes[0] = greatest
    out_changes[1] = relative
    out_changes[2] = check


@njit(cache=True, nogil=True)
def explicit_step(  # type: ignore[no-untyped-def]
    begin, end, newest, descending, choice_ptr, offsets, columns, values, gains, plain, layers, maximise,
    policy, has_policy, factor, shape, has_shape, x, out, out_changes,
):  # fmt: skip
    """Write the best value over every state's choices, scaled, and measure the step, states begin .. end.

    Other parameters are those of `finish_rows`.

    Parameters
    ----------
    newest : bool
        Gauss-Seidel: of the states begin .. end the newest values are read, of the others those of x.
    descending : bool
        Whether the last state comes first.
    choice_ptr : ndarray, shape (n + 1,), integers
        Choices of a state.
    offsets : ndarray, shape (choices + 1,), integers
        Transitions of a choice.
    columns, values : ndarray, shape (transitions,), integers and float64
        Their targets and probabilities.
    gains : ndarray, shape (choices,), float64
        Reward of a choice; not read with `plain`.
    layers : ndarray, shape (choices,), unsigned
        The layer that a choice comes from.
    policy : ndarray, shape (n,), uint16
        With `has_policy`, the layer whose choice alone counts.
    x, out : ndarray, shape (n,), float64
        A state without a choice that counts gets the worst value, an infinity.

    Notes
    -----
    Unsigned numbers spare the tests for negative places.
    """
    one, first, count = np.uint64(1), np.uint64(begin), np.uint64(end - begin)
    worst = -np.inf if maximise else np.inf
    greatest, relative, check = 0.0, 0.0, 0.0
    if newest:
        out[begin:end] = x[begin:end]
    own = out if newest else x
    is_whole = not newest or end - begin == len(x)
    for k in range(end - begin):
        s = np.uint64(end - 1 - k if descending else begin + k)
        c, last = np.uint64(choice_ptr[s]), np.uint64(choice_ptr[s + one])
        e = np.uint64(offsets[c])
        best = worst
        while c < last:
            stop = np.uint64(offsets[c + one])
            if has_policy and layers[c] != policy[s]:
                c, e = c + one, stop
                continue
            total = 0.0 if plain else gains[c]
            c += one
            while e < stop:
                column = np.uint64(columns[e])
                if is_whole or column - first < count:
                    total += values[e] * own[column]
                else:
                    total += values[e] * x[column]
                e += one
            if maximise:
                best = total if total > best else best
            else:
                best = total if total < best else best
        new = best * factor
        if has_shape:
            new += shape[s]
        out[s] = new
        change = abs(new - x[s])
        if change > 0.0:
            greatest = max(greatest, change)
            if change > relative * abs(new):
                relative = change / abs(new) if new != 0.0 else np.inf
        check += new - new
    out_changes[0] = greatest
    out_changes[1] = relative
    out_changes[2] = check


@njit(cache=True, nogil=True)
def explicit_steps(  # type: ignore[no-untyped-def]
    steps, newest, descending, choice_ptr, offsets, columns, values, gains, plain, layers, maximise,
    policy, has_policy, factor, shape, has_shape, x, y, out_changes,
):  # fmt: skip
    """Make several steps of all states, from x to y and back; `out_changes` are those of the last one.

    Parameters are those of `explicit_step`.
    """
    for k in range(steps):
        before, after = (x, y) if k % 2 == 0 else (y, x)
        explicit_step(
            0, len(x), newest, descending, choice_ptr, offsets, columns, values, gains, plain, layers,
            maximise, policy, has_policy, factor, shape, has_shape, before, after, out_changes,
        )  # fmt: skip
