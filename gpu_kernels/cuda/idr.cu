// The recurrence of IDR(s) for A x = b / diagonal with A = I - M / diagonal: a cycle is s + 1 products.
//
//   aim(0), then for every direction: product with u[k] -> image_sums(k) -> settle(k), which aims at the next one;
//   then product with r -> step_sums -> move_rows
//
// The few numbers of the recurrence lie on the device, too: the block that is done last with a sum (grid_sums.cuh)
// draws the conclusions.  Once the recurrence has ended, status[0] is not 0, and all kernels but begin_idr leave
// everything as it is.
//
// Shadow vectors, `weights`, directions u and their images g, DIRECTIONS: shadow_rows.cuh.  A shadow vector that is held
// is the residual that the recurrence began with.
//
// Launch, all of them: blocks of THREADS threads, as many as there are places for sums at most, a thread a row in a loop
// over the grid.
// Macros besides those of common.cuh:
//   DIAGONAL_BITS   8, 16 or 64: how the diagonal is held; 0: products are divided by it already
//   ANCHORED        0, or 1: A x is x - (M x - x[anchor]) / diagonal; the diagonal has bits then
// Residual, directions and images have elements of type REAL; the iterate and the fresh residual have doubles.
// Source: [vGS11]

#include "common.cuh"
#include "grid_sums.cuh"
#include "shadow_rows.cuh"

constexpr double LARGEST = 1.7976931348623157e308;

// Places in `numbers`, and values of status[0]; status[1] counts cycles.
constexpr int SHARES = 0;     // s: what the next direction takes of those of the last space
constexpr int TAKEN = 4;      // s - 1: what the direction loses to those before it
constexpr int OMEGA = 8;
constexpr int NORM = 9;       // of the residual, weighed
constexpr int GREATEST = 10;  // norm since the last fresh residual
constexpr int FIRST = 11;     // norm that the recurrence began with
constexpr int LEFT = 12;      // s: products of the residual with the shadow vectors
constexpr int IMAGES = 16;    // s by s: products of the shadow vectors, by row, with the images
constexpr int BETAS = 32;     // s: steps along the directions of this cycle
constexpr int AT_ANCHOR = 36; // of the vector that was multiplied last, as it was then
constexpr long long ARRIVED = 1;
constexpr long long BROKEN = 2;
constexpr long long ORTHOGONAL = 3;  // the residual to the only shadow vector: the recurrence has to begin anew

__device__ inline bool is_finite(double value) { return fabs(value) <= LARGEST; }

// Rows that a thread reads before it writes to any of them, so that their latencies overlap.
constexpr int AT_ONCE = 2;

// A number divided by element i of the diagonal.  A diagonal by dictionary has a table of reciprocals: nothing of a guess
// depends on its last digit.
template <typename T>
__device__ inline T divided(T value, const void *diagonal, const double *table, INDEX i) {
#if DIAGONAL_BITS == 0
    return value;
#elif DIAGONAL_BITS == 64
    return value / static_cast<T>(Coded<DIAGONAL_BITS>::at(diagonal, table, i));
#else
    return value * static_cast<T>(Coded<DIAGONAL_BITS>::at(diagonal, table, i));
#endif
}

// Element i of A x, from that of x, from the product, and from x[anchor].
__device__ inline REAL image_of(REAL x, REAL product, const void *diagonal, const double *table, INDEX i,
                                REAL at_anchor) {
#if ANCHORED
    return x - divided(product - at_anchor, diagonal, table, i);
#else
    return x - divided(product, diagonal, table, i);
#endif
}

// What direction k takes of those of the last space: the solution of a triangular system, zero before k.
__device__ inline void find_shares(double *numbers, int k) {
    double shares[DIRECTIONS] = {};
    for (int i = k; i < DIRECTIONS; ++i) {
        double value = numbers[LEFT + i];
        for (int j = k; j < i; ++j) value -= numbers[IMAGES + i * DIRECTIONS + j] * shares[j];
        shares[i] = value / numbers[IMAGES + i * DIRECTIONS + i];
    }
    for (int i = 0; i < DIRECTIONS; ++i) numbers[SHARES + i] = shares[i];
}

