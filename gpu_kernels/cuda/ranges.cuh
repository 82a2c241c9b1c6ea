// Ranges of a vector copied one after the other, by warps: ranges may be short, and long ones lie beside them.
#pragma once

constexpr int RANGE_LANES = 32;

// Write elements begin, ..., last - 1 of the result: range number k begins at starts[k] in `source` and ends at ends[k] in
// `target`. The lanes of a warp call with the same numbers, and find by bisection which range covers the first element.
template <class Element>
__device__ inline void copy_ranges(long long begin, long long last, long long count, const Element *__restrict__ source,
                                   const long long *__restrict__ starts, const long long *__restrict__ ends,
                                   Element *__restrict__ target) {
    if (begin >= last) return;
    long long low = 0, high = count - 1;
    while (low < high) {
        const long long middle = (low + high) / 2;
        if (ends[middle] > begin) high = middle;
        else low = middle + 1;
    }
    const int lane = threadIdx.x % RANGE_LANES;
    for (long long at = begin; at < last; ++low) {
        const long long stop = ends[low] < last ? ends[low] : last;
        const long long shift = starts[low] - (low == 0 ? 0 : ends[low - 1]);
#pragma unroll 8
        for (long long i = at + lane; i < stop; i += RANGE_LANES) target[i] = source[i + shift];
        at = stop;
    }
}
