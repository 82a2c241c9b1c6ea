// Sweeps over vectors alone: relaxation of rows multiplied before, differences of vectors, weighted sums.

#include "common.cuh"
#include "relax.cuh"

// Turn product = M x into the next iterate, as relax.cuh says; `out` may be `product`, or the product lies apart, so
// that steps queued after the end of an iteration leave the iterates alone. One thread a row, in a loop over the grid.
extern "C" __global__ void __launch_bounds__(256)
relax_rows(const INDEX n_rows, STEP_PARAMETERS, const double *__restrict__ x, const double *product, double *out) {
    const Step step = STEP;
    if (ended(step)) return;
    ChangeMaxima maxima;
    const INDEX stride = static_cast<INDEX>(gridDim.x) * blockDim.x;
    for (INDEX i = static_cast<INDEX>(blockIdx.x) * blockDim.x + threadIdx.x; i < n_rows; i += stride) {
        Operands operands;
        operands.load(step, i, x);
        finish_row(step, operands, i, product[i], out, maxima);
    }
    maxima.combine(step.changes);
}

// Measure how far apart two vectors are: greatest |x - y| and |x - y| / |x|, into 2 * CHANGE_SLOTS partial maxima.
extern "C" __global__ void __launch_bounds__(256)
compare_rows(const INDEX n_rows, const double *__restrict__ x, const double *__restrict__ y, BITS *changes) {
    ChangeMaxima maxima;
    const INDEX stride = static_cast<INDEX>(gridDim.x) * blockDim.x;
    for (INDEX i = static_cast<INDEX>(blockIdx.x) * blockDim.x + threadIdx.x; i < n_rows; i += stride) {
        maxima.see(__ldg(x + i), __ldg(y + i));
    }
    maxima.combine(changes);
}

// Add weight * x to total, or weight * factor * x with a factor that lies on the device.
extern "C" __global__ void __launch_bounds__(256)
add_scaled(const INDEX n_rows, const double weight, const double *factor, const double *__restrict__ x,
           double *__restrict__ total) {
    const double scale = factor == nullptr ? weight : weight * *factor;
    const INDEX stride = static_cast<INDEX>(gridDim.x) * blockDim.x;
    for (INDEX i = static_cast<INDEX>(blockIdx.x) * blockDim.x + threadIdx.x; i < n_rows; i += stride) {
        total[i] += scale * __ldg(x + i);
    }
}
