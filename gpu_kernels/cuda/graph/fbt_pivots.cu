// A pivot for every region by races for places in the array of transitions ([WKB16] §5.3, algorithm 6).
#include "graph/fbt.cuh"

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
