// CUDA's words for host C++, so that the kernels run on a machine without a device. Blocks run one after the other;
// the threads of a block are coroutines on one thread of the host, which change at barriers and shuffles. Included
// before the text of a kernel file.
//
// Accesses are checked. The launcher gives every argument a place of its own that ends or begins at a page which
// nobody may touch, so that an access beyond it is a signal; indices into arrays of known size (static shared memory,
// registers) are checked by the compiler's -fsanitize=bounds, which traps. Either ends the launch with a Fault.
#ifndef HOST_CUDA_H
#define HOST_CUDA_H

#include <setjmp.h>
#include <signal.h>
#include <ucontext.h>

#include <cmath>
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

// Dynamic shared memory, of the launcher: blocks run one after the other, so there is one copy.
inline double *host_shared;

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
    ucontext_t context;  // enters the coroutine for the first time
    jmp_buf place;       // where it goes on: unlike swapcontext, a jump asks nothing of the system
    std::vector<char> stack = std::vector<char>(STACK_BYTES);
    bool entered = false, finished = false;
};
inline jmp_buf host_place;
inline std::vector<Coroutine> coroutines;
inline std::vector<Warp> warps;
inline Meeting block_meeting;
inline bool progress;  // whether some thread has come further since all were last resumed

__attribute__((noinline)) inline void give_way() {
    if (_setjmp(coroutines[threadIdx.x].place) == 0) _longjmp(host_place, 1);
}
__attribute__((noinline)) inline void resume(Coroutine &own) {
    if (_setjmp(host_place) != 0) return;
    if (own.entered) _longjmp(own.place, 1);
    own.entered = true;
    setcontext(&own.context);
}

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

// A coroutine runs a thread of one block after the other, and never ends.
inline void run_threads() {
    while (true) {
        thread_body(thread_arguments);
        const unsigned t = threadIdx.x;
        coroutines[t].finished = true;
        progress = true;
        --block_meeting.alive;
        --warps[t / 32].meeting.alive;
        open_if_all_are_there(block_meeting);
        open_if_all_are_there(warps[t / 32].meeting);
        give_way();
    }
}

inline void make_coroutines(unsigned threads) {
    if (coroutines.size() < threads) coroutines = std::vector<Coroutine>(threads);
    for (Coroutine &own : coroutines) {
        if (own.entered) continue;
        getcontext(&own.context);
        own.context.uc_stack.ss_sp = own.stack.data();
        own.context.uc_stack.ss_size = own.stack.size();
        own.context.uc_link = nullptr;
        makecontext(&own.context, run_threads, 0);
    }
}

// Return whether all threads came to their end; otherwise they wait at different barriers.
inline bool run_block(unsigned threads) {
    block_meeting = Meeting{static_cast<int>(threads)};
    warps.assign((threads + 31) / 32, Warp{});
    for (unsigned t = 0; t < threads; ++t) {
        ++warps[t / 32].meeting.alive;
        coroutines[t].finished = false;
    }
    while (block_meeting.alive > 0) {
        progress = false;
        for (unsigned t = 0; t < threads; ++t) {
            if (coroutines[t].finished) continue;
            threadIdx.x = t;
            resume(coroutines[t]);
        }
        if (!progress) return false;
    }
    return true;
}

// Why a launch ended early, and where.
constexpr int DEADLOCK = -1;
struct Fault {
    int signal;  // 0: it did not; DEADLOCK: threads wait at different barriers
    unsigned block, thread;
    const void *address;
};
inline Fault fault;
inline jmp_buf fault_place;

inline void on_signal(int signal, siginfo_t *info, void *) {
    fault = Fault{signal, blockIdx.x, threadIdx.x, info->si_addr};
    _longjmp(fault_place, 1);
}

struct Handlers {
    static constexpr int SIGNALS[3] = {SIGSEGV, SIGBUS, SIGILL};
    struct sigaction before[3];
    Handlers() {
        struct sigaction own {};
        own.sa_sigaction = on_signal;
        own.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
        for (int i = 0; i < 3; ++i) sigaction(SIGNALS[i], &own, &before[i]);
    }
    ~Handlers() {
        for (int i = 0; i < 3; ++i) sigaction(SIGNALS[i], &before[i], nullptr);
    }
};

// Run a kernel; `arguments` points at the arguments' values, as for cuLaunchKernel.
template <auto kernel, class... A, std::size_t... I>
void host_call(void (*)(A...), void **arguments, std::index_sequence<I...>) {
    kernel(*static_cast<std::remove_const_t<A> *>(arguments[I])...);
}
template <auto kernel, class... A>
void host_body(void (*typed)(A...), void **arguments) {
    host_call<kernel>(typed, arguments, std::index_sequence_for<A...>());
}
inline void run_grid(unsigned grid, unsigned block, std::size_t shared_bytes) {
    const Handlers handlers;
    if (_setjmp(fault_place) != 0) return;
    for (blockIdx.x = 0; blockIdx.x < grid; ++blockIdx.x) {
        // Nothing may rely on what the block before has left behind.
        std::memset(host_shared, 0xff, shared_bytes);
        if (!run_block(block)) {
            fault = Fault{DEADLOCK, blockIdx.x, 0, nullptr};
            return;
        }
    }
}
template <auto kernel>
void host_launch(unsigned grid, unsigned block, void **arguments, double *shared, std::size_t bytes, Fault *why) {
    gridDim.x = grid;
    blockDim.x = block;
    host_shared = shared;
    make_coroutines(block);
    thread_body = [](void **values) { host_body<kernel>(kernel, values); };
    thread_arguments = arguments;
    fault = Fault{};
    run_grid(grid, block, bytes);
    *why = fault;
    if (fault.signal == 0) return;
    for (Coroutine &own : coroutines) own.entered = false;  // left in the midst of a thread
}

#endif
