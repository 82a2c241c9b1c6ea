// Graphs of decision processes as words: offsets, and transitions with the group in the high bits ([WKB16] §5.1).
#include "common.cuh"
#pragma once

// Everything that atomics touch is unsigned: CUDA has them for 32 and 64 bits.
#if INDEX_BITS == 64
typedef unsigned long long WORD;
#else
typedef unsigned WORD;
#endif

constexpr WORD NONE = ~static_cast<WORD>(0);  // no component yet, no item
constexpr WORD GONE = NONE - 1;               // known to lie in no end component

// A load that a compiler may not keep and the first-level cache may not answer: other blocks change the word.
__device__ inline WORD fresh(const WORD *address) { return *const_cast<const volatile WORD *>(address); }

__device__ inline WORD thread_number() { return static_cast<WORD>(blockIdx.x) * blockDim.x + threadIdx.x; }

// Append the values of the lanes that want it; all lanes of the warp call.
__device__ inline void append(bool wanted, WORD value, WORD *items, WORD *tail) {
    const unsigned votes = __ballot_sync(ALL_LANES, wanted);
    if (votes == 0) return;
    const int lane = threadIdx.x % LANES, leader = __ffs(votes) - 1;
    WORD first = 0;
    if (lane == leader) first = atomicAdd(tail, static_cast<WORD>(__popc(votes)));
    first = __shfl_sync(ALL_LANES, first, leader);
    if (wanted) items[first + __popc(votes & ((1u << lane) - 1))] = value;
}

// Work that makes more work: a queue in which every item comes at most once, drained by blocks in several rounds.
//
// A launch takes the items [BEGIN, END). What a block finds goes to a queue of its own in shared memory, from which it
// goes on for a number of rounds without the host and without the other blocks; what is left over after the rounds, and
// all that it has as soon as that is too much for one block, goes to the end of the global queue for the next launch.
// So a chain of n items takes n / rounds launches, and a broad front is shared among all blocks. The last block of a launch moves BEGIN and END: the host
// repeats one and the same launch until it sees that BEGIN equals END. The lanes of a warp share the edges of its
// items, so that a round takes about as long as one edge; items of many edges are taken by a whole block, those of very
// many by all blocks in the next launch. The order in which items come is not determined.
//
// Macros given by the loader, besides INDEX_BITS:
//   THREADS  threads of a block, whole warps, at most 256

enum QueueState { BEGIN, END, TAIL, WIDE_BEGIN, WIDE_END, WIDE_TAIL, ARRIVED, LAUNCHES };

constexpr unsigned LOCAL_ITEMS = 4 * THREADS;
constexpr unsigned WARPS = THREADS / LANES;
constexpr WORD LIGHT = 256;    // edges of an item that its warp takes
constexpr WORD WIDE = 16384;   // edges beyond which an item is left to all blocks

struct Queue {
    WORD *items, *wide, *state;
};

// Where a visit puts new items.
struct Sink {
    WORD *items, *tail, *local;
    unsigned *count;
    __device__ void push(WORD item) const {
        const unsigned at = atomicAdd(count, 1u);
        if (at < LOCAL_ITEMS) local[at] = item;
        else items[atomicAdd(tail, static_cast<WORD>(1))] = item;
    }
};

// Visit the edges of a warp's items, one item a lane or none (degree 0), an edge a lane at a time. All lanes call.
template <class Visit>
__device__ void share_edges(const Visit &visit, WORD item, unsigned degree, const Sink &sink) {
    const int lane = threadIdx.x % LANES;
    unsigned end = degree;  // edges of this and all lower lanes
    for (int distance = 1; distance < LANES; distance *= 2) {
        const unsigned below = __shfl_sync(ALL_LANES, end, lane < distance ? lane : lane - distance);
        end += lane < distance ? 0 : below;
    }
    const unsigned all = __shfl_sync(ALL_LANES, end, LANES - 1);
    for (unsigned first = 0; first < all; first += LANES) {
        const unsigned k = first + lane;
        int owner = 0;  // the first lane whose end lies beyond k
        for (int step = LANES / 2; step > 0; step /= 2) {
            if (__shfl_sync(ALL_LANES, end, owner + step - 1) <= k) owner += step;
        }
        const WORD own = __shfl_sync(ALL_LANES, item, owner);
        const unsigned begin = __shfl_sync(ALL_LANES, end - degree, owner);
        if (k < all) visit.edge(own, k - begin, sink);
    }
}

