// The product over tasks of 256 rows, as published: [Tealdi13] §4.4.2.1.

#include "common.cuh"
#include "relax.cuh"

constexpr int TASK_THREADS = 192;
constexpr int TASK_ROWS = 256;

// A step over all rows of a matrix in tasks ([Tealdi13] §4.4.1.2).
//
// A block does one task: 256 results in shared memory, a warp an instance over its coordinate entries, atomic
// additions, and at the end the results to global memory. Launch: one block of 192 threads a task. Sums are added
// in the order in which warps arrive, so the last bits of a result may differ from run to run. In MODE 0 this is the
// published kernel; the other modes save a pass over the vectors, as the results are at hand.
//
// task_ptr                  instances of every task
// row, column, submatrix    corner of every instance and its submatrix
// offset_begin, offset_end  its entries, counted from the first one of the submatrix
// entry_ptr                 first entry of every submatrix
// entry_row, entry_column   local indices; entry_value: values
extern "C" __global__ void __launch_bounds__(TASK_THREADS)
block_spmv(const INDEX n_rows, const INDEX *task_ptr, const INDEX *row, const INDEX *column, const int *submatrix,
           const INDEX *offset_begin, const INDEX *offset_end, const INDEX *entry_ptr, const INDEX *entry_row,
           const INDEX *entry_column, const double *entry_value, STEP_PARAMETERS, const double *__restrict__ x,
           double *__restrict__ out) {
    const Step step = STEP;
    if (ended(step)) return;
    BLOCK_SHARED double result[TASK_ROWS];
    for (int i = threadIdx.x; i < TASK_ROWS; i += TASK_THREADS) result[i] = 0.0;
    __syncthreads();
    const INDEX first_row = static_cast<INDEX>(blockIdx.x) * TASK_ROWS;
    const int lane = threadIdx.x % LANES;
    const INDEX end = task_ptr[blockIdx.x + 1];
    for (INDEX i = task_ptr[blockIdx.x] + threadIdx.x / LANES; i < end; i += TASK_THREADS / LANES) {
        const INDEX corner_row = row[i] - first_row, corner_column = column[i];
        const INDEX first = entry_ptr[submatrix[i]];
        for (INDEX e = first + offset_begin[i] + lane; e < first + offset_end[i]; e += LANES) {
            const double product = entry_value[e] * __ldg(x + corner_column + entry_column[e]);
            atomicAdd(result + (corner_row + entry_row[e]), product);
        }
    }
    __syncthreads();
    ChangeMaxima maxima;
    for (int i = threadIdx.x; i < TASK_ROWS; i += TASK_THREADS) {
        if (first_row + i >= n_rows) break;
        Operands operands;
        operands.load(step, first_row + i, x);
        finish_row(step, operands, first_row + i, result[i], out, maxima);
    }
#if MODE != 0
    maxima.combine(step.changes);
#endif
}
