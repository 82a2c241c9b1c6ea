// End components by taking choices away: a choice that leaves what remains is no part of any (004 lemma 1).
//
// A state that nothing else leads to, or that leads nowhere else, is an end component alone if it has a choice that
// only loops, and in none otherwise. Either way no other end component holds it: the choices into it go, and its own.
// A choice that goes takes its transitions from the counts of its source and its targets, and so on.
#include "graph/worklist.cuh"

// Choices: 0 gone, 1 there, 2 only loops (and stays).
constexpr unsigned LIVE = 1, LOOPS = 2;
constexpr WORD SHORT = 32;  // transitions of a choice that the thread which takes it away counts off itself

// Items: states that were removed, and behind them, at n + choice, long choices to count off.
struct MecVisit {
    WORD n, mask;
    int state_bits;
    const WORD *trans, *choice_ptr, *choice_offsets, *back_offsets, *back_trans;
    WORD *in_count, *out_count, *component;
    unsigned *choices;

    __device__ WORD degree(WORD item) const {
        if (item >= n) return choice_offsets[item - n + 1] - choice_offsets[item - n];
        return choice_ptr[item + 1] - choice_ptr[item] + back_offsets[item + 1] - back_offsets[item];
    }
    __device__ void remove(WORD v, const Sink &sink) const {
        if (atomicCAS(component + v, NONE, GONE) == NONE) sink.push(v);
    }
    __device__ void count_off(WORD *counter, WORD by, WORD v, const Sink &sink) const {
        if (atomicAdd(counter + v, ~by + 1) == by) remove(v, sink);
    }
    // Every choice is counted off by the one thread that has changed it to 0.
    __device__ void take_away(WORD c, WORD u, const Sink &sink) const {
        if (choices[c] != LIVE || atomicExch(choices + c, 0u) != LIVE) return;
        const WORD begin = choice_offsets[c], end = choice_offsets[c + 1];
        if (end - begin > SHORT) {
            sink.push(n + c);
            return;
        }
        WORD others = 0;
        for (WORD e = begin; e < end; ++e) {
            const WORD w = trans[e] & mask;
            if (w == u) continue;
            ++others;
            if (fresh(component + w) == NONE) count_off(in_count, 1, w, sink);
        }
        if (fresh(component + u) == NONE) count_off(out_count, others, u, sink);
    }
    __device__ void edge(WORD item, WORD k, const Sink &sink) const {
        if (item >= n) {
            const WORD u = source_of(item - n), w = trans[choice_offsets[item - n] + k] & mask;
            if (w == u) return;
            count_off(in_count, 1, w, sink);
            count_off(out_count, 1, u, sink);
            return;
        }
        const WORD own = choice_ptr[item + 1] - choice_ptr[item];
        if (k < own) {
            const WORD c = choice_ptr[item] + k;
            if (choices[c] == LOOPS) component[item] = item;
            else take_away(c, item, sink);
            return;
        }
        const WORD word = back_trans[back_offsets[item] + k - own], u = word & mask;
        // A removed source takes its choices away itself.
        if (u == item || fresh(component + u) != NONE) return;
        const WORD group = word == u ? 0 : word >> state_bits;
        take_away(choice_ptr[u] + group, u, sink);
    }
    // The state of a choice, by bisection: the last one whose choices begin at it or before.
    __device__ WORD source_of(WORD c) const {
        WORD low = 0, high = n;
        while (high - low > 1) {
            const WORD middle = low + (high - low) / 2;
            if (choice_ptr[middle] <= c) low = middle;
            else high = middle;
        }
        return low;
    }
};

// Count transitions to and from other states, find choices that only loop, and put the first states to remove into the
// queue. One thread a state; whole warps.
extern "C" __global__ void __launch_bounds__(256)
seed_mec(const WORD n, const WORD mask, const WORD *trans, const WORD *choice_ptr, const WORD *choice_offsets,
         const WORD *back_offsets, WORD *in_count, WORD *out_count, WORD *component, unsigned *choices, WORD *items,
         WORD *state) {
    const WORD v = thread_number();
    WORD before = 0, after = 0;
    if (v < n) {
        WORD all = 0;
        for (WORD c = choice_ptr[v]; c < choice_ptr[v + 1]; ++c) {
            WORD others = 0;
            for (WORD e = choice_offsets[c]; e < choice_offsets[c + 1]; ++e) others += (trans[e] & mask) != v;
            choices[c] = others == 0 ? LOOPS : LIVE;
            after += others;
            all += choice_offsets[c + 1] - choice_offsets[c];
        }
        before = back_offsets[v + 1] - back_offsets[v] - (all - after);
        in_count[v] = before;
        out_count[v] = after;
    }
    const bool goes = v < n && (before == 0 || after == 0);
    if (v < n) component[v] = goes ? GONE : NONE;
    append(goes, v, items, state + TAIL);
}

// Open the queue after seed_mec. One thread.
extern "C" __global__ void open_mec(WORD *state) {
    if (thread_number() == 0) state[END] = state[TAIL];
}

// One launch of the queue; see worklist.cuh.
extern "C" __global__ void __launch_bounds__(256)
drain_mec(const WORD n, const WORD mask, const int state_bits, const WORD *trans, const WORD *choice_ptr,
          const WORD *choice_offsets, const WORD *back_offsets, const WORD *back_trans, WORD *in_count, WORD *out_count,
          WORD *component, unsigned *choices, WORD *items, WORD *wide, WORD *state, const int rounds) {
    drain(MecVisit{n, mask, state_bits, trans, choice_ptr, choice_offsets, back_offsets, back_trans, in_count,
                   out_count, component, choices},
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
