// The explicit matrix of a matrix in tiles, for comparison and for small matrices: compressed sparse rows.

#include "tile_types.cuh"

// Write the rows of the groups of one item; twice: with indices == nullptr the lengths of rows to counts[row + 1],
// then, with indptr known, columns and values, sorted by column within each row. Launch: one block an item, any
// number of threads; a thread a row. Arrays as in tiles.cu.
extern "C" __global__ void __launch_bounds__(256)
expand_rows(const Item *items, const int *term_ptr, const int *round_cell, const Cell *cells, const CODE *codes,
            const Term *terms, const double *values, const INDEX *group_row, const INDEX *base, const double *scale,
            long long *counts, const long long *indptr, int *indices, double *data) {
    const Item item = items[blockIdx.x];
    for (int i = threadIdx.x; i < item.rows * item.count; i += blockDim.x) {
        const int row = i % item.rows, member = i / item.rows;
        const INDEX first_slot = item.first_slot + static_cast<INDEX>(member) * item.slots;
        const INDEX local = item.begin + row;
        const INDEX global = group_row[item.first_group + member] + local;
        long long length = 0;
        for (int round = item.first_round; round < item.first_round + item.rounds; ++round) {
            const Cell cell = cells[round_cell[round] + row / LANES];
            for (int u = 0; u < cell.units; ++u) {
                const CODE *unit = codes + ((static_cast<long long>(cell.first) + u) * LANES + row % LANES) * UNIT;
                for (int j = 0; j < UNIT; ++j) {
                    if (unit[j] == PAD) continue;
                    if (indices == nullptr) {
                        ++length;
                        continue;
                    }
                    const Term term = terms[term_ptr[round] + unit[j]];
                    const INDEX slot = first_slot + term.slot;
                    const int column = static_cast<int>(base[slot] + term.shift + local);
                    const double value = values[term.value] * (scale == nullptr ? 1.0 : scale[slot]);
                    // Rows are short: each entry is moved to its place among those before it.
                    long long at = indptr[global] + length++;
                    for (; at > indptr[global] && indices[at - 1] > column; --at) {
                        indices[at] = indices[at - 1];
                        data[at] = data[at - 1];
                    }
                    indices[at] = column;
                    data[at] = value;
                }
            }
        }
        if (indices == nullptr) counts[global + 1] = length;
    }
}