// Take note of image k's products with the shadow vectors; whether nothing broke down.
__device__ inline bool take_image(double *numbers, int k, const double *sums) {
    double column[DIRECTIONS];
    for (int i = 0; i < DIRECTIONS; ++i) column[i] = sums[i];
    for (int i = 0; i < k; ++i) {
        const double share = column[i] / numbers[IMAGES + i * DIRECTIONS + i];
        for (int j = i; j < DIRECTIONS; ++j) column[j] -= share * numbers[IMAGES + j * DIRECTIONS + i];
        numbers[TAKEN + i] = share;
    }
    bool finite = column[k] != 0.0;
    for (int i = k; i < DIRECTIONS; ++i) {
        numbers[IMAGES + i * DIRECTIONS + k] = column[i];
        finite = finite && is_finite(column[i]);
    }
    const double beta = numbers[LEFT + k] / column[k];
    if (!finite || !is_finite(beta)) return false;
    numbers[BETAS + k] = beta;
    numbers[LEFT + k] = 0.0;
    for (int i = k + 1; i < DIRECTIONS; ++i) numbers[LEFT + i] -= beta * column[i];
    if (k + 1 < DIRECTIONS) find_shares(numbers, k + 1);
    return true;
}

// From the residual of x: `fresh` is (M x + b) / diagonal, and r becomes b / diagonal - A x; with doubles they are the
// same vector.  A recurrence that is not new keeps its images.  It has arrived already if the norm is below `limit`, and
// cannot begin from one that is no number.
extern "C" __global__ void __launch_bounds__(THREADS)
begin_idr(const INDEX n_rows, MEETING, double *numbers, long long *status, const double limit, const double *weights,
          const INDEX anchor, const void *diagonal, const double *table, const double *__restrict__ x,
          const double *fresh, REAL *r, REAL *shadow, const int is_new) {
    double sums[DIRECTIONS + 1] = {};
    for (INDEX i = first_row(); i < n_rows; i += row_stride()) {
        double residual = fresh[i] - __ldg(x + i);
#if ANCHORED
        residual -= divided(__ldg(x + anchor), diagonal, table, i);
#endif
        r[i] = residual;
#if DIRECTIONS == 1
        if (is_new) shadow[i] = residual;
#endif
        add_shadows(sums, residual, weights, shadow, i);
    }
    if (!add_grid(sums, partials, arrived)) return;
    const double norm = sqrt(sums[DIRECTIONS]);
    for (int k = 0; k < DIRECTIONS; ++k) numbers[LEFT + k] = sums[k];
    numbers[NORM] = norm;
    numbers[GREATEST] = norm;
    if (is_new) {
        numbers[FIRST] = norm;
        numbers[OMEGA] = 1.0;
        for (int k = 0; k < DIRECTIONS * DIRECTIONS; ++k) numbers[IMAGES + k] = k % (DIRECTIONS + 1) == 0;
    }
    find_shares(numbers, 0);
    status[0] = !is_finite(norm) ? BROKEN : norm < limit ? ARRIVED : 0;
}

// The first direction of a cycle.
extern "C" __global__ void __launch_bounds__(THREADS)
aim(const INDEX n_rows, const double *numbers, const long long *status, const REAL *__restrict__ r, REAL *u,
    const REAL *g) {
    if (status[0] != 0) return;
    REAL shares[DIRECTIONS];
    for (int k = 0; k < DIRECTIONS; ++k) shares[k] = numbers[SHARES + k];
    const REAL omega = numbers[OMEGA];
    const long long n = n_rows;
    for (INDEX i = first_row(); i < n_rows; i += row_stride()) {
        u[i] = aimed(0, shares, omega, __ldg(r + i), u, g, n, i);
    }
}

// From g[k] = M u[k]: what follows from the image A u[k], which nobody writes yet.  A direction that breaks down ends the
// cycle, which counts.
extern "C" __global__ void __launch_bounds__(THREADS)
image_sums(const INDEX n_rows, MEETING, double *numbers, long long *status, const double *weights, const INDEX anchor,
           const void *diagonal, const double *table, const REAL *__restrict__ shadow, const int k, const REAL *u,
           const REAL *g) {
    if (status[0] != 0) return;
    const long long place = static_cast<long long>(k) * n_rows;
    const REAL *__restrict__ x = u + place, *__restrict__ product = g + place;
    const REAL at_anchor = ANCHORED ? x[anchor] : REAL(0);
    double sums[DIRECTIONS + 1] = {};
#pragma unroll 4
    for (INDEX i = first_row(); i < n_rows; i += row_stride()) {
        const REAL image = image_of(__ldg(x + i), __ldg(product + i), diagonal, table, i, at_anchor);
        add_shadows(sums, image, weights, shadow, i);
    }
    if (!add_grid(sums, partials, arrived)) return;
    numbers[AT_ANCHOR] = at_anchor;
    if (take_image(numbers, k, sums)) return;
    status[0] = BROKEN;
    status[1] += 1;
}

