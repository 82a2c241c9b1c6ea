// Components by greatest names: every state learns the greatest state that reaches it and that it reaches.
//
// States where the two agree have found their component; edges between states that disagree in either lie in none.
// Propagation goes over edges, and takes a short cut besides: what reaches my greatest predecessor reaches me.
#include "graph/words.cuh"

// Each listed state starts with itself. One thread a listed state.
extern "C" __global__ void __launch_bounds__(256)
start_names(const WORD n, const WORD *listed, WORD *before, WORD *after) {
    const WORD i = thread_number();
    if (i < n) before[listed[i]] = after[listed[i]] = listed[i];
}

// Write the edges between states without a component; first[i] is where those of listed[i] begin. One thread a listed
// state; there are exactly as many edges as were counted.
extern "C" __global__ void __launch_bounds__(256)
list_edges(const WORD n, const WORD *listed, const WORD *first, const WORD mask, const WORD *offsets, const WORD *trans,
           const WORD *component, WORD *sources, WORD *targets) {
    const WORD i = thread_number();
    if (i >= n) return;
    const WORD v = listed[i];
    WORD to = first[i];
    for (WORD e = offsets[v]; e < offsets[v + 1]; ++e) {
        const WORD w = trans[e] & mask;
        if (w == v || component[w] != NONE) continue;
        sources[to] = v;
        targets[to++] = w;
    }
}

__device__ inline bool raise(WORD *name, WORD own, WORD offered) {
    return offered > own && atomicMax(name, offered) < offered;
}

// One sweep over all edges; a block repeats its tile until it is stable, or for a number of rounds. Nothing happens if
// the sweep before changed nothing. changed[step] is set to 1. Launch: blocks of 256 threads, in a loop over the grid.
extern "C" __global__ void __launch_bounds__(256)
propagate_names(const WORD n_edges, const WORD *sources, const WORD *targets, WORD *before, WORD *after,
                unsigned *changed, const int step, const int rounds) {
    if (step > 0 && changed[step - 1] == 0) return;
    int any = 0;
    for (WORD tile = static_cast<WORD>(blockIdx.x) * blockDim.x; tile < n_edges;
         tile += static_cast<WORD>(gridDim.x) * blockDim.x) {
        const WORD e = tile + threadIdx.x;
        const bool is_edge = e < n_edges;
        const WORD u = is_edge ? sources[e] : 0, v = is_edge ? targets[e] : 0;
        for (int round = 0; round < rounds; ++round) {
            int risen = 0;
            if (is_edge) {
                const WORD reaching = fresh(before + fresh(before + u)), reached = fresh(after + fresh(after + v));
                risen |= raise(before + v, fresh(before + v), reaching);
                risen |= raise(after + u, fresh(after + u), reached);
            }
            any |= risen;
            if (!__syncthreads_or(risen)) break;
        }
    }
    if (__syncthreads_or(any) && threadIdx.x == 0) changed[step] = 1;
}

// Keep the edges within what may still be one component. Nothing happens unless the last sweep changed nothing.
// Whole warps, in a loop over the grid; count starts at zero.
extern "C" __global__ void __launch_bounds__(256)
filter_edges(const WORD n_edges, const unsigned *last_change, const WORD *sources, const WORD *targets,
             const WORD *before, const WORD *after, WORD *kept_sources, WORD *kept_targets, WORD *count) {
    if (*last_change != 0) return;
    const int lane = threadIdx.x % LANES;
    for (WORD warp = static_cast<WORD>(blockIdx.x) * blockDim.x + threadIdx.x - lane; warp < n_edges;
         warp += static_cast<WORD>(gridDim.x) * blockDim.x) {
        const WORD e = warp + lane;
        bool kept = false;
        WORD u = 0, v = 0;
        if (e < n_edges) {
            u = sources[e];
            v = targets[e];
            kept = before[u] == before[v] && after[u] == after[v] && before[u] != after[u];
        }
        const unsigned votes = __ballot_sync(ALL_LANES, kept);
        WORD first = 0;
        if (lane == 0 && votes != 0) first = atomicAdd(count, static_cast<WORD>(__popc(votes)));
        first = __shfl_sync(ALL_LANES, first, 0) + __popc(votes & ((1u << lane) - 1));
        if (!kept) continue;
        kept_sources[first] = u;
        kept_targets[first] = v;
    }
}

// States whose two names agree have their component; the others start anew. Same condition as filter_edges. One
// thread a listed state.
extern "C" __global__ void __launch_bounds__(256)
settle_names(const WORD n, const unsigned *last_change, const WORD *listed, WORD *before, WORD *after,
             WORD *component) {
    const WORD i = thread_number();
    if (i >= n || *last_change != 0) return;
    const WORD v = listed[i];
    if (component[v] != NONE) return;
    if (before[v] == after[v]) component[v] = before[v];
    else before[v] = after[v] = v;
}
