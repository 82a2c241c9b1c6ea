// Products with row-compressed matrices, plain (MSR) or with a dictionary of values (CMSR).
//
// row_starts  first entry of every row, and the end
// columns     column of every entry
// values      value of every entry, or its number in `table`
//
// Macros besides those of common.cuh:
//   VALUE_BITS  8, 16 or 32: width of the numbers of values; 64: plain values

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
