// Forward and backward searches in all regions at once ([WKB16] §5.2, algorithms 4 and 5), and trimming.
#include "graph/fbt.cuh"

constexpr unsigned CACHE = 4096;  // states that a block can hold for its next iterations
constexpr int AHEAD = 1, BACK = 2;

struct Search {
    WORD mask;
    Lists ahead, back;  // back.trans is nullptr without the transposed graph
    WORD *results;
    int *found;         // whether a forward, and a backward search goes on
    bool bounds_ahead, bounds_back;
    WORD *cache;
    unsigned *cached;

    __device__ void keep(WORD item, bool caches) const {
        if (!caches) return;
        const unsigned at = atomicAdd(cached, 1u);
        if (at < CACHE) cache[at] = item;
    }
    // Bounded: only what the other search, which is done, has reached goes on.
    __device__ bool is_open_ahead(WORD i) const { return !bounds_ahead || is_visited(results[i]); }
    __device__ bool is_open_back(WORD i) const { return !bounds_back || is_visited(ahead.offsets[i]); }

    __device__ void explore_ahead(WORD i, bool caches) const {
        if (atomicOr(ahead.offsets + i, EXPLORED) & EXPLORED) return;
        const WORD region = region_of(results[i]);
        const List list = list_of(ahead, i);
        for (WORD e = list.begin; e < list.end; e += list.step) {
            if (ahead.trans[e] == PADDING) continue;
            const WORD w = ahead.trans[e] & mask;
            if (region_of(results[w]) != region || is_visited(ahead.offsets[w]) || !is_open_ahead(w)) continue;
            if (is_visited(atomicOr(ahead.offsets + w, FRONTIER))) continue;
            found[0] = 1;
            keep(2 * w, caches);
        }
    }
    __device__ void explore_back(WORD i, bool caches) const {
        if (atomicOr(results + i, EXPLORED) & EXPLORED) return;
        const WORD region = region_of(results[i]);
        const List list = list_of(back, i);
        for (WORD e = list.begin; e < list.end; e += list.step) {
            if (back.trans[e] == PADDING) continue;
            const WORD u = back.trans[e] & mask, result = results[u];
            if (region_of(result) != region || is_visited(result) || !is_open_back(u)) continue;
            if (is_visited(atomicOr(results + u, FRONTIER))) continue;
            found[1] = 1;
            keep(2 * u + 1, caches);
        }
    }
    // Without the transposed graph: does the backward search reach i by one of its transitions?
    __device__ void look_ahead(WORD i) const {
        const WORD region = region_of(results[i]);
        if (!is_open_back(i)) return;
        const List list = list_of(ahead, i);
        for (WORD e = list.begin; e < list.end; e += list.step) {
            if (ahead.trans[e] == PADDING) continue;
            const WORD result = results[ahead.trans[e] & mask];
            if (region_of(result) != region || !is_visited(result)) continue;
            atomicOr(results + i, FRONTIER);
            found[1] = 1;
            return;
        }
    }
};

// One step of the searches in `directions` (AHEAD, BACK or both); with iterations > 1 more steps on cached states.
// found[2 step .. 2 step + 1] say which searches go on after step - 1, found[2 step + 2 ..] are set. With `bounded`
// (BFBT), a search whose counterpart is done everywhere goes on inside what that one has reached; bounded_used gets 1
// when the forward search was bounded, 2 for the backward search. One thread a state.
extern "C" __global__ void __launch_bounds__(256)
step_search(const WORD n, const WORD segmented, const WORD mask, WORD *offsets, const WORD *trans, WORD *back_offsets,
            const WORD *back_trans, WORD *results, int directions, const int bounded, const int iterations, int *found,
            const int step, unsigned *bounded_used) {
    BLOCK_SHARED WORD cache[CACHE];
    BLOCK_SHARED unsigned cached;
    const int *active = found + 2 * step;
    const bool goes_ahead = active[0] != 0, goes_back = active[1] != 0;
    if (!((directions & AHEAD) && goes_ahead) && !((directions & BACK) && goes_back)) return;
    if (!goes_ahead) directions &= ~AHEAD;
    if (!goes_back) directions &= ~BACK;
    if (threadIdx.x == 0) cached = 0;
    __syncthreads();
    const Search search{mask,
                        {offsets, trans, segmented},
                        {back_offsets, back_trans, segmented},
                        results,
                        found + 2 * step + 2,
                        bounded && !goes_back,
                        bounded && !goes_ahead,
                        cache,
                        &cached};
    if (thread_number() == 0 && (search.bounds_ahead || search.bounds_back)) {
        atomicOr(bounded_used, search.bounds_ahead ? 1u : 2u);
    }
    const WORD i = thread_number();
    if (i < n && !(results[i] & DONE)) {
        const bool caches = iterations > 1;
        if ((directions & AHEAD) && is_front(offsets[i]) && search.is_open_ahead(i)) search.explore_ahead(i, caches);
        if (directions & BACK) {
            if (back_trans == nullptr) {
                if (!is_visited(results[i])) search.look_ahead(i);
            } else if (is_front(results[i]) && search.is_open_back(i)) {
                search.explore_back(i, caches);
            }
        }
    }
    unsigned begin = 0;
    for (int iteration = 1; iteration < iterations; ++iteration) {
        __syncthreads();
        const unsigned end = cached < CACHE ? cached : CACHE;
        __syncthreads();
        if (begin == end) return;
        // What the last iteration finds waits in global memory for the next launch.
        const bool caches = iteration + 1 < iterations;
        for (unsigned at = begin + threadIdx.x; at < end; at += blockDim.x) {
            const WORD item = cache[at];
            if (item & 1) search.explore_back(item >> 1, caches);
            else search.explore_ahead(item >> 1, caches);
        }
        begin = end;
    }
}

