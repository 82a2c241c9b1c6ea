// One forward and one backward search together, by a queue: the component of a pivot ([WKB16] §2.2, one step).
#include "graph/worklist.cuh"

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

// One launch of the queue; see worklist.cuh.
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
