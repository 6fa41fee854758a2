/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_sddmm_exact.c - integer data: widths, patterns, row lengths at
 * every threshold of a kernel, empty rows, nodes, offsets of 64 bits.  Bit
 * for bit. */
#include "tests/conform/kernels/conform_sddmm.h"

/* All families at all widths; returns the number of plans. */
static int try_zoo(const sps_kernel *kernel, const types *t, int step)
{
    int fitted = 0;

    for (int f = 0; f < zoo_count(); f++) {
        rig r;

        rig_open_as(&r, f, 70, t->exact, t);
        for (int w = 0; w < WIDTH_COUNT; w += step)
            if (rig_plan(&r, kernel, WIDTHS[w])) {
                try_in_turn(&r, t, WIDTHS[w]);
                fitted++;
            }
        rig_close(&r);
    }
    return fitted;
}

START_TEST(sddmm_equals_the_oracle_exactly_on_integers)
{
    const sps_kernel *kernel;

    FOR_KERNELS(kernel)
        for (int d = 0; d < TYPES; d++) {
            const types *t = &TYPE[d];

            if (t->block == SPS_F32 && !(kernel->gives & SPS_SINGLE_BLOCKS))
                continue;
            ck_assert_msg(try_zoo(kernel, t, quick() ? 9 : 1) > 0,
                          "%s fits nothing of the zoo", kernel->name);
        }
}
END_TEST

/* Blocks in the library's own, aligned layout, at every width and so with every
 * remainder of a vector load. */
START_TEST(every_width_is_exact_in_own_blocks)
{
    const sps_kernel *kernel;

    FOR_KERNELS(kernel)
        for (int d = 0; d < TYPES; d++) {
            rig r;

            rig_open_as(&r, zoo_find("uniform"), 60, TYPE[d].exact, &TYPE[d]);
            for (int k = 1; k <= 140; k += quick() ? 6 : 1) {
                const trial t = { &r, k, 0, 2.0, k % 3, k % 2 == 0,
                                  TYPE[d].exact };

                if (rig_plan(&r, kernel, k)) try(&t);
            }
            rig_close(&r);
        }
}
END_TEST

START_TEST(sddmm_of_tiny_and_of_many_rows_is_exact)
{
    const int64_t sizes[] = { 0, 1, 2, 9, 1100 };
    const sps_kernel *kernel;

    FOR_KERNELS(kernel)
        for (int f = 0; f < zoo_count(); f++)
            for (int s = 0; s < COUNT(sizes); s++) {
                const types *t = &TYPE[(f + s) % TYPES];
                rig r;

                rig_open_as(&r, f, sizes[s], t->exact, t);
                if (rig_plan(&r, kernel, 5)) try_in_turn(&r, t, 5);
                rig_close(&r);
            }
}
END_TEST

/* Lengths at the boundaries of row segments and of work ranges, and far beyond;
 * columns contiguous and far apart. */
START_TEST(rows_of_all_lengths_are_exact)
{
    static const int32_t length[] = {
        7,   0,   8,   9,   1,   15,  16,  17,  31,  32,   33,   63,  64,
        65,  127, 128, 129, 0,   0,   0,   238, 239, 240,  241,  242, 478,
        479, 480, 481, 255, 256, 257, 511, 512, 513, 1023, 1025, 2,   4097,
    };
    const sps_kernel *kernel;

    FOR_KERNELS(kernel)
        for (int d = 0; d < TYPES; d++)
            for (int w = d; w < WIDTH_COUNT; w += quick() ? 6 : 3) {
                const types *t = &TYPE[d];
                rig r;

                rig_take(&r, ctx, "rows of all lengths",
                         zoo_rows(2 * COUNT(length) + 1, 9000, length,
                                  COUNT(length), 3, 7, t->exact, t->matrix));
                r.block = t->block;
                if (rig_plan(&r, kernel, WIDTHS[w]))
                    try_in_turn(&r, t, WIDTHS[w]);
                rig_close(&r);
            }
}
END_TEST

/* More empty rows than any work range holds, before, between and after
 * others. */
START_TEST(deserts_of_empty_rows_are_exact)
{
    static const int64_t at[] = { 0, 700, 701, 5000, 5031, 20000 };
    const sps_kernel *kernel;

    FOR_KERNELS(kernel)
        for (int a = 0; a < COUNT(at); a++)
            for (int d = 0; d < TYPES; d++) {
                int32_t *length = calloc(20001, sizeof *length);
                const types *t = &TYPE[d];
                rig r;

                for (int b = 0; b <= a; b++) length[at[b]] = 3 + 40 * b;
                rig_take(&r, ctx, "deserts",
                         zoo_rows(20001, 300, length, 20001, 0, 7, t->exact,
                                  t->matrix));
                r.block = t->block;
                if (rig_plan(&r, kernel, 16)) try_in_turn(&r, t, 16);
                rig_close(&r);
                free(length);
            }
}
END_TEST

START_TEST(offsets_of_64_bits_are_exact_too)
{
    const sps_kernel *kernel;

    FOR_KERNELS(kernel)
        for (int f = 0; f < zoo_count(); f++) {
            const types *t = &TYPE[f % TYPES];
            rig r;

            rig_open_as(&r, f, 300, t->exact, t);
            rig_wide(&r);
            if (rig_plan(&r, kernel, 16)) try_in_turn(&r, t, 16);
            if (rig_plan(&r, kernel, 33)) try_in_turn(&r, t, 33);
            rig_close(&r);
        }
}
END_TEST

