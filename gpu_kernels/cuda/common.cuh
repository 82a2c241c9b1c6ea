// What all kernels share: index width, vectors held by dictionary, maxima of non-negative doubles.
//
// Macros given by the loader, all of them numbers:
//   INDEX_BITS  32 or 64: width of every index into vectors and of every count that may grow with them
//   REAL_BITS   64, if not given, or 32: width of the elements of vectors of type REAL
#pragma once

#if INDEX_BITS == 64
typedef long long INDEX;
#else
typedef int INDEX;
#endif

#ifndef REAL_BITS
#define REAL_BITS 64
#endif
#if REAL_BITS == 64
typedef double REAL;
#else
typedef float REAL;
#endif

typedef unsigned long long BITS;  // the bits of a double that is not negative: ordered like the doubles, NaN last

constexpr int LANES = 32;
constexpr unsigned ALL_LANES = 0xffffffffu;

// Elements of a vector with few distinct values are numbers of values; WIDTH is the bits of a number, 64 stands
// for plain doubles and 0 for no vector at all (all elements zero).
template <int WIDTH>
struct Coded {
    static __device__ double at(const void *elements, const double *, INDEX i) {
        return __ldg(static_cast<const double *>(elements) + i);
    }
};
template <>
struct Coded<0> {
    static __device__ double at(const void *, const double *, INDEX) { return 0.0; }
};
template <>
struct Coded<8> {
    static __device__ double at(const void *elements, const double *table, INDEX i) {
        return __ldg(table + __ldg(static_cast<const unsigned char *>(elements) + i));
    }
};
template <>
struct Coded<16> {
    static __device__ double at(const void *elements, const double *table, INDEX i) {
        return __ldg(table + __ldg(static_cast<const unsigned short *>(elements) + i));
    }
};
template <>
struct Coded<32> {
    static __device__ double at(const void *elements, const double *table, INDEX i) {
        return __ldg(table + __ldg(static_cast<const unsigned *>(elements) + i));
    }
};

__device__ inline BITS larger(BITS a, BITS b) { return a > b ? a : b; }

// The maximum over the lanes of a warp; all lanes call, lane 0 has the answer.
__device__ inline BITS warp_maximum(BITS value) {
    for (int distance = LANES / 2; distance > 0; distance /= 2) {
        value = larger(value, __shfl_xor_sync(ALL_LANES, value, distance));
    }
    return value;
}
