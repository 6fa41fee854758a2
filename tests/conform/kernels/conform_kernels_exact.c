/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_kernels_exact.c - integer data: widths, shapes, patterns, row lengths
 * at every threshold of a kernel, offsets of 64 bits.  Bit for bit. */
#include "tests/conform/kernels/conform_kernels.h"

/* Whether the kernel also takes types that precede these in the table. */
static bool takes_before(const sps_kernel *kernel, const types *t)
{
    while (t-- > TYPE)
        if (takes(kernel, t)) return true;
    return false;
}

/* Every kernel that takes the types of the exam, at this width.  Returns the
 * number of such kernels. */
static int try_kernels(exam *e, int k, int times)
{
    const sps_kernel *kernel;
    int count = 0;

    FOR_KERNELS(kernel)
        if (takes(kernel, e->t) && !(e->lean && takes_before(kernel, e->t)) &&
            rig_plan(&e->r, kernel, k)) {
            for (int i = 0; i < times; i++) try_in_turn(e, k);
            count++;
        }
    return count;
}

/* For how many matrices of the zoo the kernel can be used with these types. */
static int fitted(const sps_kernel *kernel, const types *t)
{
    int count = 0;

    if (!takes(kernel, t)) return 0;
    for (int f = 0; f < zoo_count() && count == 0; f++) {
        rig r;

        rig_open(&r, ctx, f, 70, t->exact, t->matrix);
        r.block = t->block;
        for (int w = 0; w < FEW_COUNT; w++)
            count += rig_plan(&r, kernel, FEW[w]);
        rig_close(&r);
    }
    return count;
}

/* Some types may be rejected, with a reason; but not all, and not blocks of
 * floats by a kernel that declares support for them. */
START_TEST(every_kernel_fits_something)
{
    const sps_kernel *kernel;

    FOR_KERNELS(kernel) {
        int all = 0, single = 0;

        for (int d = 0; d < TYPES; d++) {
            const int count = fitted(kernel, &TYPE[d]);

            all += count;
            if (TYPE[d].block == SPS_F32) single += count;
        }
        demand(all > 0, "%s fits nothing of the zoo", kernel->name);
        demand(single > 0 || !(kernel->gives & SPS_SINGLE_BLOCKS),
               "%s fits no blocks of floats", kernel->name);
    }
}
END_TEST

/* All families at all widths. */
START_TEST(spmm_equals_the_oracle_exactly_on_integers)
{
    const int step = quick() ? 7 : 1;
    const int times = quick() ? 1 : fixture_env("SPS_TEST_LONG") ? 7 : 2;

    for (int d = 0; d < TYPES; d++)
        for (int f = d % step; f < zoo_count() && wanted(&TYPE[d]);
             f += step) {
            exam e;

            exam_open(&e, f, 70, TYPE[d].exact, &TYPE[d], 200);
            for (int w = f % step; w < WIDTH_COUNT; w += step)
                try_kernels(&e, WIDTHS[w], times);
            exam_close(&e);
        }
}
END_TEST

/* Every width in every layout: vector stores, by our kernels or a vendor's,
 * must not write to the columns beside a block in the caller's memory, and to
 * padding in the library's own layout nothing but zeros.  The small set: half
 * of the widths, in the first layout and one of the others in turn. */
START_TEST(every_layout_keeps_its_padding)
{
    static const char *const patterns[] = { "block_dense", "uniform" };
    const sps_kernel *kernel;

    for (int d = 0; d < TYPES; d++)
        for (int f = quick() ? d % 2 : 0;
             f < COUNT(patterns) && wanted(&TYPE[d]); f += quick() ? 2 : 1) {
            exam e;

            exam_open(&e, zoo_find(patterns[f]), 200, TYPE[d].exact, &TYPE[d],
                      130);
            for (int w = quick() ? d % 2 : 0;
                 w < WIDTH_COUNT && WIDTHS[w] <= e.k; w += quick() ? 2 : 1)
                FOR_KERNELS(kernel) {
                    const int step = quick() ? 6 + w / 2 % 4 : 1;

                    if (!takes(kernel, e.t) ||
                        !rig_plan(&e.r, kernel, WIDTHS[w]))
                        continue;
                    for (int l = 0; l < 2 * LAYOUTS; l += step) {
                        const trial t = { WIDTHS[w], l, 1, l / LAYOUTS, false };

                        try(&e, &t);
                    }
                }
            exam_close(&e);
        }
}
END_TEST

