// Steps of value iteration with all choices written out: compressed sparse rows, a row a choice.
//
// choice_ptr   first choice of every state, and the end
// offsets      first transition of every choice, and the end
// columns, values  target and probability of every transition; where SCANNED the sum from every transition to the end
//              of its choice, which scan.cu has made of the products ([BESW10]'s M2), and no columns
// gains        what every choice is worth by itself; null for nothing
// layers       the layer of every choice
//
// Launch: STATE_LANES neighbouring threads a state, of which CHOICE_LANES share a choice; 256 threads a block.
// Deterministic. x and out must not overlap.
//
// Macros besides those of common.cuh and choice.cuh, powers of two up to 32:
//   STATE_LANES   threads of a state
//   CHOICE_LANES  threads of a choice, at most STATE_LANES
//   SCANNED       1 if the sums of choices have been made, at the first transition of each

#include "choice.cuh"

constexpr int ROW_THREADS = 256;

extern "C" __global__ void __launch_bounds__(ROW_THREADS)
step_choice_rows(const INDEX n_states, const INDEX *__restrict__ choice_ptr, const INDEX *__restrict__ offsets,
                 const int *__restrict__ columns, const double *__restrict__ values,
                 const double *__restrict__ gains, const LAYER *__restrict__ layers, CHOICE_PARAMETERS,
                 const double *__restrict__ x, double *__restrict__ out) {
    const Choice choice = CHOICE;
    if (ended(choice)) return;
    const INDEX i = static_cast<INDEX>(blockIdx.x) * (ROW_THREADS / STATE_LANES) + threadIdx.x / STATE_LANES;
    const int lane = threadIdx.x % STATE_LANES, part = lane % CHOICE_LANES;
    constexpr int TOGETHER = STATE_LANES / CHOICE_LANES;
    const INDEX begin = i < n_states ? choice_ptr[i] : 0, end = i < n_states ? choice_ptr[i + 1] : 0;
    BITS rounds = static_cast<BITS>((end - begin + TOGETHER - 1) / TOGETHER);
    // All lanes of a warp take part in the exchanges of each.
    for (int distance = LANES / 2; distance > 0 && CHOICE_LANES > 1; distance /= 2) {
        rounds = larger(rounds, __shfl_xor_sync(ALL_LANES, rounds, distance));
    }
#if POLICY
    const LAYER only = i < n_states ? choice.policy[i] : NO_CHOICE;
#endif
    Best best;
    best.value = no_choice();
#if CHOOSE
    INDEX at = end;
#endif
    for (BITS round = 0; round < rounds; ++round) {
        const INDEX c = begin + static_cast<INDEX>(round) * TOGETHER + lane / CHOICE_LANES;
        bool live = c < end;
#if POLICY
        live = live && layers[c] == only;
#endif
        double total = 0.0;
        if (live) {
            const INDEX to = offsets[c + 1];
#if SCANNED
            if (part == 0 && offsets[c] < to) total = values[offsets[c]];
#else
            for (INDEX j = offsets[c] + part; j < to; j += CHOICE_LANES) total += values[j] * __ldg(x + columns[j]);
#endif
        }
        for (int distance = CHOICE_LANES / 2; distance > 0; distance /= 2) {
            total += __shfl_xor_sync(ALL_LANES, total, distance);
        }
        if (!live) continue;
        if (gains != nullptr) total += gains[c];
#if CHOOSE
        if (better(total, best.value)) at = c;
#endif
        best.take(total, 0);
    }
    for (int distance = STATE_LANES / 2; distance >= CHOICE_LANES; distance /= 2) {
        const double other = __shfl_xor_sync(ALL_LANES, best.value, distance);
#if CHOOSE
        // Of equal choices the first.
        const long long theirs = __shfl_xor_sync(ALL_LANES, static_cast<long long>(at), distance);
        if (better(other, best.value) || (other == best.value && theirs < at)) at = static_cast<INDEX>(theirs);
#endif
        best.take(other, 0);
    }
    ChangeMaxima maxima;
    if (i < n_states && lane == 0) {
#if CHOOSE
        best.layer = at < end ? layers[at] : NO_CHOICE;
#endif
        finish_choice(choice, i, best, old_value(x, i), out, maxima);
    }
#if MEASURE
    maxima.combine(choice.changes);
#endif
}
