"""Sample paths of a model, from its text to arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hybrid.checking.simulation.record import SamplePaths
from hybrid.checking.simulation.rules import Rules
from hybrid.checking.simulation.sampler import Constants, Model, Sampler, resolved_model


def simulate(
    model: Model,
    steps: int = 100,
    paths: int = 1,
    seed: int = 0,
    until: float | None = None,
    *,
    constants: Constants | None = None,
    start: Mapping[str, bool | int] | None = None,
    rewards: bool = False,
    progress: Callable[[str], None] | None = None,
) -> SamplePaths:
    """Draw paths of a model from its text, without building it.

    Parameters
    ----------
    model : ResolvedModel or path-like
        From `mtbdd.language.resolve`, or a file in the PRISM language.
    steps : int
        Steps of every path.
    paths : int
        How many paths.
    seed : int
        Not negative. Path `i` depends on the seed and on `i` alone.
    until : float, optional
        End paths of a CTMC with the state that they are in at this time.
    constants : mapping, optional
        Values of constants that the file leaves open.
    start : mapping of str to bool or int, optional
        Values of variables in the first state. Where `init ... endinit` leaves several states, one of them is
        drawn for every path, each as likely as any other.
    rewards : bool
        Also add up what the paths earn.
    progress : callable, optional
        Called with a line of text now and then.

    Returns
    -------
    SamplePaths

    Raises
    ------
    LanguageError
        The model cannot be read, or a path comes to a state in which it is at fault: told with its place.
    OptionError
        A number is out of range, or `until` is given for a model without time.
    MemoryError
        There is no room for the record.

    Notes
    -----
    In a DTMC a command is chosen among the enabled ones, each as likely as any other, and then one of its
    updates; in a CTMC all enabled ones race; in an MDP the choice is uniform, too, which is one scheduler
    among many. A state without transitions keeps a loop of rate (probability) 1.

    Time: O(steps × paths × commands) in operations on arrays. Memory: the record, and some arrays of
    ``events × paths``, for at most 2^23 entries at a time.
    """
    rules = Rules(resolved_model(model, constants))
    sampler = Sampler(rules, steps, paths, seed, until, start, rewards)
    sampler.require_room()
    return sampler.whole(progress)