/* A narrowed block may be widened again: the columns that were set aside must
 * keep their bits, the padding need not. */
START_TEST(a_narrowed_block_keeps_all_its_columns)
{
    static const int widths[][2] = { { 3, 4 }, { 5, 7 }, { 9, 12 }, { 17, 19 },
                                     { 33, 36 }, { 49, 64 } };
    const sps_kernel *kernel;

    for (int d = 0; d < TYPES; d++) {
        exam e;

        if (!wanted(&TYPE[d])) continue;
        exam_open(&e, zoo_find("grid27_dof3"), 300, TYPE[d].exact, &TYPE[d],
                  64);
        FOR_KERNELS(kernel)
            for (int w = 0; w < COUNT(widths); w++) {
                const trial t = { widths[w][0], 0, 1, 0, false };
                const int64_t n = e.r.A->nrow;
                image X, Y;

                if (!takes(kernel, e.t) ||
                    !rig_plan(&e.r, kernel, widths[w][1]))
                    continue;
                image_take(&X, ctx, e.t->block, n, widths[w][1], 0, e.x, e.k);
                image_take(&Y, ctx, e.t->block, n, widths[w][1], 0, NULL, 0);
                image_narrow(&X, t.k);
                image_narrow(&Y, t.k);
                run(&e, &t, X.B, Y.B);
                image_read(&Y, kernel->name);
                judge(&e, &t, &Y, kernel->name);
                image_close(&X);
                image_close(&Y);
            }
        exam_close(&e);
    }
}
END_TEST

/* Rows of 1023, 1024, 1025 entries, and grids larger than one row window. */
START_TEST(long_rows_and_many_rows_are_exact_too)
{
    const bool longer = fixture_env("SPS_TEST_LONG");
    const int64_t n = longer ? 20000 : 1100;

    for (int d = 0; d < TYPES; d++)
        for (int f = quick() ? d : 0; f < zoo_count(); f += quick() ? 7 : 1) {
            exam e;

            if (!wanted(&TYPE[d])) continue;
            exam_open(&e, f, n, TYPE[d].exact, &TYPE[d], 33);
            for (int w = longer ? 0 : (f + d) % 2; w < FEW_COUNT; w += 2)
                try_kernels(&e, FEW[w], 1);
            exam_close(&e);
        }
}
END_TEST

/* Y = A X by every kernel that takes the types, in the library's own layout. */
static void try_plain(exam *e, int k)
{
    const sps_kernel *kernel;

    FOR_KERNELS(kernel)
        if (takes(kernel, e->t) && rig_plan(&e->r, kernel, k))
            try(e, &(trial){ k, 0, 1, 0, false });
}

/* Grids of which three planes of X fill much of a second-level cache of 2 MB:
 * hosts with such a cache compute rows in parts of planes.  Y is larger than
 * that cache, also where it has 4 columns: it is stored past the caches. */
START_TEST(grids_of_large_planes_are_exact)
{
    static const struct { const char *grid; int64_t rows; int k; } some[] = {
        { "grid7", 9261 + 5, 96 }, { "grid27", 9261, 96 },
        { "grid27_dof3", 5184, 96 }, { "grid7", 68921 + 5, 4 }
    };

    for (int d = 0; d < TYPES; d++)
        for (int g = quick() ? d % 3 : 0; g < 4; g += quick() ? 3 : 1) {
            exam e;

            if (!wanted(&TYPE[d])) continue;
            exam_open(&e, zoo_find(some[g].grid), some[g].rows, TYPE[d].exact,
                      &TYPE[d], some[g].k);
            e.lean = true;
            try_kernels(&e, some[g].k, 1);
            try_plain(&e, some[g].k);
            exam_close(&e);
        }
}
END_TEST