// Take up the items of one launch. A visit offers `degree(item)` and `edge(item, k, sink)` for k below the degree.
// Launch: blocks of THREADS threads, any number of them; all threads call.
template <class Visit>
__device__ void drain(const Visit &visit, const Queue &queue, const int rounds) {
    // What one round finds is read in the next one, while that fills the other half; the count of the round before is
    // set back meanwhile. So a round needs one meeting of the block.
    BLOCK_SHARED WORD local[2][LOCAL_ITEMS];
    BLOCK_SHARED WORD heavy[THREADS];
    BLOCK_SHARED unsigned count[3], heavy_count[3];
    BLOCK_SHARED WORD spill;
    WORD *state = queue.state;
    const WORD begin = state[BEGIN], end = state[END], wide_begin = state[WIDE_BEGIN], wide_end = state[WIDE_END];
    if (begin == end && wide_begin == wide_end) return;
    const unsigned t = threadIdx.x;
    // Neighbouring items go to different warps.
    const unsigned place = t % LANES * WARPS + t / LANES;
    if (t < 3) count[t] = heavy_count[t] = 0;
    __syncthreads();
    const Sink first_sink{queue.items, state + TAIL, local[0], count};
    for (WORD h = wide_begin; h < wide_end; ++h) {
        const WORD item = queue.wide[h], degree = visit.degree(item);
        for (WORD k = thread_number(); k < degree; k += static_cast<WORD>(gridDim.x) * THREADS) {
            visit.edge(item, k, first_sink);
        }
    }
    const WORD share = (end - begin + gridDim.x - 1) / gridDim.x;
    const WORD first = begin + share * blockIdx.x;
    const WORD last = first + share < end ? first + share : end;
    unsigned turn = 0;
    for (WORD tile = first;; tile += THREADS) {
        // Only after the last tile the block goes on by itself: before that, there is work for all of them.
        const bool is_last = tile >= last || last - tile <= THREADS;
        WORD item = tile < last && place < last - tile ? queue.items[tile + place] : NONE;
        for (int round = 0;; ++round, ++turn) {
            unsigned *own_count = count + turn % 3, *own_heavy = heavy_count + turn % 3;
            const Sink sink{queue.items, state + TAIL, local[turn % 2], own_count};
            const WORD degree = item == NONE ? 0 : visit.degree(item);
            if (degree > WIDE) queue.wide[atomicAdd(state + WIDE_TAIL, static_cast<WORD>(1))] = item;
            else if (degree > LIGHT) heavy[atomicAdd(own_heavy, 1u)] = item;
            share_edges(visit, item, degree > LIGHT ? 0u : static_cast<unsigned>(degree), sink);
            __syncthreads();
            if (*own_heavy > 0) {
                for (unsigned h = 0; h < *own_heavy; ++h) {
                    const WORD shared_degree = visit.degree(heavy[h]);
                    for (WORD k = t; k < shared_degree; k += THREADS) visit.edge(heavy[h], k, sink);
                }
                __syncthreads();
            }
            const unsigned found = *own_count < LOCAL_ITEMS ? *own_count : LOCAL_ITEMS;
            const unsigned kept = is_last && round + 1 < rounds && found <= THREADS ? found : 0;
            item = place < kept ? sink.local[place] : NONE;
            if (found > kept) {
                if (t == 0) spill = atomicAdd(state + TAIL, static_cast<WORD>(found - kept));
                __syncthreads();
                for (unsigned i = kept + t; i < found; i += THREADS) queue.items[spill + i - kept] = sink.local[i];
            }
            if (t == 0) count[(turn + 2) % 3] = heavy_count[(turn + 2) % 3] = 0;
            if (kept == 0) break;
        }
        ++turn;
        if (is_last) break;
    }
    if (t != 0) return;
    __threadfence();
    if (atomicAdd(state + ARRIVED, static_cast<WORD>(1)) + 1 != gridDim.x) return;
    state[ARRIVED] = 0;
    state[BEGIN] = end;
    state[END] = fresh(state + TAIL);
    state[WIDE_BEGIN] = wide_end;
    state[WIDE_END] = fresh(state + WIDE_TAIL);
    state[LAUNCHES] += 1;
}
