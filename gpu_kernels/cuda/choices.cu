// Steps of value iteration with the matrices of all choices in tiles.
//
// As in tiles.cu, with one difference: the terms of a tile are put in order by the layer (the choice) that their
// entries belong to, and so are the entries of a row. A *layer segment* is what a slice has of one layer in a round:
// some whole units, the last of which is marked with the layer. A thread adds up segment after segment of its row and
// keeps the best in a register: x is read where it is needed, out is written once, and no product ever lies in memory.
// A row without an entry in a segment does not have the choice. Codes are numbers of terms within their segment.
//
// What a choice is worth by itself depends on the state: row r of the table `gains` has, for L layers,
//   gains[r][l]      of a choice with entries (any number where no state with this r has one),
//   gains[r][L + l]  of a choice without entries, the worst infinity where there is none,
//   gains[r][2 L]    the best of these;
// `codes` names the row of every state, and `factors`[r][l] is what the product is multiplied by. Bit l of `uniform` says
// that gains[r][l] is the same for all r.
//
// Launch: one block of THREADS threads an item; shared memory as `shared_bytes` of gpu_kernels/compressed/tiles.py says. Items may
// be launched in parts.
// Deterministic. In place: nothing but out, the chosen layers and the partial maxima. x and out must not overlap.
//
// Macros besides those of common.cuh, choice.cuh and tile_rows.cuh:
//   MIN_BLOCKS  blocks that registers must leave room for on a multiprocessor
//   GAIN_BITS   0: the table has one row; 8, 16 or 32: width of the codes
//   FACTORS     0 or 1: whether products are multiplied
//   LAYERS      L
//   ROUNDS      0 or 1: whether some tile has several rounds

#include "choice.cuh"
#include "tile_rows.cuh"

// What goes with a unit: the first term of its layer segment in the round; in the last unit of a segment the layer plus
// one as well, and whether it is the last of its slice.
struct Mark {
    unsigned word;

    __device__ int first_term() const { return static_cast<int>(word & 0x7fffu); }
    __device__ bool last() const { return (word & 0x8000u) != 0; }
    __device__ bool ends() const { return word > 0xffffu; }
    __device__ int layer() const { return static_cast<int>(word >> 16) - 1; }
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

// Which slice of an item a warp is at, and for which chunk of its groups.
struct Turn {
    int chunk, slice;

