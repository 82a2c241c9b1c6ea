// The passes of IDR(s) over a part of the rows: what is added up is added to that of other parts by the caller,
// which also has the numbers of the recurrence.  hybrid/matrix/space/shadows.py says what each of them does.
//
// Launch, all of them: blocks of THREADS threads, as many as there are places for sums at most, a thread a row in a loop
// over the grid.
// Macros besides those of common.cuh:
//   DIAGONAL_BITS   8, 16 or 64: how the diagonal is held
//   DIRECTIONS      see shadow_rows.cuh; the products with one shadow vector are those of `add_products`
// Source: [vGS11]

#include "common.cuh"
#include "grid_sums.cuh"
#include "shadow_rows.cuh"

// The scalar products with the shadow vectors, and of x with itself.
extern "C" __global__ void __launch_bounds__(THREADS)
add_shadow_products(const INDEX n_rows, MEETING, const double *weights, const double *__restrict__ x,
                    double *__restrict__ found) {
    double sums[DIRECTIONS + 1] = {};
    for (INDEX i = first_row(); i < n_rows; i += row_stride()) add_shadows(sums, __ldg(x + i), weights, nullptr, i);
    if (!add_grid(sums, partials, arrived)) return;
    for (int k = 0; k <= DIRECTIONS; ++k) found[k] = sums[k];
}

// The scalar products t . r, t . t and r . r.
extern "C" __global__ void __launch_bounds__(THREADS)
add_products(const INDEX n_rows, MEETING, const double *weights, const double *t, const double *r,
             double *__restrict__ found) {
    double sums[3] = {};
    for (INDEX i = first_row(); i < n_rows; i += row_stride()) {
        const double image = weighed(__ldg(t + i), weights, i), residual = weighed(__ldg(r + i), weights, i);
        sums[0] += image * residual;
        sums[1] += image * image;
        sums[2] += residual * residual;
    }
    if (!add_grid(sums, partials, arrived)) return;
    for (int k = 0; k < 3; ++k) found[k] = sums[k];
}

// u[first] = omega r + sum over j >= first of share_j (u[j] - omega g[j])
extern "C" __global__ void __launch_bounds__(THREADS)
aim_direction(const INDEX n_rows, const int first, const double share_0, const double share_1, const double share_2,
              const double share_3, const double omega, const double *__restrict__ r, double *u, const double *g) {
    const double shares[] = {share_0, share_1, share_2, share_3};
    const long long n = n_rows;
    for (INDEX i = first_row(); i < n_rows; i += row_stride()) {
        u[first * n + i] = aimed(first, shares, omega, __ldg(r + i), u, g, n, i);
    }
}

// The last direction and its image lose their shares of those before, and x and r move along it.
extern "C" __global__ void __launch_bounds__(THREADS)
settle_direction(const INDEX n_rows, const int last, const double share_0, const double share_1, const double share_2,
                 const double beta, double *u, double *g, double *__restrict__ r, double *__restrict__ x) {
    const double shares[] = {share_0, share_1, share_2};
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

// x += omega r, then r -= omega t
extern "C" __global__ void __launch_bounds__(THREADS)
step_along_residual(const INDEX n_rows, const double omega, const double *__restrict__ t, double *__restrict__ r,
                    double *__restrict__ x) {
    for (INDEX i = first_row(); i < n_rows; i += row_stride()) {
        const double before = r[i];
        x[i] += omega * before;
        r[i] = before - omega * __ldg(t + i);
    }
}

// out = M x before, A x afterwards: x - (out - at_anchor) / diagonal
extern "C" __global__ void __launch_bounds__(THREADS)
write_image(const INDEX n_rows, const double at_anchor, const void *diagonal, const double *table,
            const double *__restrict__ x, double *__restrict__ out) {
    for (INDEX i = first_row(); i < n_rows; i += row_stride()) {
        out[i] = __ldg(x + i) - (out[i] - at_anchor) / Coded<DIAGONAL_BITS>::at(diagonal, table, i);
    }
}

// out = (M x + b) / diagonal before, the residual b / diagonal - A x afterwards: out - at_anchor / diagonal - x
extern "C" __global__ void __launch_bounds__(THREADS)
write_residual(const INDEX n_rows, const double at_anchor, const void *diagonal, const double *table,
               const double *__restrict__ x, double *__restrict__ out) {
    for (INDEX i = first_row(); i < n_rows; i += row_stride()) {
        double residual = out[i];
        if (at_anchor != 0.0) residual -= at_anchor / Coded<DIAGONAL_BITS>::at(diagonal, table, i);
        out[i] = residual - __ldg(x + i);
    }
}
