"""The interface of backends: predictions, representations of matrices, vector spaces."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Self

from hybrid.base.option_types import BackendName
from hybrid.matrix.injection.injected import TaskList, cut_tasks, inject_level
from hybrid.matrix.levels.curve import LevelCurve
from hybrid.matrix.levels.table import LevelChoice
from hybrid.matrix.levels.task_table import TaskTable
from hybrid.matrix.space.base import LinearOperator, Product
from hybrid.matrix.space.host import HostSpace
from hybrid.matrix.space.vector_space import VectorSpace
from mtbdd.base.communicator import Communicator
from mtbdd.base.errors import option
from mtbdd.base.memory import require_memory
from mtbdd.base.records import Record
from mtbdd.offset.offset import OffsetMTBDD
from mtbdd.offset.places import HOST, VectorPlace

if TYPE_CHECKING:
    from hybrid.base.halo import Halo
    from mtbdd.offset.distributed import DistributedMTBDD

MatrixTable = LevelCurve | TaskTable
"""Levels in the representation in which the matrix or the layers will be held."""

_TASK_BUILD_BYTES = 85
"""Peak bytes of expanding submatrices, listing paths and cutting them, for each entry or instance."""


class Backend(Record, ABC):
    """A place for matrices and vectors.

    Attributes
    ----------
    name : str
        What users call it.
    reason : str
        Why it is in use, in words.
    is_free : bool
        Whether it was chosen by default, so that a better one may take its place.
    """

    reason: str = "asked for"
    is_free: bool = False

    name: ClassVar[BackendName]

    def because(self, reason: str) -> Self:
        """Return the same backend for another reason, no longer free."""
        return replace(self, reason=reason, is_free=False)

    @property
    def place(self) -> VectorPlace:
        """The place of vectors over states for matrices of this backend."""
        return HOST

    def holds(self, x: object) -> bool:
        """Return whether a vector lies where this backend has its own, and the host cannot read it."""
        return False

    def admitted(self, table: MatrixTable) -> Backend:
        """Return the backend for a matrix: another one, with the reason, where this one is free and worse."""
        return self

    def measured(self, table: MatrixTable, memory_budget: int | None) -> tuple[LevelChoice, Product] | None:
        """Return the fastest level within a budget by timing some; None where that does not pay."""
        return None

    def represent(self, table: MatrixTable, level: int) -> Product:
        """Build the representation of a level of one matrix.

        Raises
        ------
        MemoryError
            If there is no room to make it or to hold it.
        OptionError
            If the level has too many row types.
        """
        if isinstance(table, LevelCurve):
            return self._in_row_types(table, level)
        candidate = table[level]
        require_memory(
            _TASK_BUILD_BYTES * (candidate.submatrix_nonzeros + candidate.instances_worst_case),
            f"making the tasks of level {level}",
            f"choose another {option('level')}, such as min-memory, or "
            f"{option('representation', 'row-types')}",
        )
        return self._in_tasks(table.matrix, cut_tasks(inject_level(table.matrix, level)))

    @abstractmethod
    def _in_row_types(self, curve: LevelCurve, level: int) -> Product:
        """Hold a level in the form made for this backend."""

    @abstractmethod
    def _in_tasks(self, matrix: OffsetMTBDD, tasks: TaskList) -> Product:
        """Hold a level as submatrices and instances in tasks of 256 rows ([Tealdi13] §4.4.1.2)."""

    @abstractmethod
    def vector_space(self, product: Product, operator: LinearOperator) -> VectorSpace:
        """Return memory and operations for a solution.

        Parameters
        ----------
        product : Product
            The matrix as this backend holds it.
        operator : LinearOperator
            The operator that has it.
        """

    def halo(self, divided: DistributedMTBDD) -> Halo:
        """Return what a process receives before products with a matrix of which it has its own rows."""
        from hybrid.base.halo import HostHalo

        return HostHalo(divided)

    def distributed_space(
        self, product: Product | None, operator: LinearOperator, halo: Halo, communicator: Communicator
    ) -> VectorSpace:
        """Return memory and operations for a solution of all processes.

        Parameters
        ----------
        product : Product or None
            Of the own rows; None where none has an entry.
        operator : LinearOperator
            Its products and steps are those of all processes.
        halo : Halo
            From `halo`.
        communicator : Communicator
        """
        from hybrid.matrix.space.distributed import DistributedHostSpace, EmptySweeps

        space: VectorSpace = HostSpace(operator, sweeps=EmptySweeps)
        if product is not None:
            space = self.vector_space(product, operator)
        assert isinstance(space, HostSpace)
        return DistributedHostSpace(operator, space.passes, communicator, halo, lambda: space.sweeps)

    def is_scaled(self, table: MatrixTable, level: int) -> bool:
        """Return whether blocks are shared up to a scale at a level."""
        return False
