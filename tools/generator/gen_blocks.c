/* SPDX-License-Identifier: BSD-3-Clause */
/* gen_blocks.c - matrices of square blocks.  Each block row has COUNT blocks of
 * B x B entries, one in each of COUNT equal column ranges, at a random position
 * in its range; each entry of a block is stored with probability FILL.  These
 * matrices show gains and costs of formats of dense blocks.
 *
 * They are not symmetric.  Values are uniform in [-1, 1), with or without
 * perturb, which only changes the seed.  Everything is a function of (seed,
 * row). */
#include "tools/generator/gen.h"

#include <stdio.h>

enum { PLACE = 0, THERE = 1 };        /* streams of random numbers: positions,
                                         stored entries */

/* Returns the first column of block number c in block row r. */
static int64_t first_column(const gen_spec *s, int64_t r, int64_t c)
{
    const int64_t all = s->n[0] / s->block;
    const int64_t low = c * all / s->per_row, high = (c + 1) * all / s->per_row;
    uint32_t w[4];

    gen_philox(s->seed, (uint64_t)(r * s->per_row + c), PLACE, w);
    return (low + (int64_t)((uint64_t)w[0] * (uint64_t)(high - low) >> 32)) *
           s->block;
}

/* Returns bits 0 .. 3, which tell whether the entries in columns q .. q + 3 of
 * row i within block number c of its block row are stored. */
static unsigned there(const gen_spec *s, int64_t i, int64_t c, int64_t q)
{
    uint32_t w[4];
    unsigned bits = 0;

    gen_philox(s->seed, (uint64_t)(i * s->per_row + c),
               (uint32_t)(q / 4 * 2 + THERE), w);
    for (int b = 0; b < 4 && q + b < s->block; b++)
        bits |= (unsigned)(w[b] * 0x1p-32 < s->fill) << b;
    return bits;
}

int64_t gen_blocks_count(const gen *g, int64_t i)
{
    const gen_spec *s = &g->spec;
    int64_t count = 0;

    for (int64_t c = 0; c < s->per_row; c++)
        for (int64_t q = 0; q < s->block; q += 4)
            for (unsigned bits = there(s, i, c, q); bits; bits &= bits - 1)
                count++;
    return count;
}

int64_t gen_blocks_row(const gen *g, int64_t i, int32_t *col, double *val)
{
    const gen_spec *s = &g->spec;
    const uint64_t seed = s->perturb ? s->perturb_seed + 1 : 0;
    int64_t count = 0;

    for (int64_t c = 0; c < s->per_row; c++) {
        const int64_t first = first_column(s, i / s->block, c);

        for (int64_t q = 0; q < s->block; q++)
            if (there(s, i, c, q / 4 * 4) >> q % 4 & 1) {
                col[count] = (int32_t)(first + q);
                val[count++] = gen_uniform(seed, (uint64_t)i << 32 |
                                           (uint64_t)(first + q), 0);
            }
    }
    return count;
}

bool gen_blocks_open(gen *g, char error[160])
{
    const gen_spec *s = &g->spec;
    int64_t nnz = 0, diagonal = 0;

    (void)error;
    g->rows = s->n[0];
    g->widest = s->block * s->per_row;
#pragma omp parallel for reduction(+ : nnz, diagonal)
    for (int64_t i = 0; i < g->rows; i++) {
        nnz += gen_blocks_count(g, i);
        for (int64_t c = 0; c < s->per_row; c++) {
            const int64_t q = i - first_column(s, i / s->block, c);

            if (q >= 0 && q < s->block)
                diagonal += there(s, i, c, q / 4 * 4) >> q % 4 & 1;
        }
    }
    g->nnz = nnz;
    g->diagonal = diagonal;
    return true;
}
