// Components by queues and by names: trimming, the component of one pivot, greatest names over edges that are left.
#include "graph/words.cuh"

// Trimming by counting: states without predecessors or without successors among what remains are components alone.

// Every removed state takes itself from the counts of its neighbours, both ways; a count that comes to zero removes.
struct TrimVisit {
    const WORD *offsets, *trans, *back_offsets, *back_trans;
    WORD mask, *in_count, *out_count, *component;
    __device__ WORD degree(WORD v) const {
        return offsets[v + 1] - offsets[v] + back_offsets[v + 1] - back_offsets[v];
    }
    __device__ void edge(WORD v, WORD k, const Sink &sink) const {
        const WORD ahead = offsets[v + 1] - offsets[v];
        const bool is_ahead = k < ahead;
        const WORD w = (is_ahead ? trans[offsets[v] + k] : back_trans[back_offsets[v] + k - ahead]) & mask;
        // Counts of states that have a component, or are not looked at, mean nothing and may change.
        if (w == v || atomicAdd((is_ahead ? in_count : out_count) + w, NONE) != 1) return;  // NONE is minus one
        if (atomicCAS(component + w, NONE, w) == NONE) sink.push(w);
    }
};

// Count predecessors and successors among the states without a component, loops left out, and put the states that have
// none into the queue, as components of their own. listed: the states to look at, nullptr for all; n: how many. One
// thread a listed state, whole warps. Whole says that no state has a component yet, so that targets need not be asked.
extern "C" __global__ void __launch_bounds__(256)
seed_trim(const WORD n, const WORD *listed, const int whole, const WORD mask, const WORD *offsets, const WORD *trans,
          const WORD *back_offsets, const WORD *back_trans, WORD *in_count, WORD *out_count, const WORD *component,
          WORD *items, WORD *state) {
    const WORD i = thread_number();
    const WORD v = i < n ? (listed == nullptr ? i : listed[i]) : NONE;
    WORD before = 0, after = 0;
    if (v != NONE) {
        for (WORD e = offsets[v]; e < offsets[v + 1]; ++e) {
            const WORD w = trans[e] & mask;
            after += w != v && (whole || component[w] == NONE);
        }
        if (whole) {
            before = back_offsets[v + 1] - back_offsets[v] - (offsets[v + 1] - offsets[v] - after);
        } else {
            for (WORD e = back_offsets[v]; e < back_offsets[v + 1]; ++e) {
                const WORD w = back_trans[e] & mask;
                before += w != v && component[w] == NONE;
            }
        }
        in_count[v] = before;
        out_count[v] = after;
    }
    append(v != NONE && (before == 0 || after == 0), v, items, state + TAIL);
}

// Make the seeds components and open the queue. One thread a listed state.
extern "C" __global__ void __launch_bounds__(256)
open_trim(const WORD *items, WORD *state, WORD *component) {
    const WORD count = state[TAIL];
    for (WORD i = thread_number(); i < count; i += static_cast<WORD>(gridDim.x) * blockDim.x) {
        component[items[i]] = items[i];
    }
    if (thread_number() == 0) state[END] = count;
}

// One launch of the queue; see words.cuh.
extern "C" __global__ void __launch_bounds__(256)
drain_trim(const WORD mask, const WORD *offsets, const WORD *trans, const WORD *back_offsets, const WORD *back_trans,
           WORD *in_count, WORD *out_count, WORD *component, WORD *items, WORD *wide, WORD *state, const int rounds) {
    drain(TrimVisit{offsets, trans, back_offsets, back_trans, mask, in_count, out_count, component},
          Queue{items, wide, state}, rounds);
}

// Count the transitions of every state to other states. One thread a state.
extern "C" __global__ void __launch_bounds__(256)
count_others(const WORD n, const WORD mask, const WORD *offsets, const WORD *trans, WORD *counts) {
    const WORD v = thread_number();
    if (v >= n) return;
    WORD others = 0;
    for (WORD e = offsets[v]; e < offsets[v + 1]; ++e) others += (trans[e] & mask) != v;
    counts[v] = others;
}

// One forward and one backward search together, by a queue: the component of a pivot ([WKB16] §2.2, one step).

constexpr unsigned AHEAD = 1, BACK = 2;

// An item is twice a state, plus one for the backward search. Marks of states that take no part have both bits.
struct ReachVisit {
    const WORD *offsets, *trans, *back_offsets, *back_trans;
    WORD mask;
    unsigned *marks;
    __device__ WORD degree(WORD item) const {
        const WORD v = item >> 1;
        return item & 1 ? back_offsets[v + 1] - back_offsets[v] : offsets[v + 1] - offsets[v];
    }
    __device__ void edge(WORD item, WORD k, const Sink &sink) const {
        const WORD v = item >> 1, side = item & 1;
        const WORD w = (side ? back_trans[back_offsets[v] + k] : trans[offsets[v] + k]) & mask;
        const unsigned bit = side ? BACK : AHEAD;
        // A mark seen stays; a mark not seen is asked for again by the atomic.
        if (marks[w] & bit) return;
        if (!(atomicOr(marks + w, bit) & bit)) sink.push(2 * w + side);
    }
};

// Marks: both bits for states that have a component. One thread a state; the pivot's items stand in the queue.
extern "C" __global__ void __launch_bounds__(256)
mark_idle(const WORD n, const WORD *component, const WORD *pivot, unsigned *marks, WORD *items, WORD *state) {
    const WORD v = thread_number();
    if (v < n) marks[v] = component[v] != NONE || v == *pivot ? AHEAD | BACK : 0;
    if (v != 0) return;
    items[0] = 2 * *pivot;
    items[1] = 2 * *pivot + 1;
    state[END] = state[TAIL] = 2;
}

