"""The GPU backend: row types as tiles, or as pairs where rows are long, built and run on the device.

A matrix in tiles, in one drawing::

    a row type: two slots, a block class each            its groups: where the type occurs
               slot 0        slot 1                         row   base of slot 0, 1
             +-----------+-----------+                    +-----+------------------+
    tile 0   | a b       | c         |  lane 0 |          |   0 |      0     2048  | | chunk:   | item:
             |   a b     |   c       |  lane 1 | slice:   | 512 |    512     4096  | | 1, 2 or  | tile 0
             |     a     |     c   d |  lane 2 | 32 rows  | 768 |      0     5120  | | 4 mem-   | with these
             |       a   |       c   |  lane 3 |          | ... |                  | | bers     | groups
             + - - - - - + - - - - - +                    +-----+------------------+
    tile 1   | ...       | ...       |                      rows of no group: a gap

    terms, a round of them        cell: the slice in      look-up, once an item, for every term and group
    code  slot  shift  value      the round, in units
     0 a    0     0     0.50      lane 0   0 1 | 2 -      address = base of the slot + shift
     1 c    1     0     0.25      lane 1   0 1 | 2 -      weight  = value * scale of the slot
     2 b    0     1     0.25      lane 2   0 1 | 3 -
     3 d    1     2     0.50      lane 3   0 1 | - -      row of y += weight * x[address + row of the type]

    with layers, here slot 0 of layer 0 and slot 1 of layer 1: terms in layer segments, a mark a unit
     segment   code  term                  lane 0   0 1 | 0 -
     layer 0    0     a                    lane 1   0 1 | 0 -
                1     b                    lane 2   0 - | 0 1
     layer 1    0     c                    lane 3   0 - | 0 -
                1     d                    marks    first term 0 | first term 2, ends layer 1,
                                                    ends layer 0 | last of the cell

Entries of a tile that agree in slot, shift (local column minus local row) and value share a *term*. An entry
is nothing but its code, one byte or two. Frequent terms come first, so that neighbouring rows list them at
the same positions. Values and columns are in the terms and groups, so that many cells are equal and stored
once. A tile of more terms than fast memory holds is worked off in *rounds*. A warp takes its *turns*: slice
after slice, for one chunk of the item after the other.

The layers of a decision process are *fused*: one launch takes the best over all of them, row by row. A
tile's terms are then in *layer segments*; a row has a layer if its codes in the segment begin with a term.
A chain is the case of one layer segment a round, without marks.

The stages: :mod:`hybrid.matrix.gpu.tile_terms` cuts row types into tiles and finds their terms;
:mod:`hybrid.matrix.gpu.tile_terms` forms segments and rounds; :mod:`hybrid.matrix.gpu.tile_table` writes
codes and marks; :mod:`hybrid.matrix.gpu.tile_table` puts these together; :mod:`hybrid.matrix.gpu.tile_layout`
bundles groups in items and packs all for :class:`gpu_kernels.TileMatrix`.
"""

__all__: list[str] = []
