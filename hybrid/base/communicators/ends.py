"""The end of what several processes find together: all have it, or none."""

from __future__ import annotations

from hybrid.base.communicators.threads import PartEndedError
from hybrid.base.errors import HybridError, PropertyError
from mtbdd.base.communicator import Communicator


def failure_of_all(communicator: Communicator, failure: HybridError | None) -> HybridError | None:
    """Wait for all at the end of an answer, and return why this process has none; None if all have one.

    Parameters
    ----------
    communicator : Communicator
    failure : HybridError or None
        Why this process has none by itself.
    """
    was_ended = isinstance(failure, PartEndedError)
    why = communicator.meet(None if failure is None else "" if was_ended else str(failure))
    if why is not None and (failure is None or was_ended):
        return PropertyError(why)
    return failure
