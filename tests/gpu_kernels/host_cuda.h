// CUDA's words for host C++, so that the kernels run on a machine without a device. Blocks run one after the other;
// the threads of a block are coroutines on one thread of the host, which change at barriers and shuffles. Included
// before the text of a kernel file.
#ifndef HOST_CUDA_H
#define HOST_CUDA_H

#include <ucontext.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <tuple>
#include <utility>
#include <vector>

#define HOST_KERNELS
#define __global__
#define __device__
#define __shared__
#define __launch_bounds__(...)
#define __restrict__
#define BLOCK_SHARED static

struct Place3 { unsigned x = 0, y = 0, z = 0; };
inline Place3 threadIdx, blockIdx, blockDim, gridDim;

// Dynamic shared memory: blocks run one after the other, so there is one copy.
alignas(64) double shared_words[1 << 13];

// A meeting point of threads that have not returned.
struct Meeting {
    int alive = 0, arrived = 0;
    unsigned generation = 0;
};
struct Warp {
    Meeting meeting;
    unsigned long long words[32];
};

constexpr std::size_t STACK_BYTES = 1 << 16;
struct Coroutine {
    ucontext_t context;
    std::vector<char> stack = std::vector<char>(STACK_BYTES);
    bool finished = false;
};
inline ucontext_t host_context;
inline std::vector<Coroutine> coroutines;
inline std::vector<Warp> warps;
inline Meeting block_meeting;
inline bool progress;  // whether some thread has come further since all were last resumed

inline void give_way() { swapcontext(&coroutines[threadIdx.x].context, &host_context); }

inline void open_if_all_are_there(Meeting &meeting) {
    if (meeting.arrived == 0 || meeting.arrived < meeting.alive) return;
    meeting.arrived = 0;
    ++meeting.generation;
    progress = true;
}
inline void meet(Meeting &meeting) {
    const unsigned generation = meeting.generation;
    ++meeting.arrived;
    progress = true;
    open_if_all_are_there(meeting);
    while (meeting.generation == generation) give_way();
}

inline void __syncthreads() { meet(block_meeting); }

template <class T>
T __shfl_xor_sync(unsigned, T value, int mask) {
    static_assert(sizeof(T) == 8);
    Warp &warp = warps[threadIdx.x / 32];
    const int lane = threadIdx.x % 32;
    std::memcpy(&warp.words[lane], &value, 8);
    meet(warp.meeting);
    T other;
    std::memcpy(&other, &warp.words[lane ^ mask], 8);
    meet(warp.meeting);
    return other;
}

inline int __clz(int value) { return value == 0 ? 32 : __builtin_clz(static_cast<unsigned>(value)); }
inline int min(int a, int b) { return a < b ? a : b; }

template <class T>
T __ldg(const T *address) { return *address; }

inline long long __double_as_longlong(double value) {
    long long bits;
    std::memcpy(&bits, &value, 8);
    return bits;
}
inline double __longlong_as_double(long long bits) {
    double value;
    std::memcpy(&value, &bits, 8);
    return value;
}

// Lanes of a warp that say true; every lane of the warp calls, as in all collectives of these kernels.
inline unsigned __ballot_sync(unsigned, bool vote) {
    Warp &warp = warps[threadIdx.x / 32];
    warp.words[threadIdx.x % 32] = vote;
    meet(warp.meeting);
    unsigned votes = 0;
    for (unsigned lane = 0; lane < 32; ++lane) {
        const unsigned thread = threadIdx.x / 32 * 32 + lane;
        if (thread < blockDim.x && !coroutines[thread].finished && warp.words[lane]) votes |= 1u << lane;
    }
    meet(warp.meeting);
    return votes;
}
template <class T>
T __shfl_sync(unsigned, T value, int source) {
    static_assert(sizeof(T) <= 8);
    Warp &warp = warps[threadIdx.x / 32];
    std::memcpy(&warp.words[threadIdx.x % 32], &value, sizeof(T));
    meet(warp.meeting);
    T other;
    std::memcpy(&other, &warp.words[source], sizeof(T));
    meet(warp.meeting);
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
inline void __syncwarp(unsigned = 0xffffffffu) { meet(warps[threadIdx.x / 32].meeting); }
inline int __syncthreads_or(int value) {
    static int any = 0;
    any |= value != 0;
    __syncthreads();
    const int answer = any;
    __syncthreads();
    any = 0;
    __syncthreads();
    return answer;
}
inline void __threadfence() {}
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

inline void (*thread_body)(void **);
inline void **thread_arguments;

inline void run_thread() {
    const unsigned t = threadIdx.x;
    thread_body(thread_arguments);
    coroutines[t].finished = true;
    progress = true;
    --block_meeting.alive;
    --warps[t / 32].meeting.alive;
    open_if_all_are_there(block_meeting);
    open_if_all_are_there(warps[t / 32].meeting);
}

inline void run_block(unsigned threads) {
    block_meeting = Meeting{static_cast<int>(threads)};
    warps.assign((threads + 31) / 32, Warp{});
    for (unsigned t = 0; t < threads; ++t) {
        ++warps[t / 32].meeting.alive;
        Coroutine &own = coroutines[t];
        own.finished = false;
        getcontext(&own.context);
        own.context.uc_stack.ss_sp = own.stack.data();
        own.context.uc_stack.ss_size = own.stack.size();
        own.context.uc_link = &host_context;
        makecontext(&own.context, run_thread, 0);
    }
    while (block_meeting.alive > 0) {
        progress = false;
        for (unsigned t = 0; t < threads; ++t) {
            if (coroutines[t].finished) continue;
            threadIdx.x = t;
            swapcontext(&host_context, &coroutines[t].context);
        }
        if (!progress) {
            std::fputs("host kernels: threads wait at different barriers\n", stderr);
            std::abort();
        }
    }
}

// Run a kernel; `arguments` points at the arguments' values, as for cuLaunchKernel.
template <auto kernel, class... A, std::size_t... I>
void host_call(void (*)(A...), void **arguments, std::index_sequence<I...>) {
    kernel(*static_cast<std::remove_const_t<A> *>(arguments[I])...);
}
template <auto kernel, class... A>
void host_body(void (*typed)(A...), void **arguments) {
    host_call<kernel>(typed, arguments, std::index_sequence_for<A...>());
}
template <auto kernel>
void host_launch(unsigned grid, unsigned block, void **arguments) {
    gridDim.x = grid;
    blockDim.x = block;
    if (coroutines.size() < block) coroutines.resize(block);
    thread_body = [](void **values) { host_body<kernel>(kernel, values); };
    thread_arguments = arguments;
    for (blockIdx.x = 0; blockIdx.x < grid; ++blockIdx.x) {
        // Nothing may rely on what the block before has left behind.
        std::memset(shared_words, 0xff, sizeof(shared_words));
        run_block(block);
    }
}

#endif
