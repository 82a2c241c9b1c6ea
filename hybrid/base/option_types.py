"""The names that options take, as types: editors complete them, and type checkers refuse any other.

The values are checked again when the program runs, where each option is used.
"""

from __future__ import annotations

from typing import Literal

Engine = Literal["hybrid", "explicit"]
CheckEngine = Literal["auto", "hybrid", "explicit", "symbolic"]
BackendName = Literal["auto", "cpu", "gpu", "reference"]
LevelOption = Literal["auto", "min-memory", "min-time"] | int
MethodName = Literal["auto", "jacobi", "jor", "power", "gauss-seidel", "bicgstab", "interval", "optimistic"]
Representation = Literal["row-types", "tasks"]
StorageName = Literal[
    "auto",
    "msr",
    "cmsr",
    "msr-scan",
    "cmsr-scan",
    "msr-stream",
    "cmsr-stream",
    "msr-wl",
    "cmsr-wl",
    "msr-hwl",
    "cmsr-hwl",
    "sell",
    "csell",
    "cusparse",
    "csr",
]
"""Formats of the explicit engine: ``csr`` on the host, the others on a device."""

PackageName = Literal["auto", "cudd", "autoref"]
BuildName = Literal["auto", "symbolic", "explicit"]
OrderName = Literal["auto", "model", "reversed", "force"]
ModelTypeName = Literal["dtmc", "ctmc", "mdp"]
