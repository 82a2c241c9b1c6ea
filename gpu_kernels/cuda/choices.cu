// Steps of value iteration with the matrices of all choices in tiles.
//
// As in tiles.cu, with one difference: the terms of a tile are put in order by the layer (the choice) that their
// entries belong to. A *pass* is one layer's terms in a tile; a round has the tables of as many passes as fit into
// shared memory. A thread adds up pass after pass of its row and keeps the best in a register: x is read where it is
// needed, out is written once, and no product ever lies in memory. Rows without an entry in a pass are passed over.
//
// What a choice is worth by itself depends on the state: row r of the table `gains` has, for L layers,
//   gains[r][l]      of a choice with entries (any number where no state with this r has one),
//   gains[r][L + l]  of a choice without entries, the worst infinity where there is none,
//   gains[r][2 L]    the best of these;
// `codes` names the row of every state, and `factors`[r][l] is what the product is multiplied by. Bit l of `uniform` says
// that gains[r][l] is the same for all r.
//
// Launch: one block of THREADS threads an item; shared memory as `shared_bytes` of gpu_kernels/choices.py says.
// Deterministic. In place: nothing but out, the chosen layers and the partial maxima. x and out must not overlap.
//
// Macros besides those of common.cuh, choice.cuh and tile_rows.cuh:
//   MIN_BLOCKS  blocks that registers must leave room for on a multiprocessor
//   GAIN_BITS   0: the table has one row; 8, 16 or 32: width of the codes
//   FACTORS     0 or 1: whether products are multiplied
//   LAYERS      L

#include "choice.cuh"
#include "tile_rows.cuh"

struct alignas(16) Pass {
    int layer;
    int first_term;
    int terms;
    int first_cell;  // a cell is a slice in a pass
};

constexpr int GAINS = 2 * LAYERS + 1;

template <int WIDTH>
struct Codes {
    static __device__ long long at(const void *codes, INDEX i) {
        return __ldg(static_cast<const unsigned char *>(codes) + i);
    }
};
template <>
struct Codes<0> {
    static __device__ long long at(const void *, INDEX) { return 0; }
};
template <>
struct Codes<16> {
    static __device__ long long at(const void *codes, INDEX i) {
        return __ldg(static_cast<const unsigned short *>(codes) + i);
    }
};
template <>
struct Codes<32> {
    static __device__ long long at(const void *codes, INDEX i) {
        return __ldg(static_cast<const unsigned *>(codes) + i);
    }
};

// The operands of a state, and the best of its choices that have no entries.
struct State {
    int code;
#if POLICY
    LAYER only;
#endif

    __device__ void load(const Choice &choice, const void *codes, INDEX i) {
        code = static_cast<int>(Codes<GAIN_BITS>::at(codes, i));
#if POLICY
        only = __ldg(choice.policy + i);
#endif
    }

    __device__ const double *row(const double *table, int width) const {
        return table + static_cast<long long>(code) * width;
    }

    __device__ Best begin(const double *gains) const {
        const double *own = row(gains, GAINS);
        Best best;
#if POLICY
        best.value = only < LAYERS ? __ldg(own + LAYERS + only) : no_choice();
#else
        best.value = __ldg(own + 2 * LAYERS);
#endif
#if CHOOSE
        best.layer = NO_CHOICE;
        for (int l = LAYERS; l-- > 0;) {
            const double gain = __ldg(own + LAYERS + l);
            if (gain == best.value && better(gain, no_choice())) best.layer = static_cast<LAYER>(l);
        }
#endif
        return best;
    }

    __device__ double gain(const double *gains, int layer) const { return __ldg(row(gains, GAINS) + layer); }

