// The published search for components, forward and backward from a pivot of every region, and the steps of the
// published end components after it ([WKB16] §§5 and 6).
#include "graph/words.cuh"

// What all kernels of the published decomposition share: bookkeeping bits and lists of transitions ([WKB16] §5.1).

// The three high bits of an offset and of a result keep the books. Low bits of a result: the search region, named by
// its pivot. While a search runs, FRONTIER without EXPLORED stands for the front: of the forward search in offsets, of
// the backward search in results. Between searches the bits of a result say what the last search reached, so that two
// states are in one region exactly if their results are equal. A result with DONE is a component, named by its pivot.
constexpr WORD HIGH = static_cast<WORD>(1) << (8 * sizeof(WORD) - 1);
constexpr WORD CANDIDATE = HIGH;       // in offsets: may become a pivot (set J)
constexpr WORD DONE = HIGH;            // in results
constexpr WORD LOCK = HIGH;            // in trans: the place of a region in pivot selection is taken
constexpr WORD FRONTIER = HIGH >> 1;
constexpr WORD EXPLORED = HIGH >> 2;
constexpr WORD REACHED_AHEAD = FRONTIER, REACHED_BACK = EXPLORED;  // in results, between searches
constexpr WORD LOW = EXPLORED - 1;
constexpr WORD PADDING = HIGH - 1;     // in trans: no transition; not locked

__device__ inline bool is_front(WORD info) { return (info & (FRONTIER | EXPLORED)) == FRONTIER; }
__device__ inline bool is_visited(WORD info) { return (info & (FRONTIER | EXPLORED)) != 0; }
__device__ inline WORD region_of(WORD result) { return result & (DONE | LOW); }

// Transitions of a state: in segments of a warp's states, first transitions of all lanes, then second ones, with
// padding; from position `segmented` on, which is where the segments end, one state after the other.
struct Lists {
    WORD *offsets;
    const WORD *trans;
    WORD segmented;
};
struct List {
    WORD begin, end;
    int step;
};
__device__ inline List list_of(const Lists &lists, WORD i) {
    const WORD begin = lists.offsets[i] & LOW;
    if (i >= lists.segmented) return List{begin, lists.offsets[i + 1] & LOW, 1};
    const WORD next = (i / LANES + 1) * LANES;
    return List{begin, lists.offsets[next < lists.segmented ? next : lists.segmented] & LOW, LANES};
}

// A pivot for every region by races for places in the array of transitions ([WKB16] §5.3, algorithm 6).

// The place of a state's region, counted over several passes of the array. Three times the region, so that no two
// regions, with what the last search reached of them, share a place; the paper's hash lets neighbours collide.
__device__ inline WORD place_of(WORD result) {
    return 3 * (result & LOW) + ((result & REACHED_BACK) ? 1 : 0) + ((result & REACHED_AHEAD) ? 2 : 0);
}

// Take the place for state i, or learn who has. The transition that stood there waits in the result of the winner.
__device__ inline WORD claim(WORD *trans, WORD place, WORD i, WORD *offsets, WORD *results) {
    for (;;) {
        const WORD seen = fresh(trans + place);
        if (seen & LOCK) return seen & ~LOCK;
        if (atomicCAS(trans + place, seen, i | LOCK) != seen) continue;
        results[i] = seen;
        offsets[i] |= FRONTIER;
        return i;
    }
}

// One pass: states without a component and without a pivot, whose place lies in this pass, compete. Then offsets[i]
// has FRONTIER for a winner, FRONTIER and EXPLORED for the others, whose results name their pivot. With `aggregate` one
// lane of a warp competes for each region ([WKB16] §5.3.1), found by a match of the lanes' places where the paper
// has a loop of ballots. Only candidates compete (set J, [WKB16] §5.3.2). One thread a state; whole warps.
extern "C" __global__ void __launch_bounds__(256)
select_pivots(const WORD n, const WORD n_places, const WORD pass, const int aggregate, WORD *trans, WORD *offsets,
              WORD *results, WORD *n_pivots) {
    const WORD i = thread_number();
    WORD place = NONE;
    if (i < n && !is_visited(offsets[i]) && (offsets[i] & CANDIDATE) && !(results[i] & DONE)) {
        place = place_of(results[i]);
        place = place / n_places == pass ? place % n_places : NONE;
    }
    WORD pivot = NONE;
    if (aggregate) {
        const unsigned peers = __match_any_sync(ALL_LANES, place);
        const int leader = __ffs(peers) - 1;
        if (place != NONE && static_cast<int>(threadIdx.x % LANES) == leader) {
            pivot = claim(trans, place, i, offsets, results);
        }
        pivot = __shfl_sync(ALL_LANES, pivot, leader);
    } else if (place != NONE) {
        pivot = claim(trans, place, i, offsets, results);
    }
    if (place != NONE && pivot != i) {
        results[i] = pivot;
        offsets[i] |= FRONTIER | EXPLORED;
    }
    const unsigned wins = __ballot_sync(ALL_LANES, place != NONE && pivot == i);
    if (threadIdx.x % LANES == 0 && wins != 0) atomicAdd(n_pivots, static_cast<WORD>(__popc(wins)));
}

// With sets J: the other states of a region follow the pivot that a candidate has become. One thread a state.
extern "C" __global__ void __launch_bounds__(256)
follow_pivots(const WORD n, const WORD n_places, const WORD pass, const WORD *trans, WORD *offsets, WORD *results) {
    const WORD i = thread_number();
    if (i >= n || is_visited(offsets[i]) || (offsets[i] & CANDIDATE) || (results[i] & DONE)) return;
    const WORD place = place_of(results[i]);
    if (place / n_places != pass || !(trans[place % n_places] & LOCK)) return;
    results[i] = trans[place % n_places] & ~LOCK;
    offsets[i] |= FRONTIER | EXPLORED;
}

