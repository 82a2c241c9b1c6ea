// The recurrence of BiCGStab for A x = b / diagonal with A = I - M / diagonal: five launches besides the two products.
//
//   product with p -> find_alpha -> shorten_residual -> product with r -> find_omega -> move_iterate -> turn_direction
//
// r is the residual, p the direction, shadow the residual that the recurrence began with. v = A p and t = A r are never
// stored: they are formed from the vector and its product where they are needed, which reads as much as storing them.
// Between shorten_residual and move_iterate r is what van der Vorst calls s.
//
// The block that is done last with a sum (grid_sums.cuh) also draws the conclusions, so that no launch is needed for
// numbers alone.
//
// Once the recurrence has ended, status[0] is not 0, and all kernels but begin_recurrence leave everything as it is.
//
// Launch, all of them: blocks of THREADS threads, as many as there are places for sums, a thread a row in a loop over
// the grid.
// Macros besides those of common.cuh:
//   DIAGONAL_BITS   8, 16 or 64: how the diagonal is held; 0: products are divided by it already
//   ANCHORED        0, or 1: A x is x - (M x - x[anchor]) / diagonal, so that a matrix M whose row sums are the diagonal
//                   makes A singular no more; the diagonal has bits then
// Source: van der Vorst, SIAM J. Sci. Stat. Comput. 13, 1992; [CB12] §§3.2 and 5.2.

#include "common.cuh"
#include "grid_sums.cuh"

constexpr double LARGEST = 1.7976931348623157e308;

// Places in `numbers`, and values of status[0]; status[1] counts iterations.
constexpr int RHO = 0;    // shadow . r
constexpr int FIRST = 1;  // |shadow|
constexpr int NORM = 2;   // |r|
constexpr int ALPHA = 3;
constexpr int OMEGA = 4;
constexpr int BETA = 5;
constexpr int AT_P = 6;   // p[anchor] and r[anchor], kept while the vectors are written to
constexpr int AT_R = 7;
constexpr long long ARRIVED = 1;
constexpr long long BROKEN = 2;

__device__ inline bool is_finite(double value) { return fabs(value) <= LARGEST; }

// Element i of A x, from that of x, from the product, and from x[anchor].
__device__ inline double image(double x, const double *product, const void *diagonal, const double *table, INDEX i,
                               double at_anchor) {
#if ANCHORED
    return x - (__ldg(product + i) - at_anchor) / Coded<DIAGONAL_BITS>::at(diagonal, table, i);
#elif DIAGONAL_BITS == 0
    return x - __ldg(product + i);
#else
    return x - __ldg(product + i) / Coded<DIAGONAL_BITS>::at(diagonal, table, i);
#endif
}

// Begin from the residual of x; `r` is (M x + b) / diagonal before, and b / diagonal - A x afterwards.
// It has arrived already if its norm is below `limit`, and cannot begin from a norm that is no number.
extern "C" __global__ void __launch_bounds__(THREADS)
begin_recurrence(const INDEX n_rows, MEETING, double *numbers, long long *status, const double limit,
                 const INDEX anchor, const void *diagonal, const double *table, const double *__restrict__ x,
                 double *__restrict__ r, double *__restrict__ shadow, double *__restrict__ p) {
    double sums[1] = {0.0};
    for (INDEX i = first_row(); i < n_rows; i += row_stride()) {
        double residual = r[i] - __ldg(x + i);
#if ANCHORED
        residual -= __ldg(x + anchor) / Coded<DIAGONAL_BITS>::at(diagonal, table, i);
#endif
        r[i] = residual;
        shadow[i] = residual;
        p[i] = residual;
        sums[0] += residual * residual;
    }
    if (!add_grid(sums, partials, arrived)) return;
    const double norm = sqrt(sums[0]);
    numbers[RHO] = sums[0];
    numbers[FIRST] = norm;
    numbers[NORM] = norm;
    status[0] = norm < limit ? ARRIVED : is_finite(norm) ? 0 : BROKEN;
}

// alpha = rho / (shadow . v), and another iteration is counted. It breaks down where alpha would be no number.
extern "C" __global__ void __launch_bounds__(THREADS)
find_alpha(const INDEX n_rows, MEETING, double *numbers, long long *status, const INDEX anchor, const void *diagonal,
           const double *table, const double *__restrict__ shadow, const double *__restrict__ p,
           const double *__restrict__ product) {
    if (status[0] != 0) return;
    const double at_anchor = ANCHORED ? p[anchor] : 0.0;
    double sums[1] = {0.0};
#pragma unroll 4
    for (INDEX i = first_row(); i < n_rows; i += row_stride()) {
        sums[0] += __ldg(shadow + i) * image(__ldg(p + i), product, diagonal, table, i, at_anchor);
    }
    if (!add_grid(sums, partials, arrived)) return;
    status[1] += 1;
    if (ANCHORED) numbers[AT_P] = at_anchor;
    if (sums[0] == 0.0 || !is_finite(sums[0])) status[0] = BROKEN;
    else numbers[ALPHA] = numbers[RHO] / sums[0];
}