/* Every shape, tall, wide and empty; patterns and widths alternate. */
START_TEST(every_shape_is_exact)
{
    static const int64_t sizes[] = { 0, 1, 7, 8, 9, 31, 33, 127, 1000, 4097 };
    static const char *const patterns[] = { "uniform", "edges", "rmat",
                                            "dense_row", "block_dense",
                                            "power_law", "dense_column",
                                            "grid27_dof3", "band" };
    /* Fewer of the largest shapes, to limit the time of oracle and
     * reference. */
    const int wide = ctx->backend->place == SPS_HOST ? 8 : 24;
    int turn = 0;

    for (int s = 0; s < 100; s += quick() ? 9 : 1, turn++)
        for (int d = 0; d < TYPES; d++, turn++) {
            const char *name = patterns[turn % COUNT(patterns)];
            const types *t = &TYPE[d];
            int k[4] = { 1 + turn % 4 }, most = 4;
            exam e;

            if (!wanted(t)) continue;
            for (int w = 1; w < 4; w++) {
                k[w] = WIDTHS[(turn * 7 + w * 11) % WIDTH_COUNT];
                if (sizes[s / 10] * sizes[s % 10] > 500000) k[w] %= wide;
                if (k[w] == 0) k[w] = wide;
                if (k[w] > most) most = k[w];
            }
            exam_take(&e, name, zoo_shape(zoo_find(name), sizes[s / 10],
                                          sizes[s % 10], 7, t->exact,
                                          t->matrix), t->exact, t, most);
            for (int w = quick() ? 3 : 0; w < 4; w++)
                try_kernels(&e, k[w], 1);
            exam_close(&e);
        }
}
END_TEST

/* ------------------------------------------------------------ row lengths */

/* All widths of the list on one matrix. */
static void try_rows(const char *what, int64_t nrow, int64_t ncol,
                     const int32_t *length, int64_t kinds, const int *widths,
                     int count)
{
    const bool lean = nrow > 100000; /* each kernel in its first types only */

    for (int d = 0; d < TYPES; d++) {
        exam e;

        if (!wanted(&TYPE[d])) continue;
        exam_take(&e, what, zoo_rows(nrow, ncol, length, kinds, 0, 7,
                                     TYPE[d].exact, TYPE[d].matrix),
                  TYPE[d].exact, &TYPE[d], widths[count - 1]);
        e.lean = lean;
        for (int w = 0; w < count; w++) try_kernels(&e, widths[w], 1);
        exam_close(&e);
    }
}

/* The lengths of `list` four times with a filler row before each, so that each
 * length begins at every offset mod 4. */
static int64_t stagger(const int32_t *list, int count, int32_t *length)
{
    int64_t rows = 0, start = 0;

    for (int residue = 0; residue < 4; residue++)
        for (int i = 0; i < count; i++) {
            const int64_t filler = 1 + (4 + residue - (start + 1) % 4) % 4;

            length[rows++] = (int32_t)filler;
            length[rows++] = list[i];
            start += filler + list[i];
        }
    return rows;
}

static const int SPREAD[] = { 1, 2, 4, 8, 9, 16, 31, 32, 33, 64, 128 };

static void try_list(const char *what, const int32_t *list, int count,
                     int64_t ncol)
{
    const int few[] = { 2, 9, 33 };
    int32_t length[400];
    const int64_t rows = stagger(list, count, length);

    if (quick()) try_rows(what, rows, ncol, length, rows, few, COUNT(few));
    else try_rows(what, rows, ncol, length, rows, SPREAD, COUNT(SPREAD));
}

/* Boundaries of warps, of tiles of 32 and 512 entries (RoDe), of length classes
 * (TCA). */
START_TEST(row_lengths_at_the_edges_of_tiles_are_exact)
{
    static const int32_t rode[] = { 31, 32, 33, 511, 512, 513, 543, 544, 545,
                                    1024 };
    static const int32_t bins[] = { 0,  1,  7,  8,   9,   15,  16,  17,  31,
                                    32, 33, 63, 64, 65, 127, 128, 129, 4096 };

    try_list("lengths about 32 and 512", rode, COUNT(rode), 1100);
    try_list("lengths about 8 to 128", bins, COUNT(bins), 4200);
}
END_TEST

/* Rows from two to 120 times as long as the entries one warp of CSR-Adaptive
 * processes in a matrix of this size (512; 2048 and 4096 in larger ones:
 * check_row_plan), and rows of equal length that fill its blocks of 256 to the
 * last entry. */
