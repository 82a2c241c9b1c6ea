// The plain product with an explicit matrix, for comparison: a warp a row.

#include "common.cuh"

// out = M x for a matrix in compressed sparse rows. A warp a row, in a loop over the grid.
extern "C" __global__ void __launch_bounds__(256)
csr_spmv(const INDEX n_rows, const INDEX *__restrict__ indptr, const int *__restrict__ indices,
         const double *__restrict__ data, const double *__restrict__ x, double *__restrict__ out) {
    const int lane = threadIdx.x % LANES;
    const INDEX stride = static_cast<INDEX>(gridDim.x) * (blockDim.x / LANES);
    for (INDEX i = static_cast<INDEX>(blockIdx.x) * (blockDim.x / LANES) + threadIdx.x / LANES; i < n_rows;
         i += stride) {
        double total = 0.0;
        for (INDEX e = indptr[i] + lane; e < indptr[i + 1]; e += LANES) total += data[e] * __ldg(x + indices[e]);
        for (int distance = LANES / 2; distance > 0; distance /= 2) {
            total += __shfl_xor_sync(ALL_LANES, total, distance);
        }
        if (lane == 0) out[i] = total;
    }
}

// out = M x for a matrix in sliced ELL: 32 rows a slice, a lane a row, entry p of all lanes side by side; a column
// of -1 stands for no entry. One thread a row.
extern "C" __global__ void __launch_bounds__(256)
sell_spmv(const INDEX n_rows, const INDEX *__restrict__ slice_ptr, const int *__restrict__ indices,
          const double *__restrict__ data, const double *__restrict__ x, double *__restrict__ out) {
    const INDEX i = static_cast<INDEX>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= n_rows) return;
    const INDEX slice = i / LANES;
    double total = 0.0;
    for (INDEX e = slice_ptr[slice] + i % LANES; e < slice_ptr[slice + 1]; e += LANES) {
        const int column = indices[e];
        if (column >= 0) total += data[e] * __ldg(x + column);
    }
    out[i] = total;
}

// Fill sliced ELL from compressed sparse rows; slice_ptr is given. One thread a row of the padded matrix.
extern "C" __global__ void __launch_bounds__(256)
sell_fill(const INDEX n_rows, const INDEX *__restrict__ indptr, const int *__restrict__ csr_indices,
          const double *__restrict__ csr_data, const INDEX *__restrict__ slice_ptr, int *__restrict__ indices,
          double *__restrict__ data) {
    const INDEX i = static_cast<INDEX>(blockIdx.x) * blockDim.x + threadIdx.x;
    const INDEX slice = i / LANES;
    if (slice >= (n_rows + LANES - 1) / LANES) return;
    INDEX source = i < n_rows ? indptr[i] : 0;
    const INDEX end = i < n_rows ? indptr[i + 1] : 0;
    for (INDEX e = slice_ptr[slice] + i % LANES; e < slice_ptr[slice + 1]; e += LANES, ++source) {
        indices[e] = source < end ? csr_indices[source] : -1;
        data[e] = source < end ? csr_data[source] : 0.0;
    }
}
