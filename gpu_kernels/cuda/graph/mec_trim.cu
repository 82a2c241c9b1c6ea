// End components by taking choices away: a choice that leaves what remains is no part of any ([WKB16] lemma 1).
//
// A state that nothing else leads to, or that leads nowhere else, is an end component alone if it has a choice that
// only loops, and in none otherwise. Either way no other end component holds it: the choices into it go, and its own.
// A choice that goes takes its transitions from the counts of its source and its targets, and so on.
#include "graph/words.cuh"

// Choices: 0 gone, 1 there, 2 only loops (and stays).
constexpr unsigned LIVE = 1, LOOPS = 2;
constexpr int SHORT = 4;  // transitions of a choice that the thread which takes it away counts off itself

// What is left of a state, both counts in one word, so that one access says whether the state goes just now: the
// transitions from other states in the low bits, the choices that lead to others above.
typedef unsigned long long COUNTS;
constexpr COUNTS TRANSITION = 1, CHOICE = 1ULL << 36;

__device__ inline bool goes(COUNTS before, COUNTS taken) {
    const COUNTS into = before % CHOICE, out = before / CHOICE;
    return taken == TRANSITION ? into == 1 && out != 0 : out == 1 && into != 0;
}

// Items: states that were removed, and behind them, at n + choice, long choices to count off. A round lasts as long as
// its accesses one after the other: what can be asked for at once is, whether or not it will be needed.
struct MecVisit {
    WORD n, mask;
    const WORD *trans, *choice_ptr, *choice_offsets, *back_offsets, *back_choices, *sources;
    COUNTS *counts;
    WORD *component;
    unsigned *choices;

    __device__ WORD degree(WORD item) const {
        if (item >= n) return choice_offsets[item - n + 1] - choice_offsets[item - n];
        return choice_ptr[item + 1] - choice_ptr[item] + back_offsets[item + 1] - back_offsets[item];
    }
    __device__ COUNTS take(WORD v, COUNTS taken) const { return atomicAdd(counts + v, ~taken + 1); }
    __device__ void remove_if(bool removed, WORD v, const Sink &sink) const {
        if (!removed) return;
        component[v] = GONE;
        sink.push(v);
    }
    // Every choice is counted off by the one thread that has changed it to 0.
    __device__ void take_away(WORD c, const Sink &sink) const {
        const WORD begin = choice_offsets[c], end = choice_offsets[c + 1], u = sources[c];
        if (atomicCAS(choices + c, LIVE, 0u) != LIVE) return;
        const COUNTS left = take(u, CHOICE);
        if (end - begin > SHORT) {
            sink.push(n + c);
        } else {
            COUNTS before[SHORT];
            WORD to[SHORT];
#pragma unroll
            for (int i = 0; i < SHORT; ++i) to[i] = begin + i < end ? trans[begin + i] & mask : u;
#pragma unroll
            for (int i = 0; i < SHORT; ++i) before[i] = to[i] == u ? 0 : take(to[i], TRANSITION);
#pragma unroll
            for (int i = 0; i < SHORT; ++i) remove_if(to[i] != u && goes(before[i], TRANSITION), to[i], sink);
        }
        remove_if(goes(left, CHOICE), u, sink);
    }
    __device__ void edge(WORD item, WORD k, const Sink &sink) const {
        if (item >= n) {
            const WORD w = trans[choice_offsets[item - n] + k] & mask;
            if (w != sources[item - n]) remove_if(goes(take(w, TRANSITION), TRANSITION), w, sink);
            return;
        }
        const WORD own = choice_ptr[item + 1] - choice_ptr[item];
        const WORD c = k < own ? choice_ptr[item] + k : back_choices[back_offsets[item] + k - own];
        if (k < own && choices[c] == LOOPS) component[item] = item;
        else take_away(c, sink);
    }
};

// The choice of every transposed transition. One thread a transition.
extern "C" __global__ void __launch_bounds__(256)
list_choices(const WORD n_transitions, const WORD mask, const int state_bits, const WORD *choice_ptr,
             const WORD *back_trans, WORD *back_choices) {
    const WORD e = thread_number();
    if (e >= n_transitions) return;
    const WORD word = back_trans[e], u = word & mask;
    // One group alone needs no bits, and a shift by the width of a word means nothing.
    back_choices[e] = choice_ptr[u] + (word == u ? 0 : word >> state_bits);
}

