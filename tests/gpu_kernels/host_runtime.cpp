// What all emulated kernels share: the threads of a block as coroutines, the barriers at which they change, and the
// signals that end a launch. Compiled once, and loaded before the kernels, which find its names there.
#include "host_cuda.h"

#include <setjmp.h>
#include <signal.h>
#include <ucontext.h>

#include <cstring>
#include <vector>

Place3 threadIdx, blockIdx, blockDim, gridDim;
double *host_shared;
Warp *warps;

namespace {

constexpr Bytes STACK_BYTES = 1 << 16;
// Stacks begin at other places of their pages each, or all of them would share a few lines of the cache.
constexpr Bytes COLOUR_BYTES = 320, COLOURS = 12;
// The compiler's own jumps: three words are kept, where the library's save all registers and mangle addresses.
using Resumption = void *[5];
struct Coroutine {
    ucontext_t context;  // enters the coroutine for the first time
    Resumption place;    // where it goes on: unlike swapcontext, a jump asks nothing of the system
    std::vector<char> stack = std::vector<char>(STACK_BYTES);
    bool entered = false;
};
Resumption host_place;
std::vector<Coroutine> coroutines;
std::vector<unsigned> idle;      // coroutines that have no thread
constexpr unsigned WAITING = -1u, FINISHED = -2u;
std::vector<unsigned> carriers;  // of every thread its coroutine, or that it has not begun, or is at its end
std::vector<Warp> all_warps;
Meeting block_meeting;
int any;        // of __syncthreads_or
bool progress;  // whether some thread has come further since all were last resumed

// A function of its own, as the compiler asks; from none of these must it conclude what a jump leaves as it was.
[[noreturn]] __attribute__((noipa)) void jump(Resumption &place) { __builtin_longjmp(place, 1); }

// Let the first thread from this one on that is not at its end go on; the host, if there is none.
[[noreturn]] __attribute__((noipa)) void go_on_from(unsigned thread) {
    while (thread < carriers.size() && carriers[thread] == FINISHED) ++thread;
    if (thread == carriers.size()) jump(host_place);
    threadIdx.x = thread;
    if (carriers[thread] == WAITING) {
        carriers[thread] = idle.back();
        idle.pop_back();
    }
    Coroutine &own = coroutines[carriers[thread]];
    if (own.entered) jump(own.place);
    own.entered = true;
    setcontext(&own.context);
    __builtin_unreachable();
}
__attribute__((noipa)) void leave(Coroutine &own) {
    if (__builtin_setjmp(own.place) == 0) go_on_from(threadIdx.x + 1);
}
__attribute__((noipa)) void resume_all() {
    if (__builtin_setjmp(host_place) == 0) go_on_from(0);
}
void give_way() { leave(coroutines[carriers[threadIdx.x]]); }

void open_if_all_are_there(Meeting &meeting) {
    if (meeting.arrived == 0 || meeting.arrived < meeting.alive) return;
    meeting.arrived = 0;
    ++meeting.generation;
    progress = true;
}
void (*thread_body)(void **);
void **thread_arguments;

// A coroutine runs a thread of one block after the other, and never ends.
void run_threads() {
    while (true) {
        thread_body(thread_arguments);
        const unsigned t = threadIdx.x, own = carriers[t];
        carriers[t] = FINISHED;
        progress = true;
        --block_meeting.alive;
        --warps[t / 32].meeting.alive;
        open_if_all_are_there(block_meeting);
        open_if_all_are_there(warps[t / 32].meeting);
        // The next one would begin now: it may as well begin here.
        if (t + 1 < carriers.size() && carriers[t + 1] == WAITING) {
            carriers[t + 1] = own;
            threadIdx.x = t + 1;
            continue;
        }
        idle.push_back(own);
        leave(coroutines[own]);
    }
}

void make_coroutines(unsigned threads) {
    if (coroutines.size() < threads) coroutines = std::vector<Coroutine>(threads);
    Bytes number = 0;
    for (Coroutine &own : coroutines) {
        ++number;
        if (own.entered) continue;
        getcontext(&own.context);
        own.context.uc_stack.ss_sp = own.stack.data();
        own.context.uc_stack.ss_size = own.stack.size() - number % COLOURS * COLOUR_BYTES;
        own.context.uc_link = nullptr;
        makecontext(&own.context, run_threads, 0);
    }
}

// Return whether all threads came to their end; otherwise they wait at different barriers.
bool run_block(unsigned threads) {
    block_meeting = Meeting{static_cast<int>(threads)};
    all_warps.assign((threads + 31) / 32, Warp{});
    warps = all_warps.data();
    for (unsigned t = 0; t < threads; ++t) ++warps[t / 32].meeting.alive;
    carriers.assign(threads, WAITING);
    idle.clear();
    for (unsigned c = coroutines.size(); c-- > 0;) idle.push_back(c);
    while (block_meeting.alive > 0) {
        progress = false;
        resume_all();
        if (!progress) return false;
    }
    return true;
}

constexpr int DEADLOCK = -1;
Fault fault;
jmp_buf fault_place;

void on_signal(int signal, siginfo_t *info, void *) {
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

void run_grid(unsigned grid, unsigned block, Bytes shared_bytes) {
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
}  // namespace

void meet(Meeting &meeting) {
    const unsigned generation = meeting.generation;
    ++meeting.arrived;
    progress = true;
    open_if_all_are_there(meeting);
    while (meeting.generation == generation) give_way();
}

void __syncthreads() { meet(block_meeting); }

int __syncthreads_or(int value) {
    any |= value != 0;
    __syncthreads();
    const int answer = any;
    __syncthreads();
    any = 0;
    __syncthreads();
    return answer;
}

void host_run(
    void (*body)(void **), unsigned grid, unsigned block, void **arguments, double *shared, Bytes bytes, Fault *why
) {
    gridDim.x = grid;
    blockDim.x = block;
    host_shared = shared;
    make_coroutines(block);
    thread_body = body;
    thread_arguments = arguments;
    fault = Fault{};
    any = 0;
    run_grid(grid, block, bytes);
    *why = fault;
    if (fault.signal == 0) return;
    for (Coroutine &own : coroutines) own.entered = false;  // left in the midst of a thread
}
