// Products with matrices in sliced ELL whose columns are distances from the least of 32 neighbours.
//
// slice_starts  first cell of every slice, and the end; a cell is entry p of the slice's 32 rows
// cells         least column of every cell, and where its distances begin, in units of 32 bytes; as many units as bytes
//               a distance takes. One more at the end.
// distances     little-endian numbers of 1, 2 or 4 bytes, all bits set for no entry; here as words
// values        value of every element (32 a cell), or its number in `table`
// order         row of every lane, where rows are sorted
//
// Macros besides those of common.cuh:
//   VALUE_BITS  8, 16 or 32: width of the numbers of values; 64: plain values
//   SORTED      0 or 1: whether `order` is given

#include "common.cuh"
#include "gather.cuh"

struct alignas(2 * sizeof(INDEX)) Cell { INDEX base, unit; };

// out = M x, a thread a row, a warp a slice, AHEAD cells at a time so that their loads overlap. The 32-bit word
// that a distance lies in is read whole, so that the same instructions serve all widths.
extern "C" __global__ void __launch_bounds__(256)
multiply_cells(const INDEX n_rows, const INDEX *__restrict__ slice_starts, const Cell *__restrict__ cells,
               const unsigned *__restrict__ distances, const void *__restrict__ values,
               const double *__restrict__ table, const int *__restrict__ order, const double *__restrict__ x,
               double *__restrict__ out) {
    const INDEX i = static_cast<INDEX>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= n_rows) return;
    const int lane = threadIdx.x % LANES;
    const INDEX end = slice_starts[i / LANES + 1];
    double total = 0.0;
    for (INDEX first = slice_starts[i / LANES]; first < end; first += AHEAD) {
        // Behind the end the end stands in: a cell without bytes.
        Cell cell[AHEAD + 1];
#pragma unroll
        for (int k = 0; k <= AHEAD; ++k) cell[k] = cells[k <= 1 || first < end - k ? first + k : end];
        Gather gather;
#pragma unroll
        for (int k = 0; k < AHEAD; ++k) {
            const int width = static_cast<int>(cell[k + 1].unit - cell[k].unit), byte = lane * width;
            const bool live = width > 0;
            const unsigned mask = ~0u >> (live ? 32 - 8 * width : 0);
            const unsigned word = stream_if(live, distances + cell[k].unit * (LANES / 4) + byte / 4);
            const unsigned distance = word >> (byte % 4 * 8) & mask;
            gather.column[k] = live && distance != mask ? static_cast<int>(cell[k].base + distance) : -1;
            gather.stored[k] = stream_if(live, static_cast<const STORED *>(values) + (first + k) * LANES + lane);
        }
        total = gather.add(total, table, x);
    }
#if SORTED
    out[order[i]] = total;
#else
    out[i] = total;
#endif
}
