// Several elements of a row at a time: all their loads are under way before the first is used. No branch serves a
// load under a condition, since a branch would make each element's loads wait for those of the element before.
//
// Macros besides those of common.cuh:
//   VALUE_BITS  8, 16 or 32: width of the numbers of values; 64: plain values
#pragma once

#include "common.cuh"

constexpr int AHEAD = 4;

#if VALUE_BITS == 64
typedef double STORED;
#elif VALUE_BITS == 32
typedef unsigned STORED;
#elif VALUE_BITS == 16
typedef unsigned short STORED;
#else
typedef unsigned char STORED;
#endif

// Loads under a condition, zero where it does not hold. What is read once in a product passes by the caches (.cs), so
// that it does not push x out of them.
#ifdef HOST_KERNELS
template <class T>
inline T stream_if(bool live, const T *address) { return live ? *address : T(0); }
inline double load_if(bool live, const double *address) { return live ? *address : 0.0; }
#else
#define STREAM_IF(TYPE, SUFFIX, REGISTER, WORD)                                                                        \
    __device__ inline TYPE stream_if(bool live, const TYPE *address) {                                                 \
        WORD value;                                                                                                    \
        asm("{.reg .pred p; setp.ne.s32 p, %2, 0; mov.b32 %0, 0; @p ld.global.cs." SUFFIX " %0, [%1];}"                \
            : REGISTER(value) : "l"(address), "r"(static_cast<int>(live)));                                            \
        return static_cast<TYPE>(value);                                                                               \
    }
STREAM_IF(int, "s32", "=r", int)
STREAM_IF(unsigned, "u32", "=r", unsigned)
STREAM_IF(unsigned short, "u16", "=r", unsigned)
STREAM_IF(unsigned char, "u8", "=r", unsigned)
__device__ inline double stream_if(bool live, const double *address) {
    double value;
    asm("{.reg .pred p; setp.ne.s32 p, %2, 0; mov.f64 %0, 0d0000000000000000; @p ld.global.cs.f64 %0, [%1];}"
        : "=d"(value) : "l"(address), "r"(static_cast<int>(live)));
    return value;
}
__device__ inline double load_if(bool live, const double *address) {
    double value;
    asm("{.reg .pred p; setp.ne.s32 p, %2, 0; mov.f64 %0, 0d0000000000000000; @p ld.global.nc.f64 %0, [%1];}"
        : "=d"(value) : "l"(address), "r"(static_cast<int>(live)));
    return value;
}
#endif

// AHEAD elements of a row; a column of -1 stands for no entry, whose plain value is zero.
struct Gather {
    int column[AHEAD];
    STORED stored[AHEAD];

    // Zero where there is no entry.
    __device__ void products(const double *table, const double *x, double *product) const {
        double value[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; ++k) product[k] = load_if(column[k] >= 0, x + column[k]);
#pragma unroll
        for (int k = 0; k < AHEAD; ++k) {
#if VALUE_BITS == 64
            value[k] = stored[k];
#else
            value[k] = load_if(column[k] >= 0, table + stored[k]);
#endif
        }
#pragma unroll
        for (int k = 0; k < AHEAD; ++k) product[k] *= value[k];
    }

    __device__ double add(double total, const double *table, const double *x) const {
        double product[AHEAD];
        products(table, x, product);
#pragma unroll
        for (int k = 0; k < AHEAD; ++k) total += product[k];
        return total;
    }
};
