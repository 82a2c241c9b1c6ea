"""In which formats the explicit engine may store a matrix, by name."""

from __future__ import annotations

from gpu_kernels.format_names import FORMAT_NAMES

STORAGES = ("auto", *FORMAT_NAMES)
"""Names of storage on a device."""

HOST_STORAGES = ("csr",)
"""Names of storage on the host: compressed sparse rows, which SciPy multiplies."""
