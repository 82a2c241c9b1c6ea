// Products with several vectors at once, with row types cut into tiles; see tiles.cu for the work of a block.
//
// X and out have their vectors side by side: element (i, v) lies at i * stride + v. A lane has a row of MEMBERS groups
// and VECTORS sums for each; it looks an entry up once and reads VECTORS neighbouring elements of X for every group.
// Sums are added in the order of tiles.cu, so that every column has the bits of the product with that column alone.
//
// Launch: one block of THREADS threads an item; shared memory as `shared_bytes` of gpu_kernels/tiles.py says. Serves
// the columns column, ..., column + count - 1, count <= VECTORS. Rows without a group are left as they are. No atomic
// additions. x and out must not overlap.
//
// Macros besides those of common.cuh and tile_rows.cuh:
//   MIN_BLOCKS   blocks that registers must leave room for on a multiprocessor
//   VECTORS      columns that a launch serves at once

#include "common.cuh"
#include "tile_rows.cuh"

typedef long long PLACE;  // rows times columns may be more than an index holds

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
tiles_times_vectors(const Item *items, const int *term_ptr, const int *round_cell, const Cell *cells,
                    const Unit *units, const Term *terms, const double *values, const INDEX *group_row,
                    const INDEX *base, const double *scale, const int place_words, const int stride, const int column,
                    const int count, const double *__restrict__ x, double *__restrict__ out) {
    extern __shared__ double shared_words[];
    const Item item = items[blockIdx.x];
    const int slices = (item.rows + LANES - 1) / LANES;
    const int warp_units = slices * ((item.count + MEMBERS - 1) / MEMBERS);
    const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    Places *places = reinterpret_cast<Places *>(shared_words);
    Weights *weights = reinterpret_cast<Weights *>(shared_words + place_words);
    int first_term = item.first_term, n_terms = item.terms, first_cell = item.first_cell;
    for (int round = 0; round < item.rounds; ++round) {
        if (round > 0) {
            __syncthreads();
            first_term = term_ptr[item.first_round + round];
            n_terms = term_ptr[item.first_round + round + 1] - first_term;
            first_cell = round_cell[item.first_round + round];
        }
        look_up_terms(item, terms + first_term, n_terms, values, base, scale, places, weights);
        __syncthreads();
        for (int unit = warp; unit < warp_units; unit += THREADS / LANES) {
            const int chunk = unit / slices, row = unit % slices * LANES + lane;
            if (row >= item.rows) continue;
            const INDEX first_row = item.begin + row;
            PLACE at[MEMBERS];
#pragma unroll
            for (int m = 0; m < MEMBERS; ++m) {
                     at[m] = static_cast<PLACE>(row_of(group_row, item, chunk, m) + first_row) * stride + column;
            }
            double total[MEMBERS][VECTORS];
#pragma unroll
            for (int m = 0; m < MEMBERS; ++m) {
#pragma unroll
                     for (int v = 0; v < VECTORS; ++v) total[m][v] = round > 0 && v < count ? out[at[m] + v] : 0.0;
            }
            const Places *own_places = places + chunk * (n_terms + 1);
            const Weights *own_weights = weights + (SCALED ? chunk * (n_terms + 1) : 0);
            const Cell cell = cells[first_cell + unit % slices];
            const Unit *own = units + (static_cast<long long>(cell.first) * LANES + lane);
#pragma unroll 1
            for (int u = 0; u < cell.units; ++u) {
                     const Unit now = own[u * LANES];
#pragma unroll
                     for (int j = 0; j < UNIT; ++j) {
                         const int code = now.word[j / CODES_PER_WORD] >> (j % CODES_PER_WORD * CODE_BITS) & PAD;
                         if (code >= n_terms) continue;
                         const Places place = own_places[code];
                         const Weights weight = own_weights[code];
                         double value[MEMBERS][VECTORS];
#pragma unroll
                         for (int m = 0; m < MEMBERS; ++m) {
                             const double *source = x + (static_cast<PLACE>(place.of[m] + first_row) * stride + column);
#pragma unroll
                             // Dead vectors repeat the last live one, so that they read elements that exist.
                             for (int v = 0; v < VECTORS; ++v) value[m][v] = __ldg(source + min(v, count - 1));
                         }
#pragma unroll
                         for (int m = 0; m < MEMBERS; ++m) {
                             const double factor = weight.of[SCALED ? m : 0];
#pragma unroll
                             for (int v = 0; v < VECTORS; ++v) total[m][v] += factor * value[m][v];
                         }
                     }
            }
#pragma unroll
            for (int m = 0; m < MEMBERS; ++m) {
                     if (chunk * MEMBERS + m >= item.count) continue;
#pragma unroll
                     for (int v = 0; v < VECTORS; ++v) {
                         if (v < count) out[at[m] + v] = total[m][v];
                     }
            }
        }
    }
}
