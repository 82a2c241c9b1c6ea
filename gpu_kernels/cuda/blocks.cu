// Vectors put together from blocks, equal ones held once.
//
// Macros: ELEMENT_BYTES  1 for truth, 8 for doubles

#if ELEMENT_BYTES == 1
using Element = unsigned char;
#else
using Element = double;
#endif

// Elements of the result that one block of threads writes.
constexpr long long SPAN = 4096;

// Write block after block to `out`: number k begins at starts[k] in `flat` and ends at ends[k] in `out`. A block of
// threads finds by bisection which of them covers its first element, and goes on from there.
extern "C" __global__ void __launch_bounds__(256)
copy_blocks(const long long size, const long long count, const Element *__restrict__ flat,
            const long long *__restrict__ starts, const long long *__restrict__ ends, Element *__restrict__ out) {
    const long long begin = static_cast<long long>(blockIdx.x) * SPAN;
    const long long last = begin + SPAN < size ? begin + SPAN : size;
    long long low = 0, high = count - 1;
    while (low < high) {
        const long long middle = (low + high) / 2;
        if (ends[middle] > begin) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    for (long long at = begin; at < last; ++low) {
        const long long stop = ends[low] < last ? ends[low] : last;
        const long long shift = starts[low] - (low == 0 ? 0 : ends[low - 1]);
        for (long long i = at + threadIdx.x; i < stop; i += blockDim.x) {
            out[i] = flat[i + shift];
        }
        at = stop;
    }
}
