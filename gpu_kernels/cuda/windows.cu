// Elements of a vector written straight to the memory of other cards, and how the processes of these cards keep step.
//
// Every process has a window: words that say how far others are, and room for their elements. Exchange number e, from 1:
//
//   1. announce: a process tells all who send to it that its room is free, by e in their words;
//   2. push: once a receiver has told so, its elements are written to its room, and then e to its words;
//   3. await_arrivals: a process waits until all who send to it have written e.
//
// A process announces nothing before its kernels have read the room: one stream has them in this order. All announce before
// they wait for anybody, so that no two wait for each other; and what waits for a receiver does not keep others from announcing.
// `turn` has the number of the last exchange; it lies on the device, so that a recorded sequence of launches can be repeated.
//
// Launch: announce and await_arrivals one warp, push_* any grid of blocks of THREADS threads. Blocks are small, so that they
// find a place beside those of a product: a multiprocessor keeps none free for a larger one.
// Source: words and fences as in the memory model of the PTX ISA, §8; the algorithm is this project's.
//
// Macros besides INDEX_BITS:
//   none

#include "common.cuh"
#include "ranges.cuh"

constexpr int THREADS = 128;
constexpr long long SPAN = 1024;  // elements that a warp writes at a time
constexpr int AT_ONCE = 8;        // elements of a thread that are under way at once, where their places are told

#ifdef HOST_KERNELS
// Nobody else runs meanwhile: what is not there does not come.
inline void wait_for(const BITS *word, BITS turn) { if (*word < turn) __builtin_trap(); }
inline void tell(BITS *word, BITS turn) { *word = turn; }
#else
// Wait until a word of this card is at least `turn`. What its writer had written before is visible then.
__device__ inline void wait_for(const BITS *word, BITS turn) {
    BITS now;
    do {
        asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(now) : "l"(word) : "memory");
    } while (now < turn);
}
// Write a word, behind all that this thread has written or has seen written.
__device__ inline void tell(BITS *word, BITS turn) {
    asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(word), "l"(turn) : "memory");
}
#endif

// Tell `count` senders, at the addresses in `words`, that the room is free for the next exchange.
extern "C" __global__ void __launch_bounds__(LANES)
announce(const int count, const BITS *words, const BITS *turn) {
    for (int k = threadIdx.x; k < count; k += blockDim.x) tell(reinterpret_cast<BITS *>(words[k]), *turn + 1);
}

// Wait for the elements of `count` senders, whose words are numbers `senders` of `arrived`; then the exchange is over.
extern "C" __global__ void __launch_bounds__(LANES)
await_arrivals(const int count, const int *senders, const BITS *arrived, BITS *turn) {
    const BITS next = *turn + 1;
    for (int k = threadIdx.x; k < count; k += blockDim.x) wait_for(arrived + senders[k], next);
    __syncwarp();
    if (threadIdx.x == 0) *turn = next;
}

// Wait until the receiver has room. All threads call.
__device__ inline void wait_for_room(const BITS *ready, const BITS *turn) {
    if (threadIdx.x == 0) wait_for(ready, *turn + 1);
    __syncthreads();
}

// Tell the receiver, once all blocks have written. `finished` counts them, zero before and afterwards. All threads call.
__device__ inline void tell_receiver(BITS *arrived, const BITS *turn, unsigned *finished) {
    __syncthreads();
    if (threadIdx.x != 0) return;
    __threadfence_system();
    if (atomicAdd(finished, 1u) + 1 < gridDim.x) return;
    *finished = 0;
    __threadfence_system();
    tell(arrived, *turn + 1);
}

// Write ranges of x one after the other to `target`: number k begins at starts[k] in x and ends at ends[k] in the target.
extern "C" __global__ void __launch_bounds__(THREADS)
push_ranges(const long long size, const long long count, const double *__restrict__ x,
            const long long *__restrict__ starts, const long long *__restrict__ ends, double *__restrict__ target,
            const BITS *ready, const BITS *turn, BITS *arrived, unsigned *finished) {
    wait_for_room(ready, turn);
    const int warp = blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES;
    const long long stride = static_cast<long long>(gridDim.x) * (THREADS / LANES) * SPAN;
    for (long long begin = warp * SPAN; begin < size; begin += stride) {
        copy_ranges(begin, begin + SPAN < size ? begin + SPAN : size, count, x, starts, ends, target);
    }
    tell_receiver(arrived, turn, finished);
}

// Write elements of x, whose places are told, one after the other to `target`. A block takes THREADS * AT_ONCE of them at a
// time: all its places are read before the first element is, and all elements before the first is written.
extern "C" __global__ void __launch_bounds__(THREADS)
push_elements(const long long size, const double *__restrict__ x, const INDEX *__restrict__ places,
              double *__restrict__ target, const BITS *ready, const BITS *turn, BITS *arrived, unsigned *finished) {
    wait_for_room(ready, turn);
    constexpr long long TILE = static_cast<long long>(THREADS) * AT_ONCE;
    for (long long begin = blockIdx.x * TILE; begin < size; begin += gridDim.x * TILE) {
        const long long first = begin + threadIdx.x;
        if (begin + TILE > size) {
            for (long long i = first; i < size; i += THREADS) target[i] = x[places[i]];
            break;
        }
        INDEX place[AT_ONCE];
        double element[AT_ONCE];
#pragma unroll
        for (int j = 0; j < AT_ONCE; ++j) place[j] = places[first + j * THREADS];
#pragma unroll
        for (int j = 0; j < AT_ONCE; ++j) element[j] = x[place[j]];
#pragma unroll
        for (int j = 0; j < AT_ONCE; ++j) target[first + j * THREADS] = element[j];
    }
    tell_receiver(arrived, turn, finished);
}