// After the searches: what both reached is a component; elsewhere the results say what reached it. A search that was
// bounded has not reached all it could outside of the component, and divides nothing. One thread a state.
extern "C" __global__ void __launch_bounds__(256)
close_search(const WORD n, const unsigned *bounded_used, WORD *offsets, WORD *results) {
    const WORD i = thread_number();
    if (i >= n || (results[i] & DONE)) return;
    const bool ahead = is_visited(offsets[i]), back = is_visited(results[i]);
    const WORD region = region_of(results[i]);
    offsets[i] &= ~(FRONTIER | EXPLORED);
    if (ahead && back) {
        results[i] = region | DONE;
        return;
    }
    const unsigned used = *bounded_used;
    results[i] = region | (ahead && !(used & 1) ? REACHED_AHEAD : 0) | (back && !(used & 2) ? REACHED_BACK : 0);
}

__device__ inline bool has_neighbour(const Lists &lists, WORD mask, const WORD *results, WORD i) {
    const List list = list_of(lists, i);
    for (WORD e = list.begin; e < list.end; e += list.step) {
        if (lists.trans[e] == PADDING) continue;
        const WORD w = lists.trans[e] & mask;
        if (w != i && results[w] == results[i]) return true;
    }
    return false;
}

// Without the transposed graph, before trim_states: mark the states that have a predecessor in their region.
// Nothing happens if the step before changed nothing. One thread a state.
extern "C" __global__ void __launch_bounds__(256)
mark_successors(const WORD n, const WORD segmented, const WORD mask, WORD *offsets, const WORD *trans,
                const WORD *results, const int *changed, const int step) {
    const WORD i = thread_number();
    if (i >= n || !changed[step] || (results[i] & DONE)) return;
    const List list = list_of(Lists{offsets, trans, segmented}, i);
    for (WORD e = list.begin; e < list.end; e += list.step) {
        if (trans[e] == PADDING) continue;
        const WORD w = trans[e] & mask;
        if (w != i && results[w] == results[i]) atomicOr(offsets + w, EXPLORED);
    }
}

// One round of trimming: a state without a successor, or without a predecessor, in its region is a component alone.
// changed[step] says whether the round before changed something, changed[step + 1] is set. One thread a state.
extern "C" __global__ void __launch_bounds__(256)
trim_states(const WORD n, const WORD segmented, const WORD mask, WORD *offsets, const WORD *trans, WORD *back_offsets,
            const WORD *back_trans, WORD *results, int *changed, const int step) {
    const WORD i = thread_number();
    if (i >= n || !changed[step]) return;
    const bool is_marked = offsets[i] & EXPLORED;
    if (is_marked) atomicAnd(offsets + i, ~EXPLORED);
    if (results[i] & DONE) return;
    const bool is_preceded = back_trans == nullptr
                                 ? is_marked
                                 : has_neighbour(Lists{back_offsets, back_trans, segmented}, mask, results, i);
    if (is_preceded && has_neighbour(Lists{offsets, trans, segmented}, mask, results, i)) return;
    results[i] = i | DONE;
    changed[step + 1] = 1;
}