    __device__ void take(Best &best, double gain, const double *factors, int layer, double total) const {
#if POLICY
        if (only != layer) return;
#endif
#if FACTORS
        total *= __ldg(row(factors, LAYERS) + layer);
#endif
        best.take(total + gain, static_cast<LAYER>(layer));
    }
};

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
step_choices(const Item *items, const int *round_pass, const Pass *passes, const Cell *cells, const Unit *units,
             const Term *terms, const double *values, const INDEX *group_row, const INDEX *base,
             const int place_words, const void *codes, const double *gains, const double *factors,
             const BITS uniform, CHOICE_PARAMETERS, const double *__restrict__ x, double *__restrict__ out) {
    extern __shared__ double shared_words[];
    const Item item = items[blockIdx.x];
    const Choice choice = CHOICE;
    if (ended(choice)) return;
    const int slices = (item.rows + LANES - 1) / LANES;
    const int warp_units = slices * ((item.count + MEMBERS - 1) / MEMBERS);
    const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    Places *places = reinterpret_cast<Places *>(shared_words);
    Weights *weights = reinterpret_cast<Weights *>(shared_words + place_words);
    ChangeMaxima maxima;
    for (int round = 0; round < item.rounds; ++round) {
        const int first = round_pass[item.first_round + round], end = round_pass[item.first_round + round + 1];
        const int first_term = first < end ? passes[first].first_term : 0;
        const int count = first < end ? passes[end - 1].first_term + passes[end - 1].terms - first_term : 0;
        if (round > 0) __syncthreads();
        look_up_terms(item, terms + first_term, count, values, base, nullptr, places, weights);
        __syncthreads();
        for (int unit = warp; unit < warp_units; unit += THREADS / LANES) {
            const int chunk = unit / slices, slice = unit % slices, row = slice * LANES + lane;
            if (row >= item.rows) continue;
            const INDEX first_row = item.begin + row;
            const Unit *lane_units = units + lane;
            Cell cell{};
            Unit ahead{};
            if (first < end) cell = cells[passes[first].first_cell + slice];
            if (cell.units > 0) ahead = lane_units[static_cast<long long>(cell.first) * LANES];
            State state[MEMBERS];
            Best best[MEMBERS];
#pragma unroll
            for (int m = 0; m < MEMBERS; ++m) {
                const INDEX i = row_of(group_row, item, chunk, m) + first_row;
                state[m].load(choice, codes, i);
                best[m] = state[m].begin(gains);
                if (round > 0) {
                    best[m].value = out[i];
#if CHOOSE
                    best[m].layer = choice.chosen[i];
#endif
                }
            }
            for (int p = first; p < end; ++p) {
                const Pass pass = passes[p];
                const Cell own = cell;
                const Unit own_ahead = ahead;
                // Read before the products, so that the latencies overlap.
                if (p + 1 < end) {
                    cell = cells[passes[p + 1].first_cell + slice];
                    if (cell.units > 0) ahead = lane_units[static_cast<long long>(cell.first) * LANES];
                }
                // A row's entries fill its places from the first one on.
                if (own.units == 0 || (own_ahead.word[0] & PAD) == PAD) continue;
                double total[MEMBERS];
#pragma unroll
                for (int m = 0; m < MEMBERS; ++m) total[m] = 0.0;
                const int skipped = chunk * (count + 1) + pass.first_term - first_term;
                add_entries<true>(lane_units + static_cast<long long>(own.first) * LANES, own.units, own_ahead,
                                  pass.terms, places + skipped, weights + (pass.first_term - first_term), x,
                                  first_row, total);
                // One load for all rows where a layer's gain is the same everywhere.
                if (uniform >> pass.layer & 1) {
                    const double gain = __ldg(gains + pass.layer);
#pragma unroll
                    for (int m = 0; m < MEMBERS; ++m) state[m].take(best[m], gain, factors, pass.layer, total[m]);
                } else {
#pragma unroll
                    for (int m = 0; m < MEMBERS; ++m) {
                        state[m].take(best[m], state[m].gain(gains, pass.layer), factors, pass.layer, total[m]);
                    }
                }
            }
#pragma unroll
            for (int m = 0; m < MEMBERS; ++m) {
                if (chunk * MEMBERS + m >= item.count) continue;
                const INDEX i = row_of(group_row, item, chunk, m) + first_row;
                if (round + 1 == item.rounds) {
                    finish_choice(choice, i, best[m], x, out, maxima);
                    continue;
                }
                out[i] = best[m].value;
#if CHOOSE
                choice.chosen[i] = best[m].layer;
#endif
            }
        }
    }
#if MEASURE
    maxima.combine(choice.changes);
#endif
}

// The same for the rows that no group covers. Gap g has the rows begin[g], ..., and ptr[g] rows lie in gaps before
// it. One thread a row.
extern "C" __global__ void __launch_bounds__(THREADS)
step_choice_gaps(const INDEX *begin, const INDEX *ptr, const INDEX gaps, const void *codes, const double *gains,
                 CHOICE_PARAMETERS, const double *__restrict__ x, double *__restrict__ out) {
    const Choice choice = CHOICE;
    if (ended(choice)) return;
    const INDEX number = static_cast<INDEX>(blockIdx.x) * THREADS + threadIdx.x;
    ChangeMaxima maxima;
    if (number < ptr[gaps]) {
        INDEX low = 0, high = gaps;  // ptr[low] <= number < ptr[high]
        while (high - low > 1) {
            const INDEX middle = low + (high - low) / 2;
            if (ptr[middle] <= number) low = middle;
            else high = middle;
        }
        const INDEX i = begin[low] + number - ptr[low];
        State state;
        state.load(choice, codes, i);
        finish_choice(choice, i, state.begin(gains), x, out, maxima);
    }
#if MEASURE
    maxima.combine(choice.changes);
#endif
}

// Write which layers have entries in each row that some group covers: bit l of marks[row] for layer l < 64. Launch: one
// block an item, any number of threads.
extern "C" __global__ void __launch_bounds__(256)
mark_entries(const Item *items, const int *round_pass, const Pass *passes, const Cell *cells, const CODE *codes,
             const INDEX *group_row, BITS *marks) {
    const Item item = items[blockIdx.x];
    const int end = round_pass[item.first_round + item.rounds];
    for (int row = threadIdx.x; row < item.rows; row += blockDim.x) {
        BITS mark = 0;
        for (int p = round_pass[item.first_round]; p < end; ++p) {
            const Cell cell = cells[passes[p].first_cell + row / LANES];
            if (cell.units == 0) continue;
            const long long unit = static_cast<long long>(cell.first) * LANES + row % LANES;
            if (codes[unit * UNIT] != PAD) mark |= 1ULL << passes[p].layer;
        }
        for (int m = 0; m < item.count; ++m) marks[group_row[item.first_group + m] + item.begin + row] = mark;
    }
}

// out = scale * out + shape, and the differences to x, for rows whose best has been made before. One thread a row, in a
// loop over the grid.
extern "C" __global__ void __launch_bounds__(256)
finish_choices(const INDEX n_rows, CHOICE_PARAMETERS, const double *__restrict__ x, double *__restrict__ out) {
    const Choice choice = CHOICE;
    if (ended(choice)) return;
    ChangeMaxima maxima;
    const INDEX stride = static_cast<INDEX>(gridDim.x) * blockDim.x;
    for (INDEX i = static_cast<INDEX>(blockIdx.x) * blockDim.x + threadIdx.x; i < n_rows; i += stride) {
        Best best;
        best.value = out[i];
#if CHOOSE
        best.layer = choice.chosen[i];
#endif
        finish_choice(choice, i, best, x, out, maxima);
    }
#if MEASURE
    maxima.combine(choice.changes);
#endif
}
