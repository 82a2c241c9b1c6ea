// Graphs of decision processes as words: offsets, and transitions with the group in the high bits ([WKB16] §5.1).
#include "common.cuh"
#pragma once

// Everything that atomics touch is unsigned: CUDA has them for 32 and 64 bits.
#if INDEX_BITS == 64
typedef unsigned long long WORD;
#else
typedef unsigned WORD;
#endif

constexpr WORD NONE = ~static_cast<WORD>(0);  // no component yet, no item
constexpr WORD GONE = NONE - 1;               // known to lie in no end component

// A load that a compiler may not keep and the first-level cache may not answer: other blocks change the word.
__device__ inline WORD fresh(const WORD *address) { return *const_cast<const volatile WORD *>(address); }

__device__ inline WORD thread_number() { return static_cast<WORD>(blockIdx.x) * blockDim.x + threadIdx.x; }

// Append the values of the lanes that want it; all lanes of the warp call.
__device__ inline void append(bool wanted, WORD value, WORD *items, WORD *tail) {
    const unsigned votes = __ballot_sync(ALL_LANES, wanted);
    if (votes == 0) return;
    const int lane = threadIdx.x % LANES, leader = __ffs(votes) - 1;
    WORD first = 0;
    if (lane == leader) first = atomicAdd(tail, static_cast<WORD>(__popc(votes)));
    first = __shfl_sync(ALL_LANES, first, leader);
    if (wanted) items[first + __popc(votes & ((1u << lane) - 1))] = value;
}
