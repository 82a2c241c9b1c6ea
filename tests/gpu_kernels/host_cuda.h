// CUDA's words for host C++, so that the kernels run on a machine without a device. Blocks run one after the other;
// the threads of a block are coroutines on one thread of the host, which change at barriers and shuffles. Included
// before the text of a kernel file; host_runtime.cpp has what all kernels share, compiled once. No header of the
// standard library is included: a hundred specialisations are compiled, and a header takes longer than a kernel.
//
// Accesses are checked. The launcher gives every argument a place of its own that ends or begins at a page which
// nobody may touch, so that an access beyond it is a signal; indices into arrays of known size (static shared memory,
// registers) are checked by the compiler's -fsanitize=bounds, which traps. Either ends the launch with a Fault.
#ifndef HOST_CUDA_H
#define HOST_CUDA_H

#define HOST_KERNELS
#define __global__
#define __device__
#define __shared__
#define __launch_bounds__(...)
#define __restrict__
#define BLOCK_SHARED static

using Bytes = decltype(sizeof(0));
extern "C" double fabs(double);
extern "C" double sqrt(double);

struct Place3 { unsigned x = 0, y = 0, z = 0; };
extern Place3 threadIdx, blockIdx, blockDim, gridDim;

// Dynamic shared memory, of the launcher: blocks run one after the other, so there is one copy.
extern double *host_shared;

// A meeting point of threads that have not returned.
struct Meeting {
    int alive = 0, arrived = 0;
    unsigned generation = 0;
};
// What the lanes of a warp tell one another: words of this meeting, and of the one before it, which those that go on
// late still read. Nobody comes to the next meeting but one before they have.
struct Warp {
    Meeting meeting;
    unsigned long long words[2][32];
    unsigned long long *own_words() { return words[meeting.generation % 2]; }
};
extern Warp *warps;

void meet(Meeting &meeting);
void __syncthreads();

inline void __syncwarp(unsigned = 0xffffffffu) { meet(warps[threadIdx.x / 32].meeting); }

template <class To, class From>
To same_bits(From value) {
    static_assert(sizeof(To) == sizeof(From));
    return __builtin_bit_cast(To, value);
}
inline long long __double_as_longlong(double value) { return same_bits<long long>(value); }
inline double __longlong_as_double(long long bits) { return same_bits<double>(bits); }

template <class T>
T __shfl_xor_sync(unsigned, T value, int mask) {
    static_assert(sizeof(T) == 8);
    Warp &warp = warps[threadIdx.x / 32];
    unsigned long long *words = warp.own_words();
    const int lane = threadIdx.x % 32;
    __builtin_memcpy(&words[lane], &value, 8);
    meet(warp.meeting);
    T other;
    __builtin_memcpy(&other, &words[lane ^ mask], 8);
    return other;
}

inline int __clz(int value) { return value == 0 ? 32 : __builtin_clz(static_cast<unsigned>(value)); }
inline int min(int a, int b) { return a < b ? a : b; }

template <class T>
T __ldg(const T *address) { return *address; }

// Lanes of a warp that say true; every lane of the warp calls, as in all collectives of these kernels.
inline unsigned __ballot_sync(unsigned, bool vote) {
    Warp &warp = warps[threadIdx.x / 32];
    unsigned long long *words = warp.own_words();
    // With the number of the meeting: lanes at their end have left words of an earlier one.
    const unsigned long long number = warp.meeting.generation;
    words[threadIdx.x % 32] = 2 * number + vote;
    meet(warp.meeting);
    unsigned votes = 0;
    for (unsigned lane = 0; lane < 32; ++lane)
        if (words[lane] == 2 * number + 1) votes |= 1u << lane;
    return votes;
}
template <class T>
T __shfl_sync(unsigned, T value, int source) {
    static_assert(sizeof(T) <= 8);
    Warp &warp = warps[threadIdx.x / 32];
    unsigned long long *words = warp.own_words();
    __builtin_memcpy(&words[threadIdx.x % 32], &value, sizeof(T));
    meet(warp.meeting);
    T other;
    __builtin_memcpy(&other, &words[source], sizeof(T));
    return other;
}
// As on the device, a lane without a right neighbour at this distance keeps its own value.
template <class T>
T __shfl_down_sync(unsigned mask, T value, int distance) {
    const int lane = threadIdx.x % 32;
    return __shfl_sync(mask, value, lane + distance < 32 ? lane + distance : lane);
}
template <class T>
unsigned __match_any_sync(unsigned mask, T value) {
    unsigned peers = 0;
    for (int lane = 0; lane < 32; ++lane) {
        const T other = __shfl_sync(mask, value, lane);
        if (other == value) peers |= 1u << lane;
    }
    return peers & __ballot_sync(mask, true);
}
int __syncthreads_or(int value);
inline void __threadfence() {}
inline void __threadfence_system() {}
inline int __ffs(unsigned bits) { return __builtin_ffs(static_cast<int>(bits)); }
inline int __popc(unsigned bits) { return __builtin_popcount(bits); }

