"""Which states are whose, where several processes share the vectors of a model.

Diagrams stand for all states in every process; a vector has the process's own states alone.  A manager that
has a share (`Manager.sharing`) numbers the own members of every set, and sets that are made of vectors are
united over all processes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mtbdd.base.communicator import Communicator


@dataclass(frozen=True, eq=False)
class Share:
    """What one process has of the states.

    Attributes
    ----------
    communicator : Communicator
    owners : tuple of Node
        For every process its states, over row bits; disjoint, and all states together.
    """

    communicator: Communicator
    owners: tuple[Any, ...]

    @property
    def own(self) -> Any:
        """The states of this process."""
        return self.owners[self.communicator.rank]
