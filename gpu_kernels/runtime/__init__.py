"""Devices, memory, compiled kernels and arrays that all kernels share."""
