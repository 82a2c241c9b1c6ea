// The vectors of IDR(s), s = 4, for A x = b / diagonal with A = I - M / diagonal; its few numbers are the caller's.
//
//   aim -> product with a direction -> image_rows -> shadow_sums -> settle, four times; then
//   product with r -> image_rows -> step_sums -> step_rows -> shadow_sums
//
// The four shadow vectors have elements 1 and -1, told by bits of a hash of the row's number, and are stored nowhere.
// `weights`, or null for ones, are what elements are multiplied with before they are measured. The directions u and
// their images g are matrices of four rows of n elements.
//
// Launch, all of them: blocks of THREADS threads, as many as there are places for sums at most, a thread a row in a loop
// over the grid.
// Macros besides those of common.cuh:
//   DIAGONAL_BITS   8, 16 or 64: how the diagonal is held
//   ANCHORED        0, or 1: A x is x - (M x - x[anchor]) / diagonal
// Source: [vGS11]

#include "common.cuh"
#include "grid_sums.cuh"

constexpr int DIRECTIONS = 4;

__device__ inline unsigned hash_of(INDEX row) {
    unsigned hashed = static_cast<unsigned>(row) * 0x9E3779B1u;
    hashed = (hashed ^ (hashed >> 15)) * 0x85EBCA6Bu;
    return (hashed ^ (hashed >> 13)) * 0xC2B2AE35u;
}

__device__ inline double signed_by(double value, unsigned hashed, int bit) {
    return (hashed >> bit) & 1u ? -value : value;
}

// r is (M x + b) / diagonal before, and b / diagonal - A x afterwards.
extern "C" __global__ void __launch_bounds__(THREADS)
residual_rows(const INDEX n_rows, const INDEX anchor, const void *diagonal, const double *table,
              const double *__restrict__ x, double *__restrict__ r) {
    for (INDEX i = first_row(); i < n_rows; i += row_stride()) {
        double residual = r[i] - __ldg(x + i);
#if ANCHORED
        residual -= __ldg(x + anchor) / Coded<DIAGONAL_BITS>::at(diagonal, table, i);
#endif
        r[i] = residual;
    }
}

// out is M x before, and A x afterwards.
extern "C" __global__ void __launch_bounds__(THREADS)
image_rows(const INDEX n_rows, const INDEX anchor, const void *diagonal, const double *table,
           const double *__restrict__ x, double *__restrict__ out) {
    const double at_anchor = ANCHORED ? __ldg(x + anchor) : 0.0;
    for (INDEX i = first_row(); i < n_rows; i += row_stride()) {
        out[i] = __ldg(x + i) - (out[i] - at_anchor) / Coded<DIAGONAL_BITS>::at(diagonal, table, i);
    }
}

// numbers: products of x with the shadow vectors, and with itself.
extern "C" __global__ void __launch_bounds__(THREADS)
shadow_sums(const INDEX n_rows, MEETING, double *numbers, const double *__restrict__ x,
            const double *__restrict__ weights) {
    double sums[DIRECTIONS + 1] = {};
    for (INDEX i = first_row(); i < n_rows; i += row_stride()) {
        const double value = weights == nullptr ? __ldg(x + i) : __ldg(x + i) * __ldg(weights + i);
        const unsigned hashed = hash_of(i);
        sums[0] += signed_by(value, hashed, 5);
        sums[1] += signed_by(value, hashed, 11);
        sums[2] += signed_by(value, hashed, 17);
        sums[3] += signed_by(value, hashed, 23);
        sums[4] += value * value;
    }
    if (!add_grid(sums, partials, arrived)) return;
    for (int k = 0; k < DIRECTIONS + 1; ++k) numbers[k] = sums[k];
}

// u[first] = omega r + sum over j >= first of share_j (u[j] - omega g[j])
extern "C" __global__ void __launch_bounds__(THREADS)
aim(const INDEX n_rows, const int first, const double share0, const double share1, const double share2,
    const double share3, const double omega, const double *__restrict__ r, double *u, const double *g) {
    const double shares[DIRECTIONS] = {share0, share1, share2, share3};
    const long long n = n_rows;
    for (INDEX i = first_row(); i < n_rows; i += row_stride()) {
        double aimed = omega * __ldg(r + i);
#pragma unroll
        for (int j = 0; j < DIRECTIONS; ++j) {
            if (j >= first) aimed += shares[j] * (u[j * n + i] - omega * g[j * n + i]);
        }
        u[first * n + i] = aimed;
    }
}

// Number `last` loses share_j times those before it; x += beta u[last], r -= beta g[last].
extern "C" __global__ void __launch_bounds__(THREADS)
settle(const INDEX n_rows, const int last, const double share0, const double share1, const double share2,
       const double beta, double *u, double *g, double *__restrict__ r, double *__restrict__ x) {
    const double shares[DIRECTIONS - 1] = {share0, share1, share2};
    const long long n = n_rows;
    for (INDEX i = first_row(); i < n_rows; i += row_stride()) {
        double direction = u[last * n + i], image = g[last * n + i];
#pragma unroll
        for (int j = 0; j < DIRECTIONS - 1; ++j) {
            if (j < last) {
                direction -= shares[j] * u[j * n + i];
                image -= shares[j] * g[j * n + i];
            }
        }
        u[last * n + i] = direction;
        g[last * n + i] = image;
        x[i] += beta * direction;
        r[i] -= beta * image;
    }
}

// numbers: t . r, t . t and r . r
extern "C" __global__ void __launch_bounds__(THREADS)
step_sums(const INDEX n_rows, MEETING, double *numbers, const double *__restrict__ t, const double *__restrict__ r,
          const double *__restrict__ weights) {
    double sums[3] = {};
    for (INDEX i = first_row(); i < n_rows; i += row_stride()) {
        const double weight = weights == nullptr ? 1.0 : __ldg(weights + i);
        const double image = weight * __ldg(t + i), residual = weight * __ldg(r + i);
        sums[0] += image * residual;
        sums[1] += image * image;
        sums[2] += residual * residual;
    }
    if (!add_grid(sums, partials, arrived)) return;
    for (int k = 0; k < 3; ++k) numbers[k] = sums[k];
}

// x += omega r, then r -= omega t
extern "C" __global__ void __launch_bounds__(THREADS)
step_rows(const INDEX n_rows, const double omega, const double *__restrict__ t, double *__restrict__ r,
          double *__restrict__ x) {
    for (INDEX i = first_row(); i < n_rows; i += row_stride()) {
        const double residual = r[i];
        x[i] += omega * residual;
        r[i] = residual - omega * __ldg(t + i);
    }
}
