// Sums over all rows, in blocks of THREADS threads, a thread a row in a loop over the grid.
//
// They are the same every time: a thread adds what it meets, a warp its lanes' sums in pairs, a block its warps' sums,
// and the block that is done last the sums of all blocks, always in the order of their numbers.

#pragma once

#include "common.cuh"

constexpr int THREADS = 256;
constexpr int WARPS = THREADS / LANES;

// Where blocks leave their sums, a place for each block and sum, and how many have done so; the count is left at zero.
#define MEETING volatile double *partials, unsigned *arrived

__device__ inline INDEX first_row() { return static_cast<INDEX>(blockIdx.x) * THREADS + threadIdx.x; }
__device__ inline INDEX row_stride() { return static_cast<INDEX>(gridDim.x) * THREADS; }

// Add up the numbers of the threads of a block; thread 0 has the sums.
template <int COUNT>
__device__ void add_block(double (&sums)[COUNT]) {
    BLOCK_SHARED double of_warps[COUNT * WARPS];
#pragma unroll
    for (int k = 0; k < COUNT; ++k) {
        for (int distance = LANES / 2; distance > 0; distance /= 2) {
            sums[k] += __shfl_xor_sync(ALL_LANES, sums[k], distance);
        }
        if (threadIdx.x % LANES == 0) of_warps[k * WARPS + threadIdx.x / LANES] = sums[k];
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int k = 0; k < COUNT; ++k) {
            sums[k] = 0.0;
            for (int warp = 0; warp < WARPS; ++warp) sums[k] += of_warps[k * WARPS + warp];
        }
    }
    __syncthreads();  // read before they are written again
}

// Add up the numbers of all threads; true in one thread, which has the sums, once all blocks have come so far.
template <int COUNT>
__device__ bool add_grid(double (&sums)[COUNT], MEETING) {
    BLOCK_SHARED int is_last;
    add_block(sums);
    if (gridDim.x == 1) return threadIdx.x == 0;
    if (threadIdx.x == 0) {
        for (int k = 0; k < COUNT; ++k) partials[k * gridDim.x + blockIdx.x] = sums[k];
        __threadfence();  // the sums are there before the block is counted
        is_last = atomicAdd(arrived, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (!is_last) return false;
    __threadfence();
    for (int k = 0; k < COUNT; ++k) {
        sums[k] = 0.0;
        for (unsigned block = threadIdx.x; block < gridDim.x; block += THREADS) {
            sums[k] += partials[k * gridDim.x + block];
        }
    }
    add_block(sums);
    if (threadIdx.x != 0) return false;
    *arrived = 0;
    return true;
}