// One launch of the queue; see words.cuh.
extern "C" __global__ void __launch_bounds__(256)
drain_reach(const WORD mask, const WORD *offsets, const WORD *trans, const WORD *back_offsets, const WORD *back_trans,
            unsigned *marks, WORD *items, WORD *wide, WORD *state, const int rounds) {
    drain(ReachVisit{offsets, trans, back_offsets, back_trans, mask, marks}, Queue{items, wide, state}, rounds);
}

// What both searches reached is the pivot's component. One thread a state.
extern "C" __global__ void __launch_bounds__(256)
close_reach(const WORD n, const unsigned *marks, const WORD *pivot, WORD *component) {
    const WORD v = thread_number();
    if (v < n && component[v] == NONE && marks[v] == (AHEAD | BACK)) component[v] = *pivot;
}

// Components by greatest names: every state learns the greatest state that reaches it and that it reaches.
//
// States where the two agree have found their component; edges between states that disagree in either lie in none.
// Propagation goes over edges, and takes a short cut besides: what reaches my greatest predecessor reaches me.

// Each listed state starts with itself. One thread a listed state.
extern "C" __global__ void __launch_bounds__(256)
start_names(const WORD n, const WORD *listed, WORD *before, WORD *after) {
    const WORD i = thread_number();
    if (i < n) before[listed[i]] = after[listed[i]] = listed[i];
}

// Write the edges between states without a component; first[i] is where those of listed[i] begin. One thread a listed
// state; there are exactly as many edges as were counted.
extern "C" __global__ void __launch_bounds__(256)
list_edges(const WORD n, const WORD *listed, const WORD *first, const WORD mask, const WORD *offsets, const WORD *trans,
           const WORD *component, WORD *sources, WORD *targets) {
    const WORD i = thread_number();
    if (i >= n) return;
    const WORD v = listed[i];
    WORD to = first[i];
    for (WORD e = offsets[v]; e < offsets[v + 1]; ++e) {
        const WORD w = trans[e] & mask;
        if (w == v || component[w] != NONE) continue;
        sources[to] = v;
        targets[to++] = w;
    }
}

__device__ inline bool raise(WORD *name, WORD own, WORD offered) {
    return offered > own && atomicMax(name, offered) < offered;
}

// One sweep over all edges; a block repeats its tile until it is stable, or for a number of rounds. Nothing happens if
// the sweep before changed nothing. changed[step] is set to 1. Launch: blocks of 256 threads, in a loop over the grid.
extern "C" __global__ void __launch_bounds__(256)
propagate_names(const WORD n_edges, const WORD *sources, const WORD *targets, WORD *before, WORD *after,
                unsigned *changed, const int step, const int rounds) {
    if (step > 0 && changed[step - 1] == 0) return;
    int any = 0;
    for (WORD tile = static_cast<WORD>(blockIdx.x) * blockDim.x; tile < n_edges;
         tile += static_cast<WORD>(gridDim.x) * blockDim.x) {
        const WORD e = tile + threadIdx.x;
        const bool is_edge = e < n_edges;
        const WORD u = is_edge ? sources[e] : 0, v = is_edge ? targets[e] : 0;
        for (int round = 0; round < rounds; ++round) {
            int risen = 0;
            if (is_edge) {
                const WORD reaching = fresh(before + fresh(before + u)), reached = fresh(after + fresh(after + v));
                risen |= raise(before + v, fresh(before + v), reaching);
                risen |= raise(after + u, fresh(after + u), reached);
            }
            any |= risen;
            if (!__syncthreads_or(risen)) break;
        }
    }
    if (__syncthreads_or(any) && threadIdx.x == 0) changed[step] = 1;
}

// Keep the edges within what may still be one component. Nothing happens unless the last sweep changed nothing.
// Whole warps, in a loop over the grid; count starts at zero.
extern "C" __global__ void __launch_bounds__(256)
filter_edges(const WORD n_edges, const unsigned *last_change, const WORD *sources, const WORD *targets,
             const WORD *before, const WORD *after, WORD *kept_sources, WORD *kept_targets, WORD *count) {
    if (*last_change != 0) return;
    const int lane = threadIdx.x % LANES;
    for (WORD warp = static_cast<WORD>(blockIdx.x) * blockDim.x + threadIdx.x - lane; warp < n_edges;
         warp += static_cast<WORD>(gridDim.x) * blockDim.x) {
        const WORD e = warp + lane;
        bool kept = false;
        WORD u = 0, v = 0;
        if (e < n_edges) {
            u = sources[e];
            v = targets[e];
            kept = before[u] == before[v] && after[u] == after[v] && before[u] != after[u];
        }
        const unsigned votes = __ballot_sync(ALL_LANES, kept);
        WORD first = 0;
        if (lane == 0 && votes != 0) first = atomicAdd(count, static_cast<WORD>(__popc(votes)));
        first = __shfl_sync(ALL_LANES, first, 0) + __popc(votes & ((1u << lane) - 1));
        if (!kept) continue;
        kept_sources[first] = u;
        kept_targets[first] = v;
    }
}

// States whose two names agree have their component; the others start anew. Same condition as filter_edges. One
// thread a listed state.
extern "C" __global__ void __launch_bounds__(256)
settle_names(const WORD n, const unsigned *last_change, const WORD *listed, WORD *before, WORD *after,
             WORD *component) {
    const WORD i = thread_number();
    if (i >= n || *last_change != 0) return;
    const WORD v = listed[i];
    if (component[v] != NONE) return;
    if (before[v] == after[v]) component[v] = before[v];
    else before[v] = after[v] = v;
}
