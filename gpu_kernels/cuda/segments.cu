// Products with matrices in warp segments: [WB13] §§4.2 and 4.3.
//
// segment_starts  first element of every segment, and the end
// columns         column of every element, -1 for padding
// values          value of every element, or its number in `table`
//
// Padding is passed over instead of multiplied by zero, so that an infinite x does not become undefined.
//
// Macros besides those of common.cuh:
//   VALUE_BITS  8, 16 or 32: width of the numbers of values; 64: plain values
//   WARP        threads of a segment: a power of two up to 32

#include "common.cuh"

// The sum over the elements that a thread of a segment has.
__device__ inline double add_elements(INDEX j, const INDEX end, const INDEX skip, const int *__restrict__ columns,
                                      const void *__restrict__ values, const double *__restrict__ table,
                                      const double *__restrict__ x) {
    double total = 0.0;
    for (; j < end; j += skip) {
        const int column = columns[j];
        if (column >= 0) total += Coded<VALUE_BITS>::at(values, table, j) * __ldg(x + column);
    }
    return total;
}

// out = M x, a thread a row: [WB13] Algorithm 2. The last segment has n_remainder rows.
extern "C" __global__ void __launch_bounds__(256)
multiply_warp_segments(const INDEX n_segments, const INDEX n_remainder, const INDEX *__restrict__ segment_starts,
                       const int *__restrict__ columns, const void *__restrict__ values,
                       const double *__restrict__ table, const double *__restrict__ x, double *__restrict__ out) {
    const INDEX i = static_cast<INDEX>(blockIdx.x) * blockDim.x + threadIdx.x;
    const INDEX segment = i / WARP, lane = i % WARP;
    const INDEX n = (n_segments - 1) * WARP + n_remainder;
    if (i >= n) return;
    const INDEX skip = segment < n_segments - 1 ? WARP : n_remainder;
    out[i] = add_elements(segment_starts[segment] + lane, segment_starts[segment + 1], skip, columns, values, table, x);
}

// out = M x, two neighbouring threads a row: [WB13] Algorithm 3. Where the source passes the second sum through shared
// memory and relies on threads in step, a shuffle does.
extern "C" __global__ void __launch_bounds__(256)
multiply_half_warp_segments(const INDEX n_segments, const INDEX n_remainder, const INDEX *__restrict__ segment_starts,
                            const int *__restrict__ columns, const void *__restrict__ values,
                            const double *__restrict__ table, const double *__restrict__ x,
                            double *__restrict__ out) {
    constexpr int HALF = WARP / 2;
    const INDEX row = static_cast<INDEX>(blockIdx.x) * (blockDim.x / 2) + threadIdx.x / 2;
    const INDEX segment = row / HALF, lane = row % HALF * 2 + threadIdx.x % 2;
    const INDEX n = (n_segments - 1) * HALF + n_remainder;
    double total = 0.0;
    if (row < n) {
        const INDEX skip = segment < n_segments - 1 ? WARP : 2 * n_remainder;
        const INDEX begin = segment_starts[segment] + lane;
        total = add_elements(begin, segment_starts[segment + 1], skip, columns, values, table, x);
    }
    total += __shfl_xor_sync(ALL_LANES, total, 1);
    if (threadIdx.x % 2 == 0 && row < n) out[row] = total;
}
