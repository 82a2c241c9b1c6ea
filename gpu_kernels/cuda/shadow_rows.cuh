// What IDR(s), s = 4, does with an element.
//
// The four shadow vectors have elements 1 and -1, told by bits of a hash of the row's number, and are stored nowhere.
// `weights`, or null for ones, are what elements are multiplied with before they are measured.  The directions u and
// their images g are matrices of four rows of n elements.
#pragma once

#include "common.cuh"

constexpr int DIRECTIONS = 4;

__device__ inline unsigned hash_of(INDEX row) {
    unsigned hashed = static_cast<unsigned>(row) * 0x9E3779B1u;
    hashed = (hashed ^ (hashed >> 15)) * 0x85EBCA6Bu;
    return (hashed ^ (hashed >> 13)) * 0xC2B2AE35u;
}

__device__ inline double signed_by(double value, unsigned hashed, int bit) {
    return (hashed >> bit) & 1u ? -value : value;
}

// Add an element's products with the shadow vectors, and with itself.
__device__ inline void add_shadows(double (&sums)[DIRECTIONS + 1], double value, INDEX row) {
    const unsigned hashed = hash_of(row);
    sums[0] += signed_by(value, hashed, 5);
    sums[1] += signed_by(value, hashed, 11);
    sums[2] += signed_by(value, hashed, 17);
    sums[3] += signed_by(value, hashed, 23);
    sums[4] += value * value;
}

__device__ inline double weighed(double value, const double *weights, INDEX row) {
    return weights == nullptr ? value : value * __ldg(weights + row);
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
