// Products and relaxation steps with row types cut into tiles.
//
// A tile is up to some hundreds of consecutive rows of a row type; its entries are numbers of terms (slot, shift,
// value). An item is a tile with up to some dozens of groups of its type. A block works off one item:
//
//   1. for every term of the tile and every group of the item, it puts into shared memory where in x the term
//      lies (column base of the slot plus shift) and what it weighs (value times the scale of the slot);
//   2. every warp takes slices of 32 rows, a lane a row, for MEMBERS groups at once: it reads a term number,
//      looks it up once and uses it for all MEMBERS groups. The frequent terms come first, so that most lanes
//      of a warp have the same term at the same position and read neighbouring elements of x;
//   3. each row is written once, relaxed on the way.
//
// Launch: one block of THREADS threads an item; shared memory as `shared_bytes` of gpu_kernels/compressed/tiles.py says.  Items may
// be launched in parts, one after the other.
// No atomic additions: the result does not depend on the order of the blocks. In place: nothing but out and
// the partial maxima of the change. x and out must not overlap.
// Source: the algorithm is this project's; the injected submatrices are those of [Tealdi13] §4.4.
//
// Macros besides those of common.cuh, relax.cuh and tile_rows.cuh:
//   MIN_BLOCKS   blocks that registers must leave room for on a multiprocessor

#include "common.cuh"
#include "relax.cuh"
#include "tile_rows.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
step_tiles(const Item *items, const int *term_ptr, const int *round_cell, const Cell *cells, const Unit *units,
           const Term *terms, const double *values, const INDEX *group_row, const INDEX *base, const double *scale,
           const int place_words, STEP_PARAMETERS, const REAL *__restrict__ x,
           REAL *__restrict__ out HALO_PARAMETERS) {
    extern __shared__ double shared_words[];
    const Item item = items[blockIdx.x];
    const Step step = STEP;
    if (ended(step)) return;
    const int slices = (item.rows + LANES - 1) / LANES;
    const int warp_units = slices * ((item.count + MEMBERS - 1) / MEMBERS);
    const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    Places *places = reinterpret_cast<Places *>(shared_words);
    Weights *weights = reinterpret_cast<Weights *>(shared_words + place_words);
    ChangeMaxima maxima;
    int first_term = item.first_term, count = item.terms, first_cell = item.first_cell;
    for (int round = 0; round < item.rounds; ++round) {
        if (round > 0) {
            __syncthreads();
            first_term = term_ptr[item.first_round + round];
            count = term_ptr[item.first_round + round + 1] - first_term;
            first_cell = round_cell[item.first_round + round];
        }
        // Read before the barrier, so that the latencies overlap.
        Cell cell = cells[first_cell + min(warp % slices, slices - 1)];
        Unit ahead{};
        if (cell.units > 0) ahead = units[static_cast<long long>(cell.first) * LANES + lane];
        look_up_terms(item, terms + first_term, count, values, base, scale, places, weights);
        __syncthreads();
        for (int unit = warp; unit < warp_units; unit += THREADS / LANES) {
            const int chunk = unit / slices, row = unit % slices * LANES + lane;
            const INDEX first_row = item.begin + row;
            REAL total[MEMBERS];
#pragma unroll
            for (int m = 0; m < MEMBERS; ++m) total[m] = REAL(0);
            if (round > 0 && row < item.rows) {
#pragma unroll
                for (int m = 0; m < MEMBERS; ++m) total[m] = out[row_of(group_row, item, chunk, m) + first_row];
            }
            const Unit *own = units + (static_cast<long long>(cell.first) * LANES + lane);
            const int own_units = cell.units;
            const Unit own_ahead = ahead;
            const int next = unit + THREADS / LANES;
            if (next < warp_units) cell = cells[first_cell + next % slices];
            const Places *own_places = places + chunk * (count + 1);
            const Weights *own_weights = weights + (SCALED ? chunk * (count + 1) : 0);
            add_entries(own, own_units, own_ahead, count, own_places, own_weights, COLUMNS, first_row, total);
            if (next < warp_units && cell.units > 0) ahead = units[static_cast<long long>(cell.first) * LANES + lane];
            if (row >= item.rows) continue;
            // Not before the products: the registers are needed there.
            INDEX at[MEMBERS];
#pragma unroll
            for (int m = 0; m < MEMBERS; ++m) at[m] = row_of(group_row, item, chunk, m) + first_row;
            if (round + 1 < item.rounds) {
#pragma unroll
                for (int m = 0; m < MEMBERS; ++m) {
                    if (chunk * MEMBERS + m < item.count) out[at[m]] = total[m];
                }
                continue;
            }
            Operands operands[MEMBERS];
#pragma unroll
            for (int m = 0; m < MEMBERS; ++m) operands[m].load(step, at[m], x);
#pragma unroll
            for (int m = 0; m < MEMBERS; ++m) {
                if (chunk * MEMBERS + m < item.count) finish_row(step, operands[m], at[m], total[m], out, maxima);
            }
        }
    }
#if MODE != 0
    maxima.combine(step.changes);
#endif
}

// The same step for the rows that no group covers; their product is zero. One thread a row.
extern "C" __global__ void __launch_bounds__(THREADS)
step_gaps(const INDEX *begin, const INDEX *ptr, const INDEX gaps, STEP_PARAMETERS, const REAL *__restrict__ x,
          REAL *__restrict__ out) {
    const Step step = STEP;
    if (ended(step)) return;
    const INDEX number = static_cast<INDEX>(blockIdx.x) * THREADS + threadIdx.x;
    ChangeMaxima maxima;
    if (number < ptr[gaps]) {
        const INDEX i = row_in_gaps(begin, ptr, gaps, number);
        Operands operands;
        operands.load(step, i, x);
        finish_row(step, operands, i, 0.0, out, maxima);
    }
#if MODE != 0
    maxima.combine(step.changes);
#endif
}
