// The best over the choices of a state: x -> scale * opt over i of (factor_i (A_i x) + b_i) + shape.
//
// Macros besides those of common.cuh, all 0 or 1:
//   MAXIMISE  the greatest value is best, else the least; no choice is worth the infinity that never wins
//   SHAPE     a vector is added at the end
//   POLICY    only the layer that the policy names for a state counts
//   CHOOSE    the layer of the best choice is written too
//   MEASURE   the differences to x are measured
#pragma once

#include "common.cuh"
#include "relax.cuh"

typedef unsigned short LAYER;

constexpr LAYER NO_CHOICE = 65535;

// What a step does with the best value, as kernel parameters and as a structure.
#define CHOICE_PARAMETERS                                                                                    \
    const double scale, const double *__restrict__ shape, const LAYER *__restrict__ policy,                  \
        LAYER *__restrict__ chosen, BITS *changes, const long long *done
#define CHOICE Choice{scale, shape, policy, chosen, changes, done}

struct Choice {
    double scale;
    const double *shape;
    const LAYER *policy;
    LAYER *chosen;
    BITS *changes;          // 2 * CHANGE_SLOTS maxima, zero at the start of an iteration
    const long long *done;  // not zero once the iteration has ended: steps then do nothing; null for single steps
};

__device__ inline bool ended(const Choice &choice) { return choice.done != nullptr && *choice.done != 0; }

__device__ inline double no_choice() {
    const double infinity = __longlong_as_double(0x7ff0000000000000LL);
    return MAXIMISE ? -infinity : infinity;
}

__device__ inline bool better(double value, double best) { return MAXIMISE ? value > best : value < best; }

// The best choice so far. A sum that is not a number wins and stays, so that it is seen by the measurement.
struct Best {
    double value;
#if CHOOSE
    LAYER layer;
#endif

    __device__ void start() {
        value = no_choice();
#if CHOOSE
        layer = NO_CHOICE;
#endif
    }

    __device__ void take(double other, LAYER number) {
        if (!better(other, value) && other == other) return;  // nothing is better than one that is not a number
        value = other;
#if CHOOSE
        layer = number;
#endif
    }
};

// The element that row `i` of the result is compared with, if it is.
__device__ inline double old_value(const double *__restrict__ x, INDEX i) {
#if MEASURE
    return __ldg(x + i);
#else
    return 0.0;
#endif
}

// Write row `i` of the result.
__device__ inline void finish_choice(const Choice &choice, INDEX i, const Best &best, double old,
                                     double *__restrict__ out, ChangeMaxima &maxima) {
    double next = choice.scale * best.value;
#if SHAPE
    next += __ldg(choice.shape + i);
#endif
    out[i] = next;
#if CHOOSE
    choice.chosen[i] = best.layer;
#endif
#if MEASURE
    maxima.see(next, old);
#endif
}
