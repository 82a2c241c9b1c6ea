// A relaxation step whose product has been made before, for products that cannot relax rows on the way.

#include "common.cuh"
#include "relax.cuh"

// Turn out = M x into the next iterate, as relax.cuh says. One thread a row, in a loop over the grid.
extern "C" __global__ void __launch_bounds__(256)
relax_rows(const INDEX n_rows, STEP_PARAMETERS, const double *__restrict__ x, double *out) {
    const Step step = STEP;
    if (ended(step)) return;
    ChangeMaxima maxima;
    const INDEX stride = static_cast<INDEX>(gridDim.x) * blockDim.x;
    for (INDEX i = static_cast<INDEX>(blockIdx.x) * blockDim.x + threadIdx.x; i < n_rows; i += stride) {
        Operands operands;
        operands.load(step, i, x);
        finish_row(step, operands, i, out[i], out, maxima);
    }
    maxima.combine(step.changes);
}
