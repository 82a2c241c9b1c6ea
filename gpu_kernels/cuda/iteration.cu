// The end of an iteration: second pass of the reduction and the stopping test, all on the device.

#include "common.cuh"
#include "relax.cuh"

// Combine the partial maxima of an iteration, clear them, and decide.
//
// changes        2 * CHANGE_SLOTS partial maxima of absolute and relative changes; zero afterwards
// status         {how the iteration ended (0 not yet, 1 converged, 2 diverged), iterations done}
// differences    {greatest absolute, greatest relative change} of the last iteration done
// is_absolute    which of the two is compared with epsilon; an epsilon of 0 lets only divergence end the iteration,
//                a negative one nothing: the changes are measured and no more
//
// Launch: one block of CHANGE_SLOTS threads. Once status[0] is set nothing changes any more, so that iterations
// queued beyond the last one do no harm. Source: [Tealdi13] §4.4.2.2.
extern "C" __global__ void __launch_bounds__(CHANGE_SLOTS)
finish_iteration(BITS *changes, long long *status, double *differences, const double epsilon, const int is_absolute) {
    BLOCK_SHARED BITS partial[2 * CHANGE_SLOTS / LANES];
    if (status[0] != 0) return;
    const int i = threadIdx.x;
    constexpr int WARPS = CHANGE_SLOTS / LANES;
    BITS absolute = warp_maximum(changes[i]);
    BITS relative = warp_maximum(changes[CHANGE_SLOTS + i]);
    changes[i] = 0;
    changes[CHANGE_SLOTS + i] = 0;
    if (i % LANES == 0) {
        partial[i / LANES] = absolute;
        partial[WARPS + i / LANES] = relative;
    }
    __syncthreads();
    if (i != 0) return;
    for (int warp = 1; warp < WARPS; ++warp) {
        absolute = larger(absolute, partial[warp]);
        relative = larger(relative, partial[WARPS + warp]);
    }
    const double greatest = __longlong_as_double(static_cast<long long>(absolute));
    const double proportion = __longlong_as_double(static_cast<long long>(relative));
    differences[0] = greatest;
    differences[1] = proportion;
    status[1] += 1;
    if (epsilon < 0.0) return;
    // Asked first: infinity over infinity would pass for no difference.
    if (!(greatest <= 1.7976931348623157e308)) status[0] = 2;
    else if ((is_absolute ? greatest : proportion) < epsilon) status[0] = 1;
}