// Atomics return the value before, as on the device. Threads of a block change at meetings alone.
template <class T>
T exchange_word(T *address, T next) {
    const T before = *address;
    *address = next;
    return before;
}
inline unsigned atomicAdd(unsigned *a, unsigned v) { return exchange_word(a, *a + v); }
inline unsigned long long atomicAdd(unsigned long long *a, unsigned long long v) { return exchange_word(a, *a + v); }
inline int atomicAdd(int *a, int v) { return exchange_word(a, *a + v); }
inline unsigned atomicOr(unsigned *a, unsigned v) { return exchange_word(a, *a | v); }
inline unsigned long long atomicOr(unsigned long long *a, unsigned long long v) { return exchange_word(a, *a | v); }
inline unsigned atomicAnd(unsigned *a, unsigned v) { return exchange_word(a, *a & v); }
inline unsigned long long atomicAnd(unsigned long long *a, unsigned long long v) { return exchange_word(a, *a & v); }
inline unsigned atomicMax(unsigned *a, unsigned v) { return exchange_word(a, *a > v ? *a : v); }
inline unsigned long long atomicMax(unsigned long long *a, unsigned long long v) { return exchange_word(a, *a > v ? *a : v); }
inline unsigned atomicMin(unsigned *a, unsigned v) { return exchange_word(a, *a < v ? *a : v); }
inline unsigned long long atomicMin(unsigned long long *a, unsigned long long v) { return exchange_word(a, *a < v ? *a : v); }
inline unsigned atomicExch(unsigned *a, unsigned v) { return exchange_word(a, v); }
inline unsigned long long atomicExch(unsigned long long *a, unsigned long long v) { return exchange_word(a, v); }
inline unsigned atomicCAS(unsigned *a, unsigned seen, unsigned next) { return *a == seen ? exchange_word(a, next) : *a; }
inline unsigned long long atomicCAS(unsigned long long *a, unsigned long long seen, unsigned long long next) {
    return *a == seen ? exchange_word(a, next) : *a;
}
inline void atomicAdd(double *address, double value) {
    long long seen, next;
    __atomic_load(reinterpret_cast<long long *>(address), &seen, __ATOMIC_RELAXED);
    do {
        next = __double_as_longlong(__longlong_as_double(seen) + value);
    } while (!__atomic_compare_exchange(reinterpret_cast<long long *>(address), &seen, &next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

// Why a launch ended early, and where.
struct Fault {
    int signal;  // 0: it did not; DEADLOCK: threads wait at different barriers
    unsigned block, thread;
    const void *address;
};

// Run a body for every thread; `arguments` points at the arguments' values, as for cuLaunchKernel.
void host_run(
    void (*body)(void **), unsigned grid, unsigned block, void **arguments, double *shared, Bytes bytes, Fault *why
);

template <class T> struct HostPlain { using type = T; };
template <class T> struct HostPlain<const T> { using type = T; };
template <Bytes... I> struct HostPlaces {};

template <auto kernel, class... A, Bytes... I>
void host_call(void (*)(A...), void **arguments, HostPlaces<I...>) {
    kernel(*static_cast<typename HostPlain<A>::type *>(arguments[I])...);
}
template <auto kernel, class... A>
void host_body(void (*typed)(A...), void **arguments) {
    host_call<kernel>(typed, arguments, HostPlaces<__integer_pack(sizeof...(A))...>());
}
template <auto kernel>
void host_launch(unsigned grid, unsigned block, void **arguments, double *shared, Bytes bytes, Fault *why) {
    host_run([](void **values) { host_body<kernel>(kernel, values); }, grid, block, arguments, shared, bytes, why);
}

#endif
