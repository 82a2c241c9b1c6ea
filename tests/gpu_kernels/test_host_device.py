"""The emulator finds what a device would not: accesses beyond arrays, barriers that not all threads reach."""

from __future__ import annotations

import numpy as np
import pytest

from gpu_kernels.runtime._launch import macros
from tests.gpu_kernels import host_device
from tests.gpu_kernels.host_device import COMPILER, HostDevice

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")

KERNELS = """
extern "C" __global__ void copy(const double *from, double *to, int shift) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    to[i] = from[i + shift];
}
extern "C" __global__ void store(const double *from, double *to, int shift) {
    to[threadIdx.x + shift] = from[threadIdx.x];
}
extern "C" __global__ void share(double *to, int words, int shift) {
    extern __shared__ double shared_words[];
    for (int i = threadIdx.x; i < words; i += blockDim.x) shared_words[i + shift] = i;
    __syncthreads();
    if (threadIdx.x == 0) to[0] = shared_words[words - 1 + shift];
}
extern "C" __global__ void fixed(double *to, int shift) {
    BLOCK_SHARED double held[8];
    held[threadIdx.x + shift] = to[threadIdx.x];
    __syncthreads();
    to[threadIdx.x] = held[threadIdx.x + shift];
}
extern "C" __global__ void apart(double *to) {
    if (threadIdx.x < 16) __syncthreads(); else __syncwarp();
    to[threadIdx.x] = 1.0;
}
"""


@pytest.fixture
def launch(monkeypatch):
    """Launch a kernel of the text above."""
    monkeypatch.setattr(host_device, "source_text", lambda *_, **__: KERNELS)
    monkeypatch.setattr(host_device, "kernel_names", lambda _: ("copy", "store", "share", "fixed", "apart"))
    device = HostDevice()

    def launch(name, *arguments, threads=8, blocks=1, shared_mem=0):
        kernel = device.kernel("planted faults", name, macros(KIND=0))
        kernel((blocks,), (threads,), arguments, shared_mem=shared_mem)

    return launch


def test_accesses_within_arrays_are_let_through(launch):
    source, target = np.arange(16.0), np.zeros(16)
    for _ in range(3):
        target[:] = 0
        launch("copy", source, target, np.int32(0), blocks=2)
        np.testing.assert_array_equal(target, source)
    launch("share", target, np.int32(100), np.int32(0), shared_mem=800)
    assert target[0] == 99
    launch("fixed", target[:8], np.int32(0))
    np.testing.assert_array_equal(target[:2], [99, 1])


@pytest.mark.parametrize("size", [8, 512, 513, 5000])
def test_reads_beyond_the_end_of_an_array_are_found(launch, size):
    held = np.arange(2.0 * size)
    message = r"kernel copy .*thread 7: an access 0 bytes after the end of argument 0 \(float64, shape"
    with pytest.raises(AssertionError, match=message):
        launch("copy", held[:size], np.zeros(size), np.int32(size - 7))


def test_reads_before_the_begin_of_an_array_are_found_by_the_second_launch(launch):
    source, target = np.arange(16.0), np.zeros(8)
    launch("copy", source[8:], target, np.int32(-2))
    assert np.isnan(target[:2]).all()
    with pytest.raises(AssertionError, match="thread 0: an access 16 bytes before the begin of argument 0"):
        launch("copy", source[8:], target, np.int32(-2))


def test_writes_beyond_an_array_are_found(launch):
    whole = np.zeros(16)
    with pytest.raises(AssertionError, match="thread 6: an access 0 bytes after the end of argument 1"):
        launch("store", np.ones(8), whole[:8], np.int32(2))
    assert not whole.any()


def test_writes_into_an_array_that_is_read_only_are_found(launch):
    target = np.zeros(8)
    target.flags.writeable = False
    with pytest.raises(AssertionError, match="read only"):
        launch("store", np.ones(8), target, np.int32(0))


def test_null_pointers_are_found(launch):
    with pytest.raises(AssertionError, match="which is no argument"):
        launch("store", np.ones(8), np.uint64(0), np.int32(0))


def test_dynamic_shared_memory_has_the_bytes_that_the_launch_names(launch):
    with pytest.raises(AssertionError, match="0 bytes after the end of shared memory"):
        launch("share", np.zeros(1), np.int32(100), np.int32(0), shared_mem=792)


@pytest.mark.parametrize("shift", [1, -1])
def test_indices_into_static_shared_memory_are_checked(launch, shift):
    with pytest.raises(AssertionError, match="beyond an array of known size"):
        launch("fixed", np.zeros(8), np.int32(shift))


def test_threads_that_wait_at_different_barriers_are_found(launch):
    with pytest.raises(AssertionError, match="different barriers"):
        launch("apart", np.zeros(32), threads=32)


def test_overlapping_arguments_stay_overlapping(launch):
    whole = np.arange(12.0)
    launch("copy", whole[4:], whole[:8], np.int32(0))
    np.testing.assert_array_equal(whole, [4, 5, 6, 7, 8, 9, 10, 11, 8, 9, 10, 11])


def test_the_next_launch_works_after_a_fault(launch):
    source, target = np.arange(8.0), np.zeros(8)
    with pytest.raises(AssertionError, match="after the end"):
        launch("copy", source, target, np.int32(3))
    launch("copy", source, target, np.int32(0))
    np.testing.assert_array_equal(target, source)
