// Products with several vectors at once, with row types cut into tiles; see tiles.cu for the work of a block.
//
// X and out have their vectors side by side: element (i, v) lies at i * stride + v. SHARE neighbouring lanes have a row
// of MEMBERS groups, and each of them two vectors, so that a warp reads whole sectors: the lanes of a row read 16 * SHARE
// bytes side by side. An entry is looked up once for all vectors. Sums are added in the order of tiles.cu, so that every
// column has the bits of the product with that column alone.
//
// Launch: one block of THREADS threads an item; shared memory as `shared_bytes` of gpu_kernels/compressed/tiles.py says, for as many
// members or more. Serves the columns column, ..., column + 2 * SHARE - 1; stride and column are even, and x and out begin
// at multiples of 16 bytes. Rows without a group are left as they are. No atomic additions. x and out must not overlap.
//
// Macros besides those of common.cuh and tile_rows.cuh:
//   MIN_BLOCKS   blocks that registers must leave room for on a multiprocessor
//   SHARE        lanes of a row: 1, 2 or 4

#include "common.cuh"
#include "tile_rows.cuh"

constexpr int ROWS = LANES / SHARE;  // of a warp

struct alignas(16) Pair { double of[2]; };

// A load under a condition that no branch serves, as load_if.
__device__ inline Pair load_pair_if(bool live, const char *address) {
#ifdef HOST_KERNELS
    return live ? *reinterpret_cast<const Pair *>(address) : Pair{};
#else
    Pair value;
    asm("{.reg .pred p; setp.ne.s32 p, %3, 0; mov.f64 %0, 0d0000000000000000; mov.f64 %1, 0d0000000000000000;"
        "@p ld.global.nc.v2.f64 {%0, %1}, [%2];}"
        : "=d"(value.of[0]), "=d"(value.of[1]) : "l"(address), "r"(static_cast<int>(live)));
    return value;
#endif
}

// A store that is the first to leave the cache: elements of x are read again, those of out are not.
__device__ inline void store_pair(char *address, const Pair &value) {
#ifdef HOST_KERNELS
    *reinterpret_cast<Pair *>(address) = value;
#else
    asm volatile("st.global.cs.v2.f64 [%0], {%1, %2};" :: "l"(address), "d"(value.of[0]), "d"(value.of[1]) : "memory");
#endif
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
tiles_times_vectors(const Item *items, const int *term_ptr, const int *round_cell, const Cell *cells,
                    const Unit *units, const Term *terms, const double *values, const INDEX *group_row,
                    const INDEX *base, const double *scale, const int place_words, const int stride, const int column,
                    const double *__restrict__ x, double *__restrict__ out) {
    extern __shared__ double shared_words[];
    const Item item = items[blockIdx.x];
    const int parts = (item.rows + ROWS - 1) / ROWS;
    const int chunks = (item.count + MEMBERS - 1) / MEMBERS;
    const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    Places *places = reinterpret_cast<Places *>(shared_words);
    Weights *weights = reinterpret_cast<Weights *>(shared_words + place_words);
    const int own_column = column + lane % SHARE * 2;
    const char *x_bytes = reinterpret_cast<const char *>(x + own_column);
    char *out_bytes = reinterpret_cast<char *>(out + own_column);
    const INDEX row_bytes = static_cast<INDEX>(stride) * 8;
    int first_term = item.first_term, count = item.terms, first_cell = item.first_cell;
    for (int round = 0; round < item.rounds; ++round) {
        if (round > 0) {
            __syncthreads();
            first_term = term_ptr[item.first_round + round];
            count = term_ptr[item.first_round + round + 1] - first_term;
            first_cell = round_cell[item.first_round + round];
        }
        look_up_terms(item, terms + first_term, count, values, base, scale, places, weights);
        __syncthreads();
        for (int turn = warp; turn < parts * chunks; turn += THREADS / LANES) {
            const int chunk = turn / parts, part = turn % parts;
            const int row = part * ROWS + lane / SHARE;
            const INDEX first_row = item.begin + row;
            Pair total[MEMBERS] = {};
            if (round > 0 && row < item.rows) {
#pragma unroll
                for (int m = 0; m < MEMBERS; ++m) {
                    const char *at = out_bytes
                        + static_cast<long long>(row_of(group_row, item, chunk, m) + first_row) * row_bytes;
                    total[m] = *reinterpret_cast<const Pair *>(at);
                }
            }
            const Places *own_places = places + chunk * (count + 1);
            const Weights *own_weights = weights + (SCALED ? chunk * (count + 1) : 0);
            const Cell cell = cells[first_cell + part / SHARE];
            const Unit *own = units + (static_cast<long long>(cell.first) * LANES + row % LANES);
            Unit ahead{};
            if (cell.units > 0) ahead = own[0];
#pragma unroll 1
            for (int u = 0; u < cell.units; ++u) {
                const Unit now = ahead;
                if (u + 1 < cell.units) ahead = own[(u + 1) * LANES];
                Pair value[UNIT][MEMBERS];
                Weights weight[UNIT];
#pragma unroll
                for (int j = 0; j < UNIT; ++j) {
                    const int code = now.word[j / CODES_PER_WORD] >> (j % CODES_PER_WORD * CODE_BITS) & PAD;
                    const bool live = code < count;
                    const int term = live ? code : count;
                    const Places place = own_places[term];
                    weight[j] = own_weights[term];
#pragma unroll
                    for (int m = 0; m < MEMBERS; ++m) {
                        const char *at = x_bytes + static_cast<long long>(place.of[m] + first_row) * row_bytes;
                        value[j][m] = load_pair_if(live, at);
                    }
                }
#pragma unroll
                for (int j = 0; j < UNIT; ++j) {
#pragma unroll
                    for (int m = 0; m < MEMBERS; ++m) {
                        const double factor = weight[j].of[SCALED ? m : 0];
                        total[m].of[0] += factor * value[j][m].of[0];
                        total[m].of[1] += factor * value[j][m].of[1];
                    }
                }
            }
            if (row >= item.rows) continue;
#pragma unroll
            for (int m = 0; m < MEMBERS; ++m) {
                if (chunk * MEMBERS + m >= item.count) continue;
                char *at = out_bytes
                    + static_cast<long long>(row_of(group_row, item, chunk, m) + first_row) * row_bytes;
                store_pair(at, total[m]);
            }
        }
    }
}
