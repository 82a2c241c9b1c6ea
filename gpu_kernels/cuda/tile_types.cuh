// The records of a matrix in tiles, as gpu_kernels/compressed/tiles.py packs them.
//
// Macros besides INDEX_BITS:
//   CODE_BITS    8 or 16: width of the number of a term; the largest number stands for no entry
//   TERM_BITS    16 or 32: width of the slot and of the value number of a term
//   UNIT         1, 2 or 4: term numbers that a lane reads at once
#pragma once

#include "common.cuh"

#if CODE_BITS == 16
typedef unsigned short CODE;
#else
typedef unsigned char CODE;
#endif
#if TERM_BITS == 16
typedef unsigned short PART;
#else
typedef int PART;
#endif

constexpr int PAD = (1 << CODE_BITS) - 1;

// Term numbers of one row that are read at once.
#if CODE_BITS * UNIT == 8
typedef unsigned char WORD;
#elif CODE_BITS * UNIT == 16
typedef unsigned short WORD;
#else
typedef unsigned WORD;
#endif
constexpr int WORDS = CODE_BITS * UNIT / (8 * static_cast<int>(sizeof(WORD)));
constexpr int CODES_PER_WORD = UNIT / WORDS;
struct alignas(sizeof(WORD) * WORDS) Unit { WORD word[WORDS]; };

// An item: a tile with groups of its type, whose slots lie side by side. Everything a block needs to begin is in it.
struct alignas(16) Item {
    INDEX begin;       // first row of the tile within its row type
    INDEX first_slot;  // first slot of the first group
    int first_group;   // groups first_group, ..., first_group + count - 1
    int count;
    int slots;         // slots of a group
    int rows;          // rows of the tile
    int first_round;   // its rounds: those of the tile
    int rounds;
    int first_term;    // terms of the first round
    int terms;
    int first_cell;    // first cell of the first round; a cell is a slice in a round
    int unused;
};

// Where the term numbers of a cell lie.
struct alignas(8) Cell {
    int first;  // first unit
    int units;
};

// A term without what a group adds to it.
struct alignas(sizeof(INDEX)) Term {
    INDEX shift;  // local column minus local row
    PART slot;
    PART value;  // number of the value
};
