// Products with row-compressed matrices in tiles of equally many entries.
//
// tile_rows   first row that begins in every tile or later; at the end the number of rows
// row_starts  first entry of every row, and the end
// columns     column of every entry
// values      value of every entry, or its number in `table`
// leads       what every tile adds to the row that began before it
//
// Macros besides those of common.cuh:
//   VALUE_BITS  8, 16 or 32: width of the numbers of values; 64: plain values

#include "common.cuh"
#include "gather.cuh"

constexpr int STREAM_THREADS = 256;
constexpr int STREAM_TILE = 2048;
constexpr int ITEMS = STREAM_TILE / STREAM_THREADS;
static_assert(ITEMS % AHEAD == 0);

// out[i] = the sum over the entries that row i has in the tile where it begins; leads = the sums over the entries
// before a tile's first row. One block a tile; products go to shared memory, then groups of threads add up rows, the
// larger the fewer rows there are. Deterministic.
extern "C" __global__ void __launch_bounds__(STREAM_THREADS)
multiply_tiles(const INDEX entries, const INDEX *__restrict__ tile_rows, const INDEX *__restrict__ row_starts,
               const int *__restrict__ columns, const void *__restrict__ values, const double *__restrict__ table,
               const double *__restrict__ x, double *__restrict__ out, double *__restrict__ leads) {
    BLOCK_SHARED double products[STREAM_TILE];
    const INDEX begin = static_cast<INDEX>(blockIdx.x) * STREAM_TILE;
    const int count = entries - begin < STREAM_TILE ? static_cast<int>(entries - begin) : STREAM_TILE;
    // Asked for before the products, so that the latencies overlap.
    const INDEX first_row = tile_rows[blockIdx.x];
    const INDEX pieces = tile_rows[blockIdx.x + 1] - first_row + 1;
    for (int item = 0; item < ITEMS; item += AHEAD) {
        Gather gather;
#pragma unroll
        for (int k = 0; k < AHEAD; ++k) {
            const int i = (item + k) * STREAM_THREADS + threadIdx.x;
            const int column = stream_if(i < count, columns + begin + i);
            gather.column[k] = i < count ? column : -1;
            gather.stored[k] = stream_if(i < count, static_cast<const STORED *>(values) + begin + i);
        }
        double product[AHEAD];
        gather.products(table, x, product);
#pragma unroll
        for (int k = 0; k < AHEAD; ++k) products[(item + k) * STREAM_THREADS + threadIdx.x] = product[k];
    }
    __syncthreads();
    int group = 1;
    while (group < LANES && 2 * group * pieces <= STREAM_THREADS) group *= 2;
    const int lane = threadIdx.x % group;
    // Piece 0 is the lead, piece p the row first_row + p - 1.
    for (INDEX round = 0; round < pieces; round += STREAM_THREADS / group) {
        const INDEX piece = round + threadIdx.x / group, row = first_row + piece - 1;
        double total = 0.0;
        if (piece < pieces) {
            const int from = piece == 0 ? 0 : static_cast<int>(row_starts[row] - begin);
            const INDEX end = row_starts[row + 1] - begin;
            const int to = end < count ? static_cast<int>(end) : count;
            for (int i = from + lane; i < to; i += group) total += products[i];
        }
        // All threads take part, those without a piece too.
        for (int distance = group / 2; distance > 0; distance /= 2) {
            total += __shfl_xor_sync(ALL_LANES, total, distance);
        }
        if (lane == 0 && piece < pieces) {
            if (piece == 0) leads[blockIdx.x] = total;
            else out[row] = total;
        }
    }
}

// Add to every row that goes on into later tiles what these have of it. A warp a tile; the one of the first later
// tile adds up all of them.
extern "C" __global__ void __launch_bounds__(STREAM_THREADS)
add_leads(const INDEX tiles, const INDEX *__restrict__ tile_rows, const INDEX *__restrict__ row_starts,
          const double *__restrict__ leads, double *__restrict__ out) {
    const INDEX tile = static_cast<INDEX>(blockIdx.x) * (STREAM_THREADS / LANES) + threadIdx.x / LANES;
    if (tile == 0 || tile >= tiles) return;
    const INDEX row = tile_rows[tile] - 1, rest = row_starts[row + 1] - tile * STREAM_TILE;
    if (rest <= 0 || row < tile_rows[tile - 1]) return;
    const INDEX end = tile + (rest + STREAM_TILE - 1) / STREAM_TILE;
    const int lane = threadIdx.x % LANES;
    double total = 0.0;
    for (INDEX t = tile + lane; t < end; t += LANES) total += leads[t];
    for (int distance = LANES / 2; distance > 0; distance /= 2) {
        total += __shfl_xor_sync(ALL_LANES, total, distance);
    }
    if (lane == 0) out[row] += total;
}