// What `settle` does, with direction K.
template <int K>
__device__ inline void settle_rows(const INDEX n_rows, const double *numbers, const void *diagonal, const double *table,
                                   REAL *u, REAL *g, REAL *__restrict__ r, double *__restrict__ x) {
    constexpr bool IS_LAST = K + 1 == DIRECTIONS;
    REAL shares[DIRECTIONS], taken[DIRECTIONS], betas[DIRECTIONS];
    for (int j = 0; j < DIRECTIONS; ++j) shares[j] = numbers[SHARES + j], betas[j] = numbers[BETAS + j];
    for (int j = 0; j < K; ++j) taken[j] = numbers[TAKEN + j];
    const REAL omega = numbers[OMEGA], at_anchor = numbers[AT_ANCHOR];
    const long long n = n_rows;
    const INDEX stride = row_stride();
    for (INDEX first = first_row(); first < n_rows; first += AT_ONCE * stride) {
        REAL directions[AT_ONCE][DIRECTIONS], images[AT_ONCE][DIRECTIONS], residuals[AT_ONCE];
        double iterates[AT_ONCE];
#pragma unroll
        for (int a = 0; a < AT_ONCE; ++a) {
            const INDEX i = first + a * stride;
            if (i >= n_rows) break;
#pragma unroll
            for (int j = 0; j < DIRECTIONS; ++j) directions[a][j] = u[j * n + i], images[a][j] = g[j * n + i];
            residuals[a] = r[i];
            if (IS_LAST) iterates[a] = x[i];
        }
#pragma unroll
        for (int a = 0; a < AT_ONCE; ++a) {
            const INDEX i = first + a * stride;
            if (i >= n_rows) break;
            REAL direction = directions[a][K], residual = residuals[a];
            REAL image = image_of(direction, images[a][K], diagonal, table, i, at_anchor);
            double iterate = iterates[a];
#pragma unroll
            for (int j = 0; j < K; ++j) {
                direction -= taken[j] * directions[a][j];
                image -= taken[j] * images[a][j];
                residual -= betas[j] * images[a][j];
                if (IS_LAST) iterate += betas[j] * directions[a][j];
            }
            residual -= betas[K] * image;
            if (K > 0) u[K * n + i] = direction;
            g[K * n + i] = image;
            if (IS_LAST) {
                x[i] = iterate + betas[K] * direction;
                r[i] = residual;
            } else {
                REAL next = omega * residual;
#pragma unroll
                for (int j = K + 1; j < DIRECTIONS; ++j) next += shares[j] * (directions[a][j] - omega * images[a][j]);
                u[(K + 1) * n + i] = next;
            }
        }
    }
}

// The image of direction k is written; both lose their shares of those before; then the next direction.  The last one of
// a cycle moves x and r instead, along all of them: x += beta u[j], r -= beta g[j].
extern "C" __global__ void __launch_bounds__(THREADS)
settle(const INDEX n_rows, const double *numbers, const long long *status, const void *diagonal, const double *table,
       const int k, REAL *u, REAL *g, REAL *__restrict__ r, double *__restrict__ x) {
    if (status[0] != 0) return;
#if DIRECTIONS == 1
    settle_rows<0>(n_rows, numbers, diagonal, table, u, g, r, x);
#else
    if (k == 0) settle_rows<0>(n_rows, numbers, diagonal, table, u, g, r, x);
    else if (k == 1) settle_rows<1>(n_rows, numbers, diagonal, table, u, g, r, x);
    else if (k == 2) settle_rows<2>(n_rows, numbers, diagonal, table, u, g, r, x);
    else settle_rows<3>(n_rows, numbers, diagonal, table, u, g, r, x);
#endif
}