// r -= alpha v
extern "C" __global__ void __launch_bounds__(THREADS)
shorten_residual(const INDEX n_rows, const double *numbers, const long long *status, const void *diagonal,
                 const double *table, const double *__restrict__ p, const double *__restrict__ product,
                 double *__restrict__ r) {
    if (status[0] != 0) return;
    const double alpha = numbers[ALPHA], at_anchor = numbers[AT_P];
#pragma unroll 4
    for (INDEX i = first_row(); i < n_rows; i += row_stride()) {
        r[i] -= alpha * image(__ldg(p + i), product, diagonal, table, i, at_anchor);
    }
}

// omega = (t . r) / (t . t), or 0 where t is.
extern "C" __global__ void __launch_bounds__(THREADS)
find_omega(const INDEX n_rows, MEETING, double *numbers, const long long *status, const INDEX anchor,
           const void *diagonal, const double *table, const double *__restrict__ r,
           const double *__restrict__ product) {
    if (status[0] != 0) return;
    const double at_anchor = ANCHORED ? r[anchor] : 0.0;
    double sums[2] = {0.0, 0.0};
#pragma unroll 4
    for (INDEX i = first_row(); i < n_rows; i += row_stride()) {
        const double residual = __ldg(r + i);
        const double t = image(residual, product, diagonal, table, i, at_anchor);
        sums[0] += t * residual;
        sums[1] += t * t;
    }
    if (!add_grid(sums, partials, arrived)) return;
    if (ANCHORED) numbers[AT_R] = at_anchor;
    numbers[OMEGA] = sums[1] > 0.0 ? sums[0] / sums[1] : 0.0;
}

// x += alpha p + omega r, r -= omega t; then whether to go on, and beta.
//
// It has arrived if |r| is below `limit`, whatever else is zero by then; it breaks down if omega is zero, if |r| is no
// number, or if the cosine of r and shadow is not above `orthogonal`: their product would have lost its digits.
extern "C" __global__ void __launch_bounds__(THREADS)
move_iterate(const INDEX n_rows, MEETING, double *numbers, long long *status, const double limit,
             const double orthogonal, const void *diagonal, const double *table, const double *__restrict__ shadow,
             const double *__restrict__ p, const double *__restrict__ product, double *__restrict__ x,
             double *__restrict__ r) {
    if (status[0] != 0) return;
    const double alpha = numbers[ALPHA], omega = numbers[OMEGA], at_anchor = numbers[AT_R];
    double sums[2] = {0.0, 0.0};
#pragma unroll 4
    for (INDEX i = first_row(); i < n_rows; i += row_stride()) {
        const double before = r[i];
        const double residual = before - omega * image(before, product, diagonal, table, i, at_anchor);
        x[i] = x[i] + alpha * __ldg(p + i) + omega * before;
        r[i] = residual;
        sums[0] += residual * residual;
        sums[1] += __ldg(shadow + i) * residual;
    }
    if (!add_grid(sums, partials, arrived)) return;
    const double norm = sqrt(sums[0]), rho = numbers[RHO];
    numbers[NORM] = norm;
    numbers[RHO] = sums[1];
    numbers[BETA] = sums[1] / rho * (alpha / omega);
    if (norm < limit) status[0] = ARRIVED;
    else if (omega == 0.0 || !is_finite(norm)) status[0] = BROKEN;
    else if (!(fabs(sums[1]) > orthogonal * numbers[FIRST] * norm)) status[0] = BROKEN;
}

// p = r + beta (p - omega v)
extern "C" __global__ void __launch_bounds__(THREADS)
turn_direction(const INDEX n_rows, const double *numbers, const long long *status, const void *diagonal,
               const double *table, const double *__restrict__ r, const double *__restrict__ product,
               double *__restrict__ p) {
    if (status[0] != 0) return;
    const double omega = numbers[OMEGA], beta = numbers[BETA], at_anchor = numbers[AT_P];
#pragma unroll 4
    for (INDEX i = first_row(); i < n_rows; i += row_stride()) {
        const double before = p[i];
        p[i] = __ldg(r + i) + beta * (before - omega * image(before, product, diagonal, table, i, at_anchor));
    }
}
