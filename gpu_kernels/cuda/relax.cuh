// What happens to a row once its product with x is known, and how the change of the iterate is measured.
//
// Macros:
//   MODE            0 product, 1 Jacobi or JOR step, 2 power step, 3 residual
//   DIAGONAL_BITS   8, 16 or 64: how the diagonal is held (modes 1 to 3)
//   RIGHT_BITS      0, 8, 16 or 64: how the right-hand side is held
//   ANCHORED        0, or 1: the right-hand side loses x[anchor] in every row (modes 1 to 3); 0 if not defined
#pragma once

#ifndef ANCHORED
#define ANCHORED 0
#endif

constexpr int CHANGE_SLOTS = 256;  // partial maxima: absolute changes, then as many relative ones

// The vectors of a step, as kernel parameters and as a structure. `weight` is omega in mode 1 and 1 / q in mode 2.
#define PLAIN_STEP_PARAMETERS                                                                                \
    const void *diagonal, const double *diagonal_table, const void *right, const double *right_table,        \
        const double weight, BITS *changes, const long long *done
#if ANCHORED
#define STEP_PARAMETERS PLAIN_STEP_PARAMETERS, const long long anchor
#define STEP Step{diagonal, diagonal_table, right, right_table, weight, changes, done, anchor}
#else
#define STEP_PARAMETERS PLAIN_STEP_PARAMETERS
#define STEP Step{diagonal, diagonal_table, right, right_table, weight, changes, done, 0}
#endif

struct Step {
    const void *diagonal;
    const double *diagonal_table;
    const void *right;
    const double *right_table;
    double weight;
    BITS *changes;           // 2 * CHANGE_SLOTS maxima, zero at the start of an iteration
    const long long *done;   // not zero once the iteration has ended: steps then do nothing
    long long anchor;
};

// Greatest changes seen by one thread.
struct ChangeMaxima {
    BITS absolute = 0;
    BITS relative = 0;

    __device__ void see(double next, double old) {
        const double change = fabs(next - old);
        absolute = larger(absolute, static_cast<BITS>(__double_as_longlong(change)));
        // A division only for a new maximum. Unchanged elements count as no change, zero ones too.
        const double size = fabs(next);
        if (change > __longlong_as_double(static_cast<long long>(relative)) * size) {
            relative = larger(relative, static_cast<BITS>(__double_as_longlong(change / size)));
        }
    }

    // First of the two passes of the reduction: one maximum a warp, combined in one of the partial maxima.
    __device__ void combine(BITS *changes) {
        absolute = warp_maximum(absolute);
        relative = warp_maximum(relative);
        if (threadIdx.x % LANES == 0) {
            const unsigned warp = blockIdx.x * (blockDim.x / LANES) + threadIdx.x / LANES;
            BITS *slot = changes + warp % CHANGE_SLOTS;
            // The old maximum is not asked for, so that nothing waits for the answer.
            if (absolute != 0) atomicMax(slot, absolute);
            if (relative != 0) atomicMax(slot + CHANGE_SLOTS, relative);
        }
    }
};

__device__ inline bool ended(const Step &step) {
#if MODE == 1 || MODE == 2
    return *step.done != 0;
#else
    return false;
#endif
}

// What a step reads for a row besides its product; read for several rows at once before any of them is written.
struct Operands {
    double diagonal, right, old;

    __device__ void load(const Step &step, INDEX i, const REAL *__restrict__ x) {
#if MODE != 0
        diagonal = Coded<DIAGONAL_BITS>::at(step.diagonal, step.diagonal_table, i);
        right = Coded<RIGHT_BITS>::at(step.right, step.right_table, i);
#if ANCHORED
        right -= __ldg(x + step.anchor);
#endif
        old = __ldg(x + i);
#endif
    }
};

// Write row `i` of the result, whose product with x is `total`.
__device__ inline void finish_row(const Step &step, const Operands &operands, INDEX i, double total,
                                  REAL *__restrict__ out, ChangeMaxima &maxima) {
#if MODE == 0
    out[i] = total;
#else
    const double sum = total + operands.right;
#if MODE == 1
    double next = sum / operands.diagonal;
    // Without relaxation the old iterate takes no part, not even as 0 * inf.
    if (step.weight != 1.0) next = (1.0 - step.weight) * operands.old + step.weight * next;
#elif MODE == 2
    const double next = (1.0 - operands.diagonal * step.weight) * operands.old + sum * step.weight;
#endif
#if MODE == 3
    maxima.see(sum - operands.diagonal * operands.old, 0.0);
#else
    out[i] = next;
    maxima.see(next, operands.old);
#endif
#endif
}