// From t = M r: omega makes the residual small, but is no less than `kappa` allows.  A residual that is below `limit` by
// now has arrived, whatever else is zero.
extern "C" __global__ void __launch_bounds__(THREADS)
step_sums(const INDEX n_rows, MEETING, double *numbers, long long *status, const double limit, const double *weights,
          const INDEX anchor, const void *diagonal, const double *table, const double kappa,
          const REAL *__restrict__ r, const REAL *__restrict__ t) {
    if (status[0] != 0) return;
    const REAL at_anchor = ANCHORED ? __ldg(r + anchor) : REAL(0);
    double sums[3] = {};
#pragma unroll 4
    for (INDEX i = first_row(); i < n_rows; i += row_stride()) {
        const REAL before = __ldg(r + i), after = image_of(before, __ldg(t + i), diagonal, table, i, at_anchor);
        const double residual = weighed(before, weights, i), image = weighed(after, weights, i);
        sums[0] += image * residual;
        sums[1] += image * image;
        sums[2] += residual * residual;
    }
    if (!add_grid(sums, partials, arrived)) return;
    const double cosine = fabs(sums[0]) / sqrt(sums[1]) / sqrt(sums[2]);
    double omega = sums[0] / sums[1];
    if (cosine < kappa) omega *= kappa / cosine;
    numbers[OMEGA] = omega;
    numbers[AT_ANCHOR] = at_anchor;
    const double norm = sqrt(sums[2]);
    const bool is_there = norm < limit;
    if (is_there) numbers[NORM] = norm;
    else if (sums[1] > 0.0 && norm > 0.0 && sums[0] != 0.0 && is_finite(sums[1] + sums[2]) && is_finite(omega)) return;
    status[0] = is_there ? ARRIVED : BROKEN;
    status[1] += 1;
}

// x += omega r, then r loses omega times its image; another cycle is done.  It breaks down if the norm has grown beyond
// `lost` times the first one, or is no number.  It has to begin anew if the cosine of r and the only shadow vector is
// not above `orthogonal`: their product has lost its digits.
extern "C" __global__ void __launch_bounds__(THREADS)
move_rows(const INDEX n_rows, MEETING, double *numbers, long long *status, const double limit, const double lost,
          const double orthogonal, const double *weights, const void *diagonal, const double *table,
          const REAL *__restrict__ shadow, const REAL *__restrict__ t, REAL *__restrict__ r, double *__restrict__ x) {
    if (status[0] != 0) return;
    const REAL omega = numbers[OMEGA], at_anchor = numbers[AT_ANCHOR];
    double sums[DIRECTIONS + 1] = {};
    const INDEX stride = row_stride();
    for (INDEX first = first_row(); first < n_rows; first += AT_ONCE * stride) {
        REAL before[AT_ONCE], products[AT_ONCE];
        double iterates[AT_ONCE];
#pragma unroll
        for (int a = 0; a < AT_ONCE; ++a) {
            const INDEX i = first + a * stride;
            if (i < n_rows) before[a] = r[i], products[a] = __ldg(t + i), iterates[a] = x[i];
        }
#pragma unroll
        for (int a = 0; a < AT_ONCE; ++a) {
            const INDEX i = first + a * stride;
            if (i >= n_rows) break;
            const REAL after = before[a] - omega * image_of(before[a], products[a], diagonal, table, i, at_anchor);
            x[i] = iterates[a] + omega * before[a];
            r[i] = after;
            add_shadows(sums, after, weights, shadow, i);
        }
    }
    if (!add_grid(sums, partials, arrived)) return;
    const double norm = sqrt(sums[DIRECTIONS]);
    for (int k = 0; k < DIRECTIONS; ++k) numbers[LEFT + k] = sums[k];
    numbers[NORM] = norm;
    if (norm > numbers[GREATEST]) numbers[GREATEST] = norm;
    find_shares(numbers, 0);
    status[1] += 1;
    if (!(norm <= lost * numbers[FIRST])) status[0] = BROKEN;
    else if (norm < limit) status[0] = ARRIVED;
    else if (DIRECTIONS == 1 && !(fabs(sums[0]) > orthogonal * numbers[FIRST] * norm)) status[0] = ORTHOGONAL;
}
