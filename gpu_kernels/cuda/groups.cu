// The best value of every group of states, given to all members of the group: end components made one state.
//
// members  rows of the members, group by group
// owners   the group of every member, which does not fall
// keys     a word a group, zero at the start: the best value so far, coded so that a better one is greater
//
// Launch: 256 threads a block; group_maxima one warp for SPAN members, spread_maxima one thread a member. Maxima do not
// depend on the order of atomic operations: deterministic.
//
// Macros besides those of common.cuh:
//   MAXIMISE  0 or 1: the greatest value is best, else the least

#include "common.cuh"

constexpr int THREADS = 256;
constexpr int SPAN = 512;
constexpr BITS SIGN = 0x8000000000000000ULL;
constexpr BITS NO_NUMBER = 0xffffffffffffffffULL;  // better than all others, so that it is seen by the measurement

// No value has the key zero.
__device__ inline BITS key_of(double value) {
    if (value != value) return NO_NUMBER;
    const BITS bits = static_cast<BITS>(__double_as_longlong(value));
    const BITS rising = bits & SIGN ? ~bits : bits | SIGN;
    return MAXIMISE ? rising : ~rising;
}

__device__ inline double value_of(BITS key) {
    const BITS rising = MAXIMISE || key == NO_NUMBER ? key : ~key;
    return __longlong_as_double(static_cast<long long>(rising & SIGN ? rising & ~SIGN : ~rising));
}

extern "C" __global__ void __launch_bounds__(THREADS)
group_maxima(const INDEX count, const INDEX *__restrict__ members, const int *__restrict__ owners,
             const double *__restrict__ values, BITS *keys) {
    const int lane = threadIdx.x % LANES;
    const INDEX warp = static_cast<INDEX>(blockIdx.x) * (THREADS / LANES) + threadIdx.x / LANES;
    const INDEX begin = warp * SPAN, last = count - begin < SPAN ? count : begin + SPAN;
    if (begin >= count) return;
    // The group whose best the lanes keep together, until another one follows.
    int kept = owners[begin];
    BITS best = 0;
    for (INDEX at = begin; at < last; at += LANES) {
        const int lanes = last - at < LANES ? static_cast<int>(last - at) : LANES;
        const int first = owners[at];
        const bool live = lane < lanes, is_one = first == owners[at + lanes - 1];
        const BITS key = live ? key_of(values[members[at + lane]]) : 0;
        if (!is_one || first != kept) {
            best = warp_maximum(best);
            if (lane == 0) atomicMax(keys + kept, best);
            kept = first;
            best = 0;
        }
        if (is_one) best = larger(best, key);
        else if (live) atomicMax(keys + owners[at + lane], key);
    }
    best = warp_maximum(best);
    if (lane == 0) atomicMax(keys + kept, best);
}

extern "C" __global__ void __launch_bounds__(THREADS)
spread_maxima(const INDEX count, const INDEX *__restrict__ members, const int *__restrict__ owners,
              const BITS *__restrict__ keys, double *__restrict__ values) {
    const INDEX k = static_cast<INDEX>(blockIdx.x) * THREADS + threadIdx.x;
    if (k < count) values[members[k]] = value_of(keys[owners[k]]);
}
