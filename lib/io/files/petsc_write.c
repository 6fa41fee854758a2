/* SPDX-License-Identifier: BSD-3-Clause */
/* petsc_write.c - writes binary files of PETSc with 32-bit integers (petsc.h):
 * a csr as Mat, a column as Vec, a block of several columns as dense Mat. */
#include <string.h>

#include "io/files/petsc.h"
#include "io/files/writer.h"
#include "matrix/csr.h"

/* Writes the lowest `bytes` bytes of v, the highest one of them first. */
static char *put(char *p, uint64_t v, int bytes)
{
    for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8)
        *p++ = (char)(v >> shift & 255);
    return p;
}

static uint64_t bits_of(double x)
{
    uint64_t v;

    memcpy(&v, &x, sizeof v);
    return v;
}

/* Defines a function that prints items first .. last-1 of data, of type T: of
 * item i the number `value`, in `bytes` bytes. */
#define PRINTER(name, T, value, bytes)                                         \
    static size_t name(const void *data, int64_t first, int64_t last,          \
                       char *text)                                             \
    {                                                                          \
        const T *from = data;                                                  \
        char *p = text;                                                        \
                                                                               \
        for (int64_t i = first; i < last; i++)                                 \
            p = put(p, (uint64_t)(value), bytes);                              \
        return (size_t)(p - text);                                             \
    }
PRINTER(print_integers, int32_t, from[i], 4)
PRINTER(print_lengths, int64_t, from[i + 1] - from[i], 4)
PRINTER(print_values, sps_csr, bits_of(spsi_csr_value(from, i)), 8)
PRINTER(print_reals, double, bits_of(from[i]), 8)

static sps_status write_csr(sps_context *ctx, spsi_sink *s, const sps_csr *A,
                            bool symmetric)
{
    const int32_t header[] = {SPSI_PETSC_MAT, (int32_t)A->nrow,
                              (int32_t)A->ncol, (int32_t)A->nnz};
    sps_status st;

    (void)symmetric;             /* PETSc has none: all is written */
    SPS_REQUIRE(ctx, A->nrow <= INT32_MAX && A->ncol <= INT32_MAX &&
                A->nnz <= INT32_MAX, SPS_EINVAL, "%lld entries are too many "
                "for a binary file of PETSc with 32-bit integers: write .npz",
                (long long)A->nnz);
    SPS_TRY(spsi_sink_write(s, print_integers, header, 4, 4));
    SPS_TRY(spsi_sink_write(s, print_lengths, A->rowptr, A->nrow, 4));
    SPS_TRY(spsi_sink_write(s, print_integers, A->col, A->nnz, 4));
    SPS_TRY(spsi_sink_write(s, print_values, A, A->nnz, 8));
fail:
    return st;
}

static sps_status write_block(spsi_sink *s, const sps_block *X,
                              bool interleaved)
{
    const int32_t header[] = {X->k == 1 ? SPSI_PETSC_VEC : SPSI_PETSC_MAT,
                              (int32_t)X->n, X->k, SPSI_PETSC_DENSE};
    double *x = NULL;
    sps_status st;

    SPS_REQUIRE(X->ctx, !interleaved && X->n <= INT32_MAX, SPS_EINVAL,
                "a block that is complex or has more than 2^31 - 1 rows (this "
                "one has %lld) cannot be written for PETSc: write .mtx or "
                ".npy", (long long)X->n);
    SPS_TRY(SPS_NEW(X->ctx, X->n * X->k, &x));
    if (X->n > 0)
        SPS_TRY(sps_block_get(X, 0, X->k, x, X->k, SPS_ROW_MAJOR, SPS_HOST));
    SPS_TRY(spsi_sink_write(s, print_integers, header, X->k == 1 ? 2 : 4, 4));
    SPS_TRY(spsi_sink_write(s, print_reals, x, X->n * X->k, 8));
fail:
    spsi_free(X->ctx, x);
    return st;
}

SPS_DEFINE(spsi_writer, spsi_writer_petsc) = {
    .suffix = ".petsc", .csr = write_csr, .block = write_block,
};
