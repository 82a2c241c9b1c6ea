// Work that makes more work: a queue in which every item comes at most once, drained by blocks in several rounds.
//
// A launch takes the items [BEGIN, END). What a block finds goes to a queue of its own in shared memory, from which it
// goes on for a number of rounds without the host and without the other blocks; what is too much for it, or left over
// after the rounds, goes to the end of the global queue for the next launch. So a chain of n items takes n / rounds
// launches, and a broad front is shared among all blocks. The last block of a launch moves BEGIN and END: the host
// repeats one and the same launch until it sees that BEGIN equals END. Items of many edges are taken by a whole block,
// those of very many by all blocks in the next launch. The order in which items come is not determined.
//
// Macros given by the loader, besides INDEX_BITS:
//   THREADS  threads of a block, at most 256
#include "graph/words.cuh"
#pragma once

enum QueueState { BEGIN, END, TAIL, WIDE_BEGIN, WIDE_END, WIDE_TAIL, ARRIVED, LAUNCHES };

constexpr unsigned LOCAL_ITEMS = 4 * THREADS;
constexpr WORD LIGHT = 64;     // edges that one thread takes
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

// Take up the items of one launch. A visit offers `degree(item)` and `edge(item, k, sink)` for k below the degree.
// Launch: blocks of THREADS threads, any number of them; all threads call.
template <class Visit>
__device__ void drain(const Visit &visit, const Queue &queue, const int rounds) {
    BLOCK_SHARED WORD local[LOCAL_ITEMS];
    BLOCK_SHARED WORD heavy[THREADS];
    BLOCK_SHARED unsigned count, heavy_count;
    BLOCK_SHARED WORD spill;
    WORD *state = queue.state;
    const WORD begin = state[BEGIN], end = state[END], wide_begin = state[WIDE_BEGIN], wide_end = state[WIDE_END];
    if (begin == end && wide_begin == wide_end) return;
    const unsigned t = threadIdx.x;
    if (t == 0) count = heavy_count = 0;
    __syncthreads();
    const Sink sink{queue.items, state + TAIL, local, &count};
    for (WORD h = wide_begin; h < wide_end; ++h) {
        const WORD item = queue.wide[h], degree = visit.degree(item);
        for (WORD k = thread_number(); k < degree; k += static_cast<WORD>(gridDim.x) * THREADS) {
            visit.edge(item, k, sink);
        }
    }
    const WORD share = (end - begin + gridDim.x - 1) / gridDim.x;
    const WORD first = begin + share * blockIdx.x;
    const WORD last = first + share < end ? first + share : end;
    // One turn more than there are tiles, for what the wide items have left in the local queue.
    for (WORD tile = first;; tile += THREADS) {
        const bool is_last = tile >= last;
        WORD item = !is_last && tile + t < last ? queue.items[tile + t] : NONE;
        for (int round = 0;; ++round) {
            const WORD degree = item == NONE ? 0 : visit.degree(item);
            if (degree <= LIGHT) {
                for (WORD k = 0; k < degree; ++k) visit.edge(item, k, sink);
            } else if (degree <= WIDE) {
                heavy[atomicAdd(&heavy_count, 1u)] = item;
            } else {
                queue.wide[atomicAdd(state + WIDE_TAIL, static_cast<WORD>(1))] = item;
            }
            __syncthreads();
            for (unsigned h = 0; h < heavy_count; ++h) {
                const WORD shared_degree = visit.degree(heavy[h]);
                for (WORD k = t; k < shared_degree; k += THREADS) visit.edge(heavy[h], k, sink);
            }
            __syncthreads();
            const unsigned found = count < LOCAL_ITEMS ? count : LOCAL_ITEMS;
            const unsigned kept = round + 1 >= rounds ? 0 : found < THREADS ? found : THREADS;
            item = t < kept ? local[t] : NONE;
            if (t == 0 && found > kept) spill = atomicAdd(state + TAIL, static_cast<WORD>(found - kept));
            __syncthreads();
            for (unsigned i = kept + t; i < found; i += THREADS) queue.items[spill + i - kept] = local[i];
            __syncthreads();
            if (t == 0) count = heavy_count = 0;
            __syncthreads();
            if (kept == 0) break;
        }
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
