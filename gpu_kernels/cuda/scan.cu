// The product by a segmented scan: [BESW10] §II, method M2. All products; the sum from every product to the end of
// its row, a backward inclusive segmented scan; the results at the first entries of the rows.
//
// Macros besides those of common.cuh:
//   VALUE_BITS    8, 16 or 32: width of the numbers of values; 64: plain values
//   SCAN_THREADS  threads of a block that scans a tile: a multiple of 32

#include "common.cuh"

constexpr int ITEMS = 8;
constexpr int SCAN_TILE = SCAN_THREADS * ITEMS;

// products[e] = value of entry e times its element of x. A thread an entry.
extern "C" __global__ void __launch_bounds__(256)
multiply_entries(const INDEX entries, const int *__restrict__ columns, const void *__restrict__ values,
                 const double *__restrict__ table, const double *__restrict__ x, double *__restrict__ products) {
    const INDEX e = static_cast<INDEX>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (e < entries) products[e] = Coded<VALUE_BITS>::at(values, table, e) * __ldg(x + columns[e]);
}

// A sum that goes on to the right where `linked` is not zero.
struct Part {
    double sum;
    int linked;

    __device__ void join(double right_sum, int right_linked) {
        if (linked) {
            sum += right_sum;
            linked = right_linked;
        }
    }
};

// Shared memory has a gap after every ITEMS elements: the threads of a warp then meet no bank twice.
__device__ inline int gapped(int i) { return i + i / ITEMS; }

// Scan every tile of SCAN_TILE elements by itself, backwards, in place; a segment begins where a flag is set. If
// `above` is given, each tile's first result goes there. One block of SCAN_THREADS a tile.
extern "C" __global__ void __launch_bounds__(SCAN_THREADS)
scan_tiles(const INDEX size, const unsigned char *__restrict__ flags, double *values, double *above) {
    BLOCK_SHARED double shared[SCAN_TILE + SCAN_THREADS];
    BLOCK_SHARED unsigned char heads[SCAN_TILE + 1];
    BLOCK_SHARED double warp_sum[SCAN_THREADS / LANES];
    BLOCK_SHARED int warp_linked[SCAN_THREADS / LANES];
    BLOCK_SHARED double right_sum[SCAN_THREADS + 1];
    const INDEX begin = static_cast<INDEX>(blockIdx.x) * SCAN_TILE;
    const int count = size - begin < SCAN_TILE ? static_cast<int>(size - begin) : SCAN_TILE;
    for (int i = threadIdx.x; i < SCAN_TILE; i += SCAN_THREADS) {
        shared[gapped(i)] = i < count ? values[begin + i] : 0.0;
        heads[i] = i < count ? flags[begin + i] : 1;
    }
    // The tile is scanned as if a segment began behind it.
    if (threadIdx.x == 0) heads[SCAN_TILE] = 1;
    __syncthreads();
    const int first = threadIdx.x * ITEMS, lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
    double result[ITEMS];
    Part part{shared[gapped(first + ITEMS - 1)], !heads[first + ITEMS]};
    result[ITEMS - 1] = part.sum;
#pragma unroll
    for (int k = ITEMS - 2; k >= 0; --k) {
        const double own = shared[gapped(first + k)];
        if (heads[first + k + 1]) part = Part{own, 0};
        else part.sum += own;
        result[k] = part.sum;
    }
    for (int distance = 1; distance < LANES; distance *= 2) {
        const double sum = __shfl_down_sync(ALL_LANES, part.sum, distance);
        const int linked = __shfl_down_sync(ALL_LANES, part.linked, distance);
        if (lane + distance < LANES) part.join(sum, linked);
    }
    if (lane == 0) {
        warp_sum[warp] = part.sum;
        warp_linked[warp] = part.linked;
    }
    __syncthreads();
    for (int later = warp + 1; later < SCAN_THREADS / LANES; ++later) part.join(warp_sum[later], warp_linked[later]);
    // From here on part.sum is the result at the thread's first element.
    right_sum[threadIdx.x] = part.sum;
    if (threadIdx.x == 0) right_sum[SCAN_THREADS] = 0.0;
    __syncthreads();
    bool open = true;
#pragma unroll
    for (int k = ITEMS - 1; k >= 0; --k) {
        open = open && !heads[first + k + 1];
        shared[gapped(first + k)] = open ? result[k] + right_sum[threadIdx.x + 1] : result[k];
    }
    if (threadIdx.x == 0 && above != nullptr) above[blockIdx.x] = part.sum;
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += SCAN_THREADS) values[begin + i] = shared[gapped(i)];
}

// Add to the last segment of every tile what follows in the next tile, whose first result is in `above`. A warp a tile.
extern "C" __global__ void __launch_bounds__(SCAN_THREADS)
add_carries(const INDEX size, const unsigned char *__restrict__ flags, const double *__restrict__ above,
            double *values) {
    const INDEX tile = static_cast<INDEX>(blockIdx.x) * (SCAN_THREADS / LANES) + threadIdx.x / LANES;
    const INDEX behind = (tile + 1) * SCAN_TILE;
    if (behind >= size || flags[behind]) return;
    const double carry = above[tile + 1];
    const int lane = threadIdx.x % LANES;
    // 32 elements at a time from the right, until one of them begins a segment.
    for (INDEX i = behind - LANES; i >= behind - SCAN_TILE; i -= LANES) {
        const unsigned begins = __ballot_sync(ALL_LANES, flags[i + lane] != 0);
        // The lane of the rightmost one takes the carry, and those to its right.
        const int from = begins == 0 ? 0 : LANES - 1 - __clz(static_cast<int>(begins));
        if (lane >= from) values[i + lane] += carry;
        if (begins != 0) return;
    }
}

// out[i] = result at the first entry of row i, zero for an empty row. A thread a row.
extern "C" __global__ void __launch_bounds__(256)
take_rows(const INDEX n_rows, const INDEX *__restrict__ row_starts, const double *__restrict__ products,
          double *__restrict__ out) {
    const INDEX i = static_cast<INDEX>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n_rows) out[i] = row_starts[i] < row_starts[i + 1] ? products[row_starts[i]] : 0.0;
}
