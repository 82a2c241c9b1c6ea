// What a block does with the rows of an item: tables of terms in shared memory, and sums over the entries of a row.
//
// Macros besides those of common.cuh and tile_types.cuh:
//   THREADS      threads of a block, a multiple of 32
//   MEMBERS      groups of a type that a thread serves at once: 1, 2 or 4
//   SCALED       0 or 1: whether every slot of a group carries a factor
//   LOOK_UPS     terms that a thread looks up at once: 1, if not given, or 4, where there are many
//   HALO         0, if not given, or 1: some columns are elements of another vector than x
#pragma once

#include "tile_types.cuh"

#ifndef LOOK_UPS
#define LOOK_UPS 1
#endif
#ifndef HALO
#define HALO 0
#endif

// Where the elements of columns lie.  With HALO x has the first ones, and `others` those behind them.
#if HALO
struct Columns {
    const REAL *x, *beyond;  // beyond + column, for columns that x does not have
    INDEX own;
};
#define HALO_PARAMETERS , const REAL *__restrict__ others, const INDEX own_columns
#define COLUMNS Columns{x, others - own_columns, own_columns}
__device__ inline const REAL *element_of(const Columns &columns, INDEX at) {
    return (at < columns.own ? columns.x : columns.beyond) + at;
}
#else
typedef const REAL *Columns;
#define HALO_PARAMETERS
#define COLUMNS x
__device__ inline const REAL *element_of(Columns x, INDEX at) { return x + at; }
#endif

struct alignas(sizeof(INDEX) * MEMBERS > 16 ? 16 : sizeof(INDEX) * MEMBERS) Places { INDEX of[MEMBERS]; };
#if SCALED
struct alignas(sizeof(REAL) * MEMBERS > 16 ? 16 : sizeof(REAL) * MEMBERS) Weights { REAL of[MEMBERS]; };
#else
struct Weights { REAL of[1]; };
#endif

// Fill the block's tables. The term after the last one stands for no entry: it weighs nothing, and with ROWS its places
// are the first rows of the groups.
#if LOOK_UPS == 1
template <bool ROWS = false>
__device__ inline void look_up_terms(const Item &item, const Term *terms, int count, const double *values,
                                     const INDEX *base, const double *scale, Places *places, Weights *weights,
                                     const INDEX *group_row = nullptr) {
    const int chunks = (item.count + MEMBERS - 1) / MEMBERS;
    const int stride = count + 1;
#pragma unroll 1
    for (int i = threadIdx.x; i < stride * MEMBERS; i += THREADS) {
        const int t = i / MEMBERS, m = i % MEMBERS;
        const bool live = t < count;
        const Term term = live ? terms[t] : Term{};
        const double value = live ? values[term.value] : 0.0;
        const INDEX slot = item.first_slot + term.slot;
#if !SCALED
        if (m == 0) weights[t].of[0] = value;
#endif
#pragma unroll 1
        for (int chunk = 0; chunk < chunks; ++chunk) {
            // The last chunk may be short: its dead members repeat the last live one, so that they read valid elements.
            const int member = min(chunk * MEMBERS + m, item.count - 1);
            const INDEX at = slot + static_cast<INDEX>(member) * item.slots;
            if (live) places[chunk * stride + t].of[m] = base[at] + term.shift;
            else if (ROWS) places[chunk * stride + t].of[m] = group_row[item.first_group + member];
#if SCALED
            weights[chunk * stride + t].of[m] = live ? scale[at] * value : 0.0;
#endif
        }
    }
}
#else
// So many look-ups of a thread at once that their latencies overlap.
template <bool ROWS = false>
__device__ inline void look_up_terms(const Item &item, const Term *terms, int count, const double *values,
                                     const INDEX *base, const double *scale, Places *places, Weights *weights,
                                     const INDEX *group_row = nullptr) {
    const int chunks = (item.count + MEMBERS - 1) / MEMBERS;
    const int stride = count + 1, width = stride * MEMBERS, all = width * chunks;
#pragma unroll 1
    for (int first = threadIdx.x; first < all; first += LOOK_UPS * THREADS) {
        Term term[LOOK_UPS];
        INDEX column[LOOK_UPS];
        double value[LOOK_UPS];
        int chunk[LOOK_UPS], t[LOOK_UPS], m[LOOK_UPS];
#pragma unroll
        for (int j = 0; j < LOOK_UPS; ++j) {
            const int i = min(first + j * THREADS, all - 1);
            chunk[j] = i / width;
            t[j] = (i - chunk[j] * width) / MEMBERS;
            m[j] = i % MEMBERS;
            term[j] = t[j] < count ? terms[t[j]] : Term{};
        }
#pragma unroll
        for (int j = 0; j < LOOK_UPS; ++j) {
            // The last chunk may be short: its dead members repeat the last live one, so that they read valid elements.
            const int member = min(chunk[j] * MEMBERS + m[j], item.count - 1);
            const INDEX at = item.first_slot + term[j].slot + static_cast<INDEX>(member) * item.slots;
            const bool live = t[j] < count;
            column[j] = live ? base[at] : ROWS ? group_row[item.first_group + member] : 0;
#if SCALED
            value[j] = live ? scale[at] * values[term[j].value] : 0.0;
#else
            value[j] = live && chunk[j] == 0 && m[j] == 0 ? values[term[j].value] : 0.0;
#endif
        }
#pragma unroll
        for (int j = 0; j < LOOK_UPS; ++j) {
            if (first + j * THREADS >= all) break;
            if (ROWS || t[j] < count) places[chunk[j] * stride + t[j]].of[m[j]] = column[j] + term[j].shift;
#if SCALED
            weights[chunk[j] * stride + t[j]].of[m[j]] = value[j];
#else
            if (chunk[j] == 0 && m[j] == 0) weights[t[j]].of[0] = value[j];
#endif
        }
    }
}
#endif