    // Slices beyond the last are those of the next chunks; without a division, which takes longer.
    __device__ void carry(int slices) {
        for (; slice >= slices; slice -= slices) ++chunk;
    }
};

// Let the rows of a thread choose the layer too, whose products are `total`.
__device__ inline void take_layer(const State *state, Best *best, const double *gains, const double *factors,
                                  BITS uniform, int layer, const double *total) {
    // One load for all rows where a layer's gain is the same everywhere.
    const bool same = GAIN_BITS == 0 ||
                      (LAYERS > 32 ? uniform >> layer & 1 : static_cast<unsigned>(uniform) >> layer & 1u) != 0;
    if (same) {
        const double gain = __ldg(gains + layer);
#pragma unroll
        for (int m = 0; m < MEMBERS; ++m) state[m].take(best[m], gain, factors, layer, total[m]);
    } else {
        double gain[MEMBERS];
#pragma unroll
        for (int m = 0; m < MEMBERS; ++m) gain[m] = state[m].gain(gains, layer);
#pragma unroll
        for (int m = 0; m < MEMBERS; ++m) state[m].take(best[m], gain[m], factors, layer, total[m]);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
step_choices(const Item *items, const int *term_ptr, const int *round_cell, const Cell *cells, const Unit *units,
             const Mark *marks, const Term *terms, const double *values, const INDEX *group_row, const INDEX *base,
             const int place_words, const void *codes, const double *gains, const double *factors,
             const BITS uniform, CHOICE_PARAMETERS, const double *__restrict__ x,
             double *__restrict__ out HALO_PARAMETERS) {
    extern __shared__ double shared_words[];
    const Item item = items[blockIdx.x];
    const Choice choice = CHOICE;
    if (ended(choice)) return;
    const Columns columns = COLUMNS;
    const int slices = (item.rows + LANES - 1) / LANES, chunks = (item.count + MEMBERS - 1) / MEMBERS;
    const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    const Unit *lane_units = units + lane;
    Places *places = reinterpret_cast<Places *>(shared_words);
    Weights *weights = reinterpret_cast<Weights *>(shared_words + place_words);
    ChangeMaxima maxima;
    int first_term = item.first_term, count = item.terms, first_cell = item.first_cell;
    const int rounds = ROUNDS ? item.rounds : 1;
    for (int round = 0; round < rounds; ++round) {
        if (round > 0) {
            __syncthreads();
            first_term = term_ptr[item.first_round + round];
            count = term_ptr[item.first_round + round + 1] - first_term;
            first_cell = round_cell[item.first_round + round];
        }
        Turn turn{0, warp};
        turn.carry(slices);
        // Read before the barrier, so that the latencies overlap.
        Cell cell = cells[first_cell + turn.slice];
        Unit ahead{};
        Mark ahead_mark{};
        if (cell.units > 0) {
            ahead = lane_units[static_cast<long long>(cell.first) * LANES];
            ahead_mark = marks[cell.first];
        }
        look_up_terms<true>(item, terms + first_term, count, values, base, nullptr, places, weights, group_row);
        __syncthreads();
        while (turn.chunk < chunks) {
            const int chunk = turn.chunk, row = turn.slice * LANES + lane;
            const INDEX first_row = item.begin + row;
            const Places *own_places = places + chunk * (count + 1);
            // The term that stands for no entry has the first rows of the groups.
            const Places rows = own_places[count];
            State state[MEMBERS];
            Best best[MEMBERS];
#pragma unroll
            for (int m = 0; m < MEMBERS; ++m) {
                // Lanes without a row repeat the first one.
                const INDEX i = rows.of[m] + (row < item.rows ? first_row : item.begin);
                state[m].load(choice, codes, i);
                best[m].start();
                if (round > 0) {
                    best[m].value = out[i];
#if CHOOSE
                    best[m].layer = choice.chosen[i];
#endif
                }
            }
            int at = cell.first;
            bool more = cell.units > 0;
            turn.slice += THREADS / LANES;
            turn.carry(slices);
            if (turn.chunk < chunks) cell = cells[first_cell + turn.slice];
            while (more) {
                double total[MEMBERS];
                Mark mark = ahead_mark;
                Unit now = ahead;
                // A row's entries fill its places from the first one on.
                const bool has = (now.word[0] & PAD) != PAD;
                // The next unit, of whatever slice; one more than there are lies at the end.
                ++at;
                ahead = lane_units[static_cast<long long>(at) * LANES];
                ahead_mark = marks[at];
                add_unit<true>(now, mark.first_term(), PAD, count, own_places, weights, columns, first_row, total);
#pragma unroll 1
                while (!mark.ends()) {
                    mark = ahead_mark;
                    now = ahead;
                    ++at;
                    ahead = lane_units[static_cast<long long>(at) * LANES];
                    ahead_mark = marks[at];
                    add_unit<false>(now, mark.first_term(), PAD, count, own_places, weights, columns, first_row, total);
                }
                if (has) take_layer(state, best, gains, factors, uniform, mark.layer(), total);
                more = !mark.last();
            }
            if (turn.chunk < chunks && cell.units > 0) {
                ahead = lane_units[static_cast<long long>(cell.first) * LANES];
                ahead_mark = marks[cell.first];
            }
            if (row >= item.rows) continue;
            // Dead members repeat the last live one here, too: they write what it writes.
            if (round + 1 < rounds) {
#pragma unroll
                for (int m = 0; m < MEMBERS; ++m) {
                    const INDEX i = rows.of[m] + first_row;
                    out[i] = best[m].value;
#if CHOOSE
                    choice.chosen[i] = best[m].layer;
#endif
                }
                continue;
            }
            // Choices without entries are looked at last, so that nothing waits for them before the products; of equal
            // ones they win.
            Best own_best[MEMBERS];
            double old[MEMBERS];
#pragma unroll
            for (int m = 0; m < MEMBERS; ++m) {
                own_best[m] = state[m].begin(gains);
                old[m] = old_value(x, rows.of[m] + first_row);
            }
#pragma unroll
            for (int m = 0; m < MEMBERS; ++m) {
#if CHOOSE
                own_best[m].take(best[m].value, best[m].layer);
#else
                own_best[m].take(best[m].value, 0);
#endif
                finish_choice(choice, rows.of[m] + first_row, own_best[m], old[m], out, maxima);
            }
        }
    }
#if MEASURE
    maxima.combine(choice.changes);
#endif
}

// The same for the rows that no group covers. One thread a row.
extern "C" __global__ void __launch_bounds__(THREADS)
step_choice_gaps(const INDEX *begin, const INDEX *ptr, const INDEX gaps, const void *codes, const double *gains,
                 CHOICE_PARAMETERS, const double *__restrict__ x, double *__restrict__ out) {
    const Choice choice = CHOICE;
    if (ended(choice)) return;
    const INDEX number = static_cast<INDEX>(blockIdx.x) * THREADS + threadIdx.x;
    ChangeMaxima maxima;
    if (number < ptr[gaps]) {
        const INDEX i = row_in_gaps(begin, ptr, gaps, number);
        State state;
        state.load(choice, codes, i);
        finish_choice(choice, i, state.begin(gains), old_value(x, i), out, maxima);
    }
#if MEASURE
    maxima.combine(choice.changes);
#endif
}

// Write which layers have entries in each row that some group covers: bit l of marks[row] for layer l < 64. Launch: one
// block an item, any number of threads.
extern "C" __global__ void __launch_bounds__(256)
mark_entries(const Item *items, const int *round_cell, const Cell *cells, const CODE *codes, const Mark *marks,
             const INDEX *group_row, BITS *layers) {
    const Item item = items[blockIdx.x];
    for (int row = threadIdx.x; row < item.rows; row += blockDim.x) {
        BITS found = 0;
        for (int round = item.first_round; round < item.first_round + item.rounds; ++round) {
            const Cell cell = cells[round_cell[round] + row / LANES];
            bool has = false;
            for (int unit = cell.first; unit < cell.first + cell.units; ++unit) {
                has = has || codes[(static_cast<long long>(unit) * LANES + row % LANES) * UNIT] != PAD;
                if (!marks[unit].ends()) continue;
                if (has) found |= 1ULL << marks[unit].layer();
                has = false;
            }
        }
        for (int m = 0; m < item.count; ++m) layers[group_row[item.first_group + m] + item.begin + row] = found;
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
        finish_choice(choice, i, best, old_value(x, i), out, maxima);
    }
#if MEASURE
    maxima.combine(choice.changes);
#endif
}
