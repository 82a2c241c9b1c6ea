// What IDR(s) does with an element.
//
// With s = 4 the shadow vectors have elements 1 and -1, told by bits of a hash of the row's number, and are stored
// nowhere.  With s = 1 the only one is `shadow`, and the recurrence is BiCGStab's.  `weights`, or null for ones, are what
// elements are multiplied with before they are measured.  The directions u and their images g are matrices of s rows of
// n elements.
// Macros besides those of common.cuh:
//   DIRECTIONS      s: 4, if not given, or 1
#pragma once

#include "common.cuh"

#ifndef DIRECTIONS
#define DIRECTIONS 4
#endif

__device__ inline unsigned hash_of(INDEX row) {
    unsigned hashed = static_cast<unsigned>(row) * 0x9E3779B1u;
    hashed = (hashed ^ (hashed >> 15)) * 0x85EBCA6Bu;
    return (hashed ^ (hashed >> 13)) * 0xC2B2AE35u;
}

__device__ inline double signed_by(double value, unsigned hashed, int bit) {
    return (hashed >> bit) & 1u ? -value : value;
}

__device__ inline double weighed(double value, const double *weights, INDEX row) {
    return weights == nullptr ? value : value * __ldg(weights + row);
}

// Add an element's products with the shadow vectors, and with itself, weighed.
__device__ inline void add_shadows(double (&sums)[DIRECTIONS + 1], double element, const double *weights,
                                   const REAL *shadow, INDEX row) {
    const double value = weighed(element, weights, row);
#if DIRECTIONS == 1
    sums[0] += weighed(shadow[row], weights, row) * value;
#else
    const unsigned hashed = hash_of(row);
    sums[0] += signed_by(value, hashed, 5);
    sums[1] += signed_by(value, hashed, 11);
    sums[2] += signed_by(value, hashed, 17);
    sums[3] += signed_by(value, hashed, 23);
#endif
    sums[DIRECTIONS] += value * value;
}

// Element i of omega r + sum over j >= first of share_j (u[j] - omega g[j])
__device__ inline REAL aimed(int first, const REAL *shares, REAL omega, REAL r, const REAL *u, const REAL *g,
                             long long n, INDEX i) {
    REAL value = omega * r;
#pragma unroll
    for (int j = 0; j < DIRECTIONS; ++j) {
        if (j >= first) value += shares[j] * (u[j * n + i] - omega * g[j * n + i]);
    }
    return value;
}
