// Products and relaxation steps in two stages, for matrices with long rows.
//
// A *pair* is a submatrix and the column at which it begins. Groups of rows share pairs: where a matrix has long rows,
// far fewer pairs than instances of submatrices occur. So every pair is multiplied once, and a row of the result is the
// sum of one element of the products of each pair that its group meets, times the scale of the slot:
//
//   1. multiply_pairs: ENTRY_LANES lanes share a row of a submatrix, for MEMBERS pairs with the same submatrix at once;
//   2. add_pairs: a block has ROWS rows of a group, and PARTS threads a row share its slots.
//
// Sums over lanes are made pairwise in a fixed order, without atomic additions: the same bits every time. In place:
// nothing but products, out and the partial maxima of the change. x and out must not overlap.
// Source: this project; the submatrices are the injected ones of [Tealdi13] §4.4.
//
// Macros besides those of common.cuh and relax.cuh:
//   PAIR_THREADS  threads of a block of multiply_pairs, a multiple of 32
//   ENTRY_LANES   1, 2, 4, ..., 32
//   MEMBERS       1, 2 or 4
//   VALUE_BITS    8, 16 or 64: how values are held
//   SCALE_BITS    0 (no scales), 8, 16 or 64: how scales are held
//   ROWS, PARTS   powers of two; ROWS * PARTS is the number of threads of a block of add_pairs, 32 or more

#include "common.cuh"
#include "relax.cuh"

// Some rows of a submatrix, with pairs that share it.
struct alignas(16) PairItem {
    INDEX first_row;   // number of the first row among the rows of all submatrices
    INDEX first_base;  // pairs first_base, ..., first_base + count - 1
    INDEX product;     // where the product of the first pair with the first row goes
    INDEX stride;      // from there to the next pair's product: rows of the submatrix
    int rows;
    int count;
};

// Some rows of a group; or of a range of rows without entries, which have no slots.
struct alignas(16) RowItem {
    INDEX row;         // first row of the result
    INDEX first_slot;  // slots of the group
    INDEX local;       // number of the first row within the group
    int slots;
    int rows;          // at most ROWS
};

extern "C" __global__ void __launch_bounds__(PAIR_THREADS)
multiply_pairs(const PairItem *items, const INDEX *row_ptr, const INDEX *columns, const void *values,
               const double *value_table, const INDEX *base, STEP_PARAMETERS, const double *__restrict__ x,
               double *__restrict__ products) {
    constexpr int TOGETHER = PAIR_THREADS / ENTRY_LANES;
    const PairItem item = items[blockIdx.x];
    if (ended(STEP)) return;
    INDEX begin[MEMBERS];
#pragma unroll
    // Dead members repeat the last live one, so that they read valid elements.
    for (int m = 0; m < MEMBERS; ++m) begin[m] = __ldg(base + item.first_base + min(m, item.count - 1));
    const int lane = threadIdx.x % ENTRY_LANES;
    // All lanes of a warp make the same number of turns, for the sake of the shuffles.
    for (int first = 0; first < item.rows; first += TOGETHER) {
        const int row = first + threadIdx.x / ENTRY_LANES;
        const bool live = row < item.rows;
        const INDEX entry = live ? __ldg(row_ptr + item.first_row + row) : 0;
        const INDEX end = live ? __ldg(row_ptr + item.first_row + row + 1) : 0;
        double total[MEMBERS];
#pragma unroll
        for (int m = 0; m < MEMBERS; ++m) total[m] = 0.0;
#pragma unroll 4
        for (INDEX e = entry + lane; e < end; e += ENTRY_LANES) {
            const double value = Coded<VALUE_BITS>::at(values, value_table, e);
            const double *own = x + __ldg(columns + e);
#pragma unroll
            for (int m = 0; m < MEMBERS; ++m) total[m] += value * __ldg(own + begin[m]);
        }
#pragma unroll
        for (int m = 0; m < MEMBERS; ++m) {
#pragma unroll
            for (int distance = ENTRY_LANES / 2; distance > 0; distance /= 2) {
                total[m] += __shfl_xor_sync(ALL_LANES, total[m], distance);
            }
            if (live && lane == 0 && m < item.count) products[item.product + m * item.stride + row] = total[m];
        }
    }
}

extern "C" __global__ void __launch_bounds__(ROWS * PARTS)
add_pairs(const RowItem *items, const INDEX *slot_product, const void *scales, const double *scale_table,
          const double *__restrict__ products, STEP_PARAMETERS, const double *__restrict__ x,
          double *__restrict__ out) {
    extern __shared__ double shared_words[];
    const RowItem item = items[blockIdx.x];
    const Step step = STEP;
    if (ended(step)) return;
    const int row = threadIdx.x % ROWS, part = threadIdx.x / ROWS;
    const double *own = products + item.local + min(row, item.rows - 1);
    double total = 0.0;
#pragma unroll 4
    for (int s = part; s < item.slots; s += PARTS) {
        const INDEX slot = item.first_slot + s;
        const double product = __ldg(own + __ldg(slot_product + slot));
#if SCALE_BITS != 0
        total += Coded<SCALE_BITS>::at(scales, scale_table, slot) * product;
#else
        total += product;
#endif
    }
    shared_words[threadIdx.x] = total;
    for (int half = PARTS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (part < half) shared_words[threadIdx.x] += shared_words[threadIdx.x + half * ROWS];
    }
    ChangeMaxima maxima;
    if (part == 0 && row < item.rows) {
        const INDEX i = item.row + row;
        Operands operands;
        operands.load(step, i, x);
        finish_row(step, operands, i, shared_words[threadIdx.x], out, maxima);
    }
#if MODE != 0
    maxima.combine(step.changes);
#endif
}
