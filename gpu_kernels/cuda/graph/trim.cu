// Trimming by counting: states without predecessors or without successors among what remains are components alone.
#include "graph/worklist.cuh"

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

// One launch of the queue; see worklist.cuh.
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