START_TEST(row_lengths_at_the_edges_of_row_blocks_are_exact)
{
    static const int32_t list[] = {
        0,    1,    31,   32,   33,   127,  128,  129,  1023,  1024, 1025,
        2047, 2048, 2049, 3071, 3072, 3073, 6143, 6144, 6145, 30720, 61440,
    };
    static const int32_t same[] = { 1, 2, 3, 8, 31, 32, 33, 64, 256 };
    const int narrow[] = { 1, 2, 3, 4, 8, 33 };
    const int count = quick() ? 2 : COUNT(narrow);

    try_rows("lengths about 1024 and 2048", COUNT(list), 61440, list,
             COUNT(list), narrow, count);
    for (int i = 0; i < COUNT(same); i += quick() ? 3 : 1)
        try_rows("equal lengths", 4096 / same[i] + 70, 300, &same[i], 1,
                 narrow, count);
}
END_TEST

/* Poor load balance: 1 and 10000 entries alternating, one long row at the end,
 * a million empty rows between two full ones. */
START_TEST(extreme_distributions_are_exact)
{
    static const int32_t turns[] = { 1, 10000 };
    const int widths[] = { 1, 4, 16, 33 }, lean[] = { 1, 3 };
    const int64_t gap = quick() ? 10000 : 1000000, rows = gap + 100;
    int32_t *length = calloc((size_t)rows, sizeof *length);

    try_rows("1 and 10000 in turn", 24, 10000, turns, 2, widths,
             COUNT(widths));
    for (int i = 0; i < 500; i++) length[i] = i % 3;
    length[499] = 9000;
    try_rows("last row long", 500, 9000, length, 500, widths, COUNT(widths));
    memset(length, 0, 500 * sizeof *length);
    for (int i = 0; i < 50; i++) length[i] = length[rows - 1 - i] = 3 + i % 5;
    try_rows("a million empty rows", rows, 64, length, rows, lean,
             COUNT(lean));
    free(length);
}
END_TEST

/* More rows than 65535, the limit of the grid's second dimension, times 32. */
START_TEST(millions_of_rows_are_exact)
{
    static const char *const patterns[] = { "block_dense", "tridiagonal" };
    const bool host = ctx->backend->place == SPS_HOST; /* it has no grids */

    for (int d = 0; d < TYPES && !quick(); d++)
        for (int f = 0; f < COUNT(patterns); f++) {
            exam e;

            if (!wanted(&TYPE[d])) continue;
            exam_open(&e, zoo_find(patterns[f]), host ? 200000 : 2200000,
                      TYPE[d].exact, &TYPE[d], 1 + f);
            e.lean = true;
            try_kernels(&e, 1 + f, 1);
            exam_close(&e);
        }
}
END_TEST

/* ---------------------------------------------------------------- offsets */

/* The library uses 32-bit offsets on a GPU where they suffice; here they are
 * replaced, so that the code for 2^31 entries runs on small matrices. */
START_TEST(offsets_of_64_bits_are_exact)
{
    const int64_t sizes[] = { 90, 1100 };

    if (ctx->backend->place == SPS_HOST)
        runner_leave_out("the host has no others");
    for (int d = 0; d < TYPES; d++)
        for (int f = 0; f < 2 * zoo_count() && wanted(&TYPE[d]);
             f += quick() ? 13 : 1) {
            exam e;

            exam_open(&e, f / 2, sizes[f % 2], TYPE[d].exact, &TYPE[d], 65);
            rig_wide(&e.r);
            for (int w = 0; w < WIDTH_COUNT && WIDTHS[w] <= 65;
                 w += f % 2 ? 6 : 3)
                try_kernels(&e, WIDTHS[(w + f) % 25], 1);
            exam_close(&e);
        }
}
END_TEST

void add_exact(TCase *t)
{
    tcase_add_test(t, every_kernel_fits_something);
    tcase_add_test(t, spmm_equals_the_oracle_exactly_on_integers);
    tcase_add_test(t, every_layout_keeps_its_padding);
    tcase_add_test(t, a_narrowed_block_keeps_all_its_columns);
    tcase_add_test(t, long_rows_and_many_rows_are_exact_too);
    tcase_add_test(t, grids_of_large_planes_are_exact);
    tcase_add_test(t, every_shape_is_exact);
    tcase_add_test(t, row_lengths_at_the_edges_of_tiles_are_exact);
    tcase_add_test(t, row_lengths_at_the_edges_of_row_blocks_are_exact);
    tcase_add_test(t, extreme_distributions_are_exact);
    tcase_add_test(t, millions_of_rows_are_exact);
    tcase_add_test(t, offsets_of_64_bits_are_exact);
}
