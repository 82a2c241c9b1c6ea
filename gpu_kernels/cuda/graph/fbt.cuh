// What all kernels of the published decomposition share: bookkeeping bits and lists of transitions ([WKB16] §5.1).
#include "graph/words.cuh"
#pragma once

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