/* Drops the last entry of every `step`-th row. */
static void drop_entries(sps_csr *A, int64_t step)
{
    const size_t size = A->dtype == SPS_F64 ? sizeof(double) : sizeof(float);
    int64_t to = 0, from = 0;

    for (int64_t i = 0; i < A->nrow; i++) {
        const int64_t all = A->rowptr[i + 1] - from;
        const int64_t kept = all - (i % step == 0 && all > 0);

        memmove(A->col + to, A->col + from, (size_t)kept * sizeof *A->col);
        memmove((char *)A->val + (size_t)to * size,
                (char *)A->val + (size_t)from * size, (size_t)kept * size);
        from += all;
        to += kept;
        A->rowptr[i + 1] = to;
    }
    A->nnz = to;
}

/* Nodes with several unknowns: rows with the same columns; some nearly so; rows
 * left over behind the last node. */
START_TEST(rows_of_nodes_are_exact)
{
    static const int widths[] = { 4, 8, 16, 32, 33, 64, 128 };
    static const struct { const char *name; int64_t n, step; } shape[] = {
        { "grid27_dof3", 1029, 2000 }, { "grid27_dof3", 1030, 50 },
        { "block_dense", 402, 2000 },  { "block_dense", 403, 50 },
        { "grid27_dof3", 1029, 4 },
    };
    const sps_kernel *kernel;

    FOR_KERNELS(kernel)
        for (int n = 0; n < COUNT(shape); n++)
            for (int d = 0; d < TYPES; d++) {
                const types *t = &TYPE[d];
                sps_csr *A = zoo_matrix(zoo_find(shape[n].name), shape[n].n, 7,
                                        t->exact, t->matrix);
                rig r;

                drop_entries(A, shape[n].step);
                rig_take(&r, ctx, shape[n].name, A);
                r.block = t->block;
                for (int w = 0; w < COUNT(widths); w += quick() ? 3 : 1)
                    if (rig_plan(&r, kernel, widths[w]))
                        for (int i = 0; i < 2; i++)
                            try_in_turn(&r, t, widths[w]);
                rig_close(&r);
            }
}
END_TEST

START_TEST(an_sddmm_plan_serves_every_narrower_width)
{
    const sps_kernel *kernel;

    FOR_KERNELS(kernel)
        for (int d = 0; d < TYPES; d++) {
            rig r;

            rig_open_as(&r, zoo_find("uniform"), 80, TYPE[d].exact, &TYPE[d]);
            if (rig_plan(&r, kernel, 33))
                for (int k = 1; k <= 33; k++) try_in_turn(&r, &TYPE[d], k);
            rig_close(&r);
        }
}
END_TEST

START_TEST(sddmm_sees_refreshed_values)
{
    const sps_kernel *kernel;

    FOR_KERNELS(kernel)
        for (int f = 0; f < zoo_count(); f++) {
            const types *t = &TYPE[f % TYPES];
            rig r;
            const trial one = { &r, 9, 0, 1.0, 0.0, true, t->exact };

            rig_open_as(&r, f, 90, t->exact, t);
            if (rig_plan(&r, kernel, 9)) {
                try(&one);
                rig_other_values(&r, 8);
                try(&one);
            }
            rig_close(&r);
        }
}
END_TEST

static void try_all_scalars(const rig *r, const types *t, int k)
{
    static const double alpha[] = { 0, 1, -1, 3 }, beta[] = { 0, 1, -2 };

    for (int a = 0; a < COUNT(alpha); a++)
        for (int b = 0; b < COUNT(beta); b++)
            for (int m = 0; m < 2; m++)
                try(&(trial){ r, k, (a + 4 * b) % (LAYOUTS * LAYOUTS),
                              alpha[a], beta[b], m > 0, t->exact });
}

/* With one and with several column tiles, where partial sums are added to in
 * turn; for groups of equal rows, node blocks, and split rows. */
START_TEST(all_pairs_of_scalars_with_and_without_the_matrix)
{
    static const char *const name[] = { "uniform", "grid27_dof3", "power_law",
                                        "dense_row" };
    static const int widths[] = { 8, 33, 129 };
    const sps_kernel *kernel;

    FOR_KERNELS(kernel)
        for (int d = 0; d < TYPES; d++)
            for (int f = 0; f < COUNT(name); f++) {
                rig r;

                rig_open_as(&r, zoo_find(name[f]), quick() ? 40 : 150,
                            TYPE[d].exact, &TYPE[d]);
                for (int w = 0; w < COUNT(widths); w += quick() ? 2 : 1)
                    if (rig_plan(&r, kernel, widths[w]))
                        try_all_scalars(&r, &TYPE[d], widths[w]);
                rig_close(&r);
            }
}
END_TEST

void add_exact(TCase *t)
{
    tcase_add_test(t, sddmm_equals_the_oracle_exactly_on_integers);
    tcase_add_test(t, every_width_is_exact_in_own_blocks);
    tcase_add_test(t, sddmm_of_tiny_and_of_many_rows_is_exact);
    tcase_add_test(t, rows_of_all_lengths_are_exact);
    tcase_add_test(t, deserts_of_empty_rows_are_exact);
    tcase_add_test(t, offsets_of_64_bits_are_exact_too);
    tcase_add_test(t, rows_of_nodes_are_exact);
    tcase_add_test(t, an_sddmm_plan_serves_every_narrower_width);
    tcase_add_test(t, sddmm_sees_refreshed_values);
    tcase_add_test(t, all_pairs_of_scalars_with_and_without_the_matrix);
}