// Put the transitions back, and let both searches start at the pivots. One thread a place.
extern "C" __global__ void __launch_bounds__(256)
restore_places(const WORD n_places, WORD *trans, WORD *results) {
    const WORD place = thread_number();
    if (place >= n_places || !(trans[place] & LOCK)) return;
    const WORD pivot = trans[place] & ~LOCK;
    trans[place] = results[pivot];
    results[pivot] = pivot | FRONTIER;
}

// After all passes: what is not a pivot is unvisited again; a region without a pivot waits, in one piece. One thread a
// state.
extern "C" __global__ void __launch_bounds__(256)
open_search(const WORD n, WORD *offsets, WORD *results) {
    const WORD i = thread_number();
    if (i >= n) return;
    const WORD info = offsets[i];
    if (info & EXPLORED) offsets[i] = info & ~(FRONTIER | EXPLORED);
    else if (!(info & FRONTIER)) results[i] &= DONE | LOW;
}

// Forward and backward searches in all regions at once ([WKB16] §5.2, algorithms 4 and 5), and trimming.

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

// The steps of the published end component decomposition after its searches ([WKB16] §6, algorithm 7).
//
// The paper tests states (is there a choice that stays?) and leaves the choices alone; a component may then hang
// together only by choices that leave it. Here choices are taken away one by one, which makes sets U and attractors
// what is left without a choice.

// Where a state stands: active, in no end component, or in one that was found.
enum Status : unsigned { ACTIVE, REMOVED, IN_MEC };

// One round: take away the choices of active states with a transition out of their region or to a state that is not
// active any more, and remove the states that have none left. From states that leave (sets U) this goes on to their
// attractors, from end components found to theirs. is_open[region] is set for regions that lose anything: no end
// components as they are. loses[i] is set for states that lose a choice. changed[step] says whether the round before
// changed something; changed[step + 1] is set. One thread a state.
extern "C" __global__ void __launch_bounds__(256)
remove_leaving(const WORD n, const WORD mask, const WORD *trans, const WORD *choice_ptr, const WORD *choice_offsets,
               const WORD *region, unsigned *choices, unsigned *status, unsigned *is_open, unsigned char *loses,
               unsigned *changed, const int step) {
    const WORD i = thread_number();
    if (i >= n || !changed[step] || status[i] != ACTIVE) return;
    const WORD own = region[i];
    bool loses_any = false, has_any = false;
    for (WORD c = choice_ptr[i]; c < choice_ptr[i + 1]; ++c) {
        if (!choices[c]) continue;
        bool leaves = false;
        for (WORD e = choice_offsets[c]; e < choice_offsets[c + 1] && !leaves; ++e) {
            const WORD w = trans[e] & mask;
            leaves = region[w] != own || status[w] != ACTIVE;
        }
        if (leaves) choices[c] = 0;
        loses_any |= leaves;
        has_any |= !leaves;
    }
    if (loses_any) loses[i] = 1;
    if (!has_any) status[i] = REMOVED;
    if (has_any && !loses_any) return;
    is_open[own] = 1;
    changed[step + 1] = 1;
}

// Active states of components that have lost nothing form an end component. One thread a state.
extern "C" __global__ void __launch_bounds__(256)
mark_mecs(const WORD n, const WORD *component, const unsigned *is_open, unsigned *status, WORD *mec) {
    const WORD i = thread_number();
    if (i >= n || status[i] != ACTIVE || component[i] == NONE || is_open[component[i]]) return;
    status[i] = IN_MEC;
    mec[i] = component[i];
}

// Put padding in the place of transitions of choices that are gone, in the lists of a layout (above) or of its
// transposed one, whose words name sources. order: the state at each position, nullptr for the same. One thread a
// position.
extern "C" __global__ void __launch_bounds__(256)
drop_transitions(const WORD n, const WORD segmented, const WORD mask, const int state_bits, const int is_back,
                 WORD *offsets, WORD *trans, const WORD *order, const WORD *choice_ptr, const unsigned *choices) {
    const WORD i = thread_number();
    if (i >= n) return;
    const List list = list_of(Lists{offsets, trans, segmented}, i);
    for (WORD e = list.begin; e < list.end; e += list.step) {
        const WORD word = trans[e];
        if (word == PADDING) continue;
        const WORD position = is_back ? word & mask : i;
        const WORD group = (word & ~mask) == 0 ? 0 : word >> state_bits;
        if (!choices[choice_ptr[order == nullptr ? position : order[position]] + group]) trans[e] = PADDING;
    }
}

// One round of the attractor of a set: a state joins if every choice of it has a transition into the set. A state
// without choices never does. changed as above. One thread a state.
extern "C" __global__ void __launch_bounds__(256)
grow_attractor(const WORD n, const WORD mask, const WORD *trans, const WORD *choice_ptr, const WORD *choice_offsets,
               unsigned char *is_in, unsigned *changed, const int step) {
    const WORD i = thread_number();
    if (i >= n || !changed[step] || is_in[i] || choice_ptr[i] == choice_ptr[i + 1]) return;
    for (WORD c = choice_ptr[i]; c < choice_ptr[i + 1]; ++c) {
        bool hits = false;
        for (WORD e = choice_offsets[c]; e < choice_offsets[c + 1] && !hits; ++e) hits = is_in[trans[e] & mask];
        if (!hits) return;
    }
    is_in[i] = 1;
    changed[step + 1] = 1;
}
