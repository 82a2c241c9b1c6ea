// The steps of the published end component decomposition after its searches ([WKB16] §6, algorithm 7).
//
// The paper tests states (is there a choice that stays?) and leaves the choices alone; a component may then hang
// together only by choices that leave it. Here choices are taken away one by one, which makes sets U and attractors
// what is left without a choice.
#include "graph/fbt.cuh"

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

// Put padding in the place of transitions of choices that are gone, in the lists of a layout (fbt.cuh) or of its
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
