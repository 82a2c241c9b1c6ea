// Vectors put together from blocks, equal ones held once.
//
// Macros: ELEMENT_BYTES  1 for truth, 8 for doubles

#include "ranges.cuh"

#if ELEMENT_BYTES == 1
using Element = unsigned char;
#else
using Element = double;
#endif

// Elements of the result that one warp writes.
constexpr long long SPAN = 512;

// Write block after block to `out`: number k begins at starts[k] in `flat` and ends at ends[k] in `out`.
//
// Launch: a warp a span, in blocks of 256 threads.
extern "C" __global__ void __launch_bounds__(256)
copy_blocks(const long long size, const long long count, const Element *__restrict__ flat,
            const long long *__restrict__ starts, const long long *__restrict__ ends, Element *__restrict__ out) {
    const long long warp = (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) / RANGE_LANES;
    const long long begin = warp * SPAN;
    copy_ranges(begin, begin + SPAN < size ? begin + SPAN : size, count, flat, starts, ends, out);
}