// Count transitions from other states and choices that lead to others, find choices that only loop and the state of
// every choice, and put the first states to remove into the queue. One thread a state; whole warps.
extern "C" __global__ void __launch_bounds__(256)
seed_mec(const WORD n, const WORD mask, const WORD *trans, const WORD *choice_ptr, const WORD *choice_offsets,
         const WORD *back_offsets, WORD *sources, COUNTS *counts, WORD *component, unsigned *choices, WORD *items,
         WORD *state) {
    const WORD v = thread_number();
    COUNTS before = 0, after = 0;
    if (v < n) {
        WORD loops = 0;
        for (WORD c = choice_ptr[v]; c < choice_ptr[v + 1]; ++c) {
            const WORD begin = choice_offsets[c], end = choice_offsets[c + 1];
            WORD own = 0;
            for (WORD e = begin; e < end; ++e) own += (trans[e] & mask) == v;
            choices[c] = own == end - begin ? LOOPS : LIVE;
            sources[c] = v;
            after += own != end - begin;
            loops += own;
        }
        before = back_offsets[v + 1] - back_offsets[v] - loops;
        counts[v] = before * TRANSITION + after * CHOICE;
    }
    const bool removed = v < n && (before == 0 || after == 0);
    if (v < n) component[v] = removed ? GONE : NONE;
    append(removed, v, items, state + TAIL);
}

// Open the queue after seed_mec. One thread.
extern "C" __global__ void open_mec(WORD *state) {
    if (thread_number() == 0) state[END] = state[TAIL];
}

// One launch of the queue; see words.cuh.
extern "C" __global__ void __launch_bounds__(256)
drain_mec(const WORD n, const WORD mask, const WORD *trans, const WORD *choice_ptr, const WORD *choice_offsets,
          const WORD *back_offsets, const WORD *back_choices, const WORD *sources, COUNTS *counts, WORD *component,
          unsigned *choices, WORD *items, WORD *wide, WORD *state, const int rounds) {
    drain(MecVisit{n, mask, trans, choice_ptr, choice_offsets, back_offsets, back_choices, sources, counts, component,
                   choices},
          Queue{items, wide, state}, rounds);
}

// Take away the choices that leave their component, and mark components that lose one. choices starts at any value;
// count becomes the number of choices lost. One thread a state; whole warps.
extern "C" __global__ void __launch_bounds__(256)
cut_choices(const WORD n, const WORD mask, const WORD *trans, const WORD *choice_ptr, const WORD *choice_offsets,
            const WORD *component, unsigned *choices, unsigned *is_cut, WORD *count) {
    const WORD v = thread_number();
    bool cuts = false;
    if (v < n) {
        const WORD own = component[v];
        for (WORD c = choice_ptr[v]; c < choice_ptr[v + 1]; ++c) {
            bool stays = true;
            for (WORD e = choice_offsets[c]; stays && e < choice_offsets[c + 1]; ++e) {
                stays = component[trans[e] & mask] == own;
            }
            choices[c] = stays;
            cuts |= !stays;
        }
        if (cuts) is_cut[own] = 1;
    }
    const unsigned votes = __ballot_sync(ALL_LANES, cuts);
    if (threadIdx.x % LANES == 0 && votes != 0) atomicAdd(count, static_cast<WORD>(__popc(votes)));
}

// Tell the whole graph what is known of a part: the least state of end components found. found[i] is a name within the
// part, NONE or GONE for none; parents name states of the graph, nullptr for the graph itself. One thread a state of
// the part.
extern "C" __global__ void __launch_bounds__(256)
hand_up(const WORD n, const WORD *found, const WORD *parent, WORD *component) {
    const WORD i = thread_number();
    if (i >= n || found[i] >= GONE) return;
    component[parent == nullptr ? i : parent[i]] = parent == nullptr ? found[i] : parent[found[i]];
}

// The choices whose transitions all stay in the end component of their state. One thread a state.
extern "C" __global__ void __launch_bounds__(256)
keep_choices(const WORD n, const WORD mask, const WORD *trans, const WORD *choice_ptr, const WORD *choice_offsets,
             const WORD *component, unsigned char *kept) {
    const WORD v = thread_number();
    if (v >= n) return;
    const WORD own = component[v];
    for (WORD c = choice_ptr[v]; c < choice_ptr[v + 1]; ++c) {
        bool stays = own < GONE;
        for (WORD e = choice_offsets[c]; stays && e < choice_offsets[c + 1]; ++e) {
            stays = component[trans[e] & mask] == own;
        }
        kept[c] = stays;
    }
}
