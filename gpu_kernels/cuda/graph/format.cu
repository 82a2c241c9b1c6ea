// Making graphs from graphs: words, the transposed graph, a part of a graph; and names for components.
#include "graph/words.cuh"

// Put targets and groups together, one thread a state: the group of a transition is the number of its choice within
// the state. Choices are ranges of transitions: choice_offsets[choice_ptr[s] .. choice_ptr[s + 1]].
extern "C" __global__ void __launch_bounds__(256)
pack_words(const WORD n, const int state_bits, const WORD *choice_ptr, const WORD *choice_offsets, const WORD *targets,
           WORD *trans) {
    const WORD s = thread_number();
    if (s >= n) return;
    for (WORD c = choice_ptr[s]; c < choice_ptr[s + 1]; ++c) {
        // One group alone needs no bits, and a shift by the width of a word means nothing.
        const WORD group = c == choice_ptr[s] ? 0 : (c - choice_ptr[s]) << state_bits;
        for (WORD e = choice_offsets[c]; e < choice_offsets[c + 1]; ++e) trans[e] = group | targets[e];
    }
}

// Count the transitions into every state; counts start at zero. One thread a state, atomics.
extern "C" __global__ void __launch_bounds__(256)
count_into(const WORD n, const WORD mask, const WORD *offsets, const WORD *trans, WORD *counts) {
    const WORD s = thread_number();
    if (s >= n) return;
    for (WORD e = offsets[s]; e < offsets[s + 1]; ++e) atomicAdd(counts + (trans[e] & mask), static_cast<WORD>(1));
}

// Write the transposed words, source and group of the transition. The cursors start at the transposed offsets. One
// thread a state, atomics: the order within a state of the transposed graph is not determined.
extern "C" __global__ void __launch_bounds__(256)
fill_transposed(const WORD n, const WORD mask, const WORD *offsets, const WORD *trans, WORD *cursors,
                WORD *transposed) {
    const WORD s = thread_number();
    if (s >= n) return;
    for (WORD e = offsets[s]; e < offsets[s + 1]; ++e) {
        transposed[atomicAdd(cursors + (trans[e] & mask), static_cast<WORD>(1))] = (trans[e] & ~mask) | s;
    }
}

// What a part keeps, one thread a state: a choice is kept if its state is and kept_choice says so. At position i + 1 of
// the results, all of them zero before, stand 1 for a kept state, its number of choices, 1 for a kept choice, and the
// transitions of a choice; sums of them number the parts.
extern "C" __global__ void __launch_bounds__(256)
count_part(const WORD n, const unsigned char *kept_state, const unsigned *kept_choice, const WORD *choice_ptr,
           const WORD *choice_offsets, WORD *states, WORD *choices, WORD *transitions) {
    const WORD s = thread_number();
    if (s >= n || !kept_state[s]) return;
    states[s + 1] = 1;
    for (WORD c = choice_ptr[s]; c < choice_ptr[s + 1]; ++c) {
        if (!kept_choice[c]) continue;
        choices[c + 1] = 1;
        transitions[c + 1] = choice_offsets[c + 1] - choice_offsets[c];
    }
}

// Copy a part, one thread a state; the sums of count_part are given, and no kept transition leads out of the part.
// Groups are counted anew. parent_state and parent_choice name what states and choices were.
extern "C" __global__ void __launch_bounds__(256)
copy_part(const WORD n, const int state_bits, const WORD mask, const unsigned char *kept_state,
          const unsigned *kept_choice, const WORD *choice_ptr, const WORD *choice_offsets, const WORD *trans,
          const WORD *states, const WORD *choices, const WORD *transitions, WORD *offsets, WORD *part_trans,
          WORD *part_choice_ptr, WORD *part_choice_offsets, WORD *parent_state, WORD *parent_choice) {
    const WORD s = thread_number();
    if (s >= n || !kept_state[s]) return;
    const WORD own = states[s], first_choice = choice_ptr[s], last_choice = choice_ptr[s + 1];
    parent_state[own] = s;
    offsets[own + 1] = transitions[last_choice];
    part_choice_ptr[own + 1] = choices[last_choice];
    for (WORD c = first_choice; c < last_choice; ++c) {
        if (!kept_choice[c]) continue;
        const WORD number = choices[c], position = number - choices[first_choice];
        parent_choice[number] = c;
        WORD to = transitions[c];
        for (WORD e = choice_offsets[c]; e < choice_offsets[c + 1]; ++e, ++to) {
            part_trans[to] = (position == 0 ? 0 : position << state_bits) | states[trans[e] & mask];
        }
        part_choice_offsets[number + 1] = to;
    }
}

// The least state of every component, which start at NONE; component[i] is NONE or GONE for none, else any name below
// n, and state i is called order[i] (nullptr: i). One thread a state.
extern "C" __global__ void __launch_bounds__(256)
find_least(const WORD n, const WORD *component, const WORD *order, WORD *least) {
    const WORD i = thread_number();
    if (i >= n || component[i] >= GONE) return;
    const WORD state = order == nullptr ? i : order[i];
    if (fresh(least + component[i]) > state) atomicMin(least + component[i], state);
}

// labels[state] = least state of its component, NONE for none; count the components. One thread a state; whole warps.
extern "C" __global__ void __launch_bounds__(256)
name_components(const WORD n, const WORD *component, const WORD *order, const WORD *least, WORD *labels, WORD *count) {
    const WORD i = thread_number();
    const WORD state = i >= n ? NONE : order == nullptr ? i : order[i];
    const WORD label = i >= n || component[i] >= GONE ? NONE : least[component[i]];
    if (i < n) labels[state] = label;
    const unsigned votes = __ballot_sync(ALL_LANES, i < n && label == state);
    if (threadIdx.x % LANES == 0 && votes != 0) atomicAdd(count, static_cast<WORD>(__popc(votes)));
}