// A load under a condition that no branch serves, zero where it does not hold: branches would make each term's loads wait
// for those of the term before.
__device__ inline REAL load_if(bool live, const REAL *address) {
#ifdef HOST_KERNELS
    return live ? *address : REAL(0);
#elif REAL_BITS == 32
    float value;
    asm("{.reg .pred p; setp.ne.s32 p, %2, 0; mov.f32 %0, 0f00000000; @p ld.global.nc.f32 %0, [%1];}"
        : "=f"(value) : "l"(address), "r"(static_cast<int>(live)));
    return value;
#else
    double value;
    asm("{.reg .pred p; setp.ne.s32 p, %2, 0; mov.f64 %0, 0d0000000000000000; @p ld.global.nc.f64 %0, [%1];}"
        : "=d"(value) : "l"(address), "r"(static_cast<int>(live)));
    return value;
#endif
}

// Add the entries of a unit, for MEMBERS groups: codes below `limit` name the terms first, first + 1, ..., others stand
// for no entry, term `none`. An entry reads element place + row of x. FRESH: the sums begin here.
template <bool FRESH>
__device__ inline void add_unit(const Unit &now, int first, int limit, int none, const Places *places,
                                const Weights *weights, const Columns x, INDEX row, REAL *total) {
    REAL value[UNIT][MEMBERS];
    Weights weight[UNIT];
#pragma unroll
    for (int j = 0; j < UNIT; ++j) {
        const int code = now.word[j / CODES_PER_WORD] >> (j % CODES_PER_WORD * CODE_BITS) & PAD;
        const bool live = code < limit;
        const int term = live ? first + code : none;
        const Places place = places[term];
        weight[j] = weights[term];
#pragma unroll
        for (int m = 0; m < MEMBERS; ++m) {
            // Added as indices, which takes half the instructions that adding to a pointer takes.
            const INDEX at = place.of[m] + row;
            value[j][m] = load_if(live, element_of(x, at));
        }
    }
#pragma unroll
    for (int j = 0; j < UNIT; ++j) {
#pragma unroll
        for (int m = 0; m < MEMBERS; ++m) {
            const REAL own = weight[j].of[SCALED ? m : 0];
            total[m] = FRESH && j == 0 ? own * value[j][m] : total[m] + own * value[j][m];
        }
    }
}

// Add the entries of one row. `ahead` is the first unit, read beforehand.
__device__ inline void add_entries(const Unit *units, int count, Unit ahead, int terms, const Places *places,
                                   const Weights *weights, const Columns x, INDEX row, REAL *total) {
#pragma unroll 1
    for (int u = 0; u < count; ++u) {
        const Unit now = ahead;
        if (u + 1 < count) ahead = units[(u + 1) * LANES];
        add_unit<false>(now, 0, terms, terms, places, weights, x, row, total);
    }
}

// First row of a member's group; a dead member repeats the last live one.
__device__ inline INDEX row_of(const INDEX *group_row, const Item &item, int chunk, int m) {
    return __ldg(group_row + item.first_group + min(chunk * MEMBERS + m, item.count - 1));
}

// The row with a number among those that no group covers. Gap g has the rows begin[g], ..., and ptr[g] rows lie in gaps
// before it.
__device__ inline INDEX row_in_gaps(const INDEX *begin, const INDEX *ptr, INDEX gaps, INDEX number) {
    INDEX low = 0, high = gaps;  // ptr[low] <= number < ptr[high]
    while (high - low > 1) {
        const INDEX middle = low + (high - low) / 2;
        if (ptr[middle] <= number) low = middle;
        else high = middle;
    }
    return begin[low] + number - ptr[low];
}
