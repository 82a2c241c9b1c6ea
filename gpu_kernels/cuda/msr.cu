// Products with row-compressed matrices, plain (MSR) or with a dictionary of values (CMSR).
//
// row_starts  first entry of every row, and the end
// columns     column of every entry
// values      value of every entry, or its number in `table`
//
// Macros besides those of common.cuh:
//   VALUE_BITS  8, 16 or 32: width of the numbers of values; 64: plain values
//   SUBWARP     lanes of a warp that share a row: a power of two, 1 to 32

#include "common.cuh"

// out = M x, a thread a row: [WB13] Algorithm 1, [BESW10]'s method M1. Rows are added from left to right.
extern "C" __global__ void __launch_bounds__(256)
multiply_rows(const INDEX n_rows, const INDEX *__restrict__ row_starts, const int *__restrict__ columns,
              const void *__restrict__ values, const double *__restrict__ table, const double *__restrict__ x,
              double *__restrict__ out) {
    const INDEX i = static_cast<INDEX>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= n_rows) return;
    double total = 0.0;
    const INDEX end = row_starts[i + 1];
    for (INDEX j = row_starts[i]; j < end; ++j) {
        total += Coded<VALUE_BITS>::at(values, table, j) * __ldg(x + columns[j]);
    }
    out[i] = total;
}

// out = M x, SUBWARP lanes a row, neighbouring lanes on neighbouring entries.
extern "C" __global__ void __launch_bounds__(256)
multiply_rows_by_subwarps(const INDEX n_rows, const INDEX *__restrict__ row_starts, const int *__restrict__ columns,
                          const void *__restrict__ values, const double *__restrict__ table,
                          const double *__restrict__ x, double *__restrict__ out) {
    const int lane = threadIdx.x % SUBWARP;
    const INDEX i = static_cast<INDEX>(blockIdx.x) * (blockDim.x / SUBWARP) + threadIdx.x / SUBWARP;
    double total = 0.0;
    if (i < n_rows) {
        const INDEX end = row_starts[i + 1];
        for (INDEX j = row_starts[i] + lane; j < end; j += SUBWARP) {
            total += Coded<VALUE_BITS>::at(values, table, j) * __ldg(x + columns[j]);
        }
    }
    // All lanes of the warp take part, those behind the last row too.
    for (int distance = SUBWARP / 2; distance > 0; distance /= 2) {
        total += __shfl_xor_sync(ALL_LANES, total, distance);
    }
    if (lane == 0 && i < n_rows) out[i] = total;
}
