// Products with matrices in sliced ELL: slices of 32 lanes, a lane a row, entry p of all lanes side by side.
//
// slice_starts  first element of every slice, and the end
// columns       column of every element, -1 for padding
// values        value of every element, or its number in `table`
//
// Macros besides those of common.cuh:
//   VALUE_BITS  8, 16 or 32: width of the numbers of values; 64: plain values

#include "common.cuh"
#include "gather.cuh"

// out = M x, a thread a row, AHEAD elements at a time so that their loads overlap.
extern "C" __global__ void __launch_bounds__(256)
multiply_slices(const INDEX n_rows, const INDEX *__restrict__ slice_starts, const int *__restrict__ columns,
                const void *__restrict__ values, const double *__restrict__ table, const double *__restrict__ x,
                double *__restrict__ out) {
    const INDEX i = static_cast<INDEX>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= n_rows) return;
    const INDEX end = slice_starts[i / LANES + 1];
    double total = 0.0;
    for (INDEX e = slice_starts[i / LANES] + i % LANES; e < end; e += AHEAD * LANES) {
        Gather gather;
#pragma unroll
        for (int k = 0; k < AHEAD; ++k) {
            const bool live = k == 0 || e < end - k * LANES;
            const int column = stream_if(live, columns + e + k * LANES);
            gather.column[k] = live ? column : -1;
            gather.stored[k] = stream_if(live, static_cast<const STORED *>(values) + e + k * LANES);
        }
        total = gather.add(total, table, x);
    }
    out[i] = total;
}
