/* SPDX-License-Identifier: BSD-3-Clause */
/* write.c - the table of kinds of files that can be written, and the public
 * functions, which check what all kinds assume. */
#include <string.h>

#include "core/abi.h"
#include "core/comm.h"
#include "io/files/writer.h"
#include "io/stream/unwritten.h"
#include "matrix/csr.h"

static const spsi_writer *const writers[] = {
    &spsi_writer_npy,
    &spsi_writer_npz,
    &spsi_writer_petsc,
};

/* Returns EINVAL for names of files that can be read but not written. */
static sps_status check_name(sps_context *ctx, const char *path)
{
    char why[SPSI_WHY_UNWRITTEN];
    sps_status st = SPS_OK;

    SPS_REQUIRE(ctx, !spsi_unwritten(path, why), SPS_EINVAL, "%s: %s", path,
                why);
fail:
    return st;
}

static const spsi_writer *writer_of(const char *path)
{
    size_t length = strlen(path);

    if (spsi_name_ends(path, length, ".gz")) length -= 3;
    for (size_t i = 0; i < sizeof writers / sizeof *writers; i++)
        if (spsi_name_ends(path, length, writers[i]->suffix)) return writers[i];
    return &spsi_writer_mtx;
}

sps_status sps_csr_write(sps_context *ctx, const char *path, const sps_csr *A,
                         bool symmetric)
{
    const spsi_writer *w;
    spsi_sink *s = NULL;
    bool sorted;
    sps_status st;

    SPS_REQUIRE(ctx, ctx && path, SPS_EINVAL,
                "sps_csr_write: the context or the path is NULL");
    SPS_TRY(check_name(ctx, path));
    SPS_TRY(spsi_abi_csr(ctx, "sps_csr_write", A));
    SPS_REQUIRE(ctx, A->place == SPS_HOST, SPS_EINVAL,
                "sps_csr_write: the matrix must be on the host");
    SPS_REQUIRE(ctx, !symmetric || A->nrow == A->ncol, SPS_ESHAPE,
                "sps_csr_write: a matrix of %lld x %lld cannot be written "
                "as symmetric",
                (long long)A->nrow, (long long)A->ncol);
    SPS_TRY(spsi_csr_complete(ctx, "sps_csr_write", A));
    SPS_TRY(spsi_csr_inspect(ctx, A, &sorted));
    w = writer_of(path);
    SPS_REQUIRE(ctx, w->csr, SPS_EINVAL, "%s: a sparse matrix is not written "
                "as %s, but as .npz, .petsc or .mtx", path, w->suffix);
    SPS_TRY(spsi_sink_open(ctx, path, &s));
    SPS_TRY(w->csr(ctx, s, A, symmetric));
    return spsi_sink_close(&s);

fail:
    spsi_sink_abandon(&s);
    return st;
}

/* *first = the position of the own rows among those of all processes, *whole =
 * the number of all.  ESHAPE unless all have the same number of columns. */
static sps_status place_rows(const sps_block *X, int64_t *first,
                             int64_t *whole)
{
    const int size = spsi_comm_size(X->ctx), own = spsi_comm_rank(X->ctx);
    double *rows = NULL, k[2] = { X->k, 0 };
    sps_status st;

    SPS_TRY(SPS_NEW(X->ctx, size, &rows));
    SPS_TRY(spsi_reduce(X->ctx, k, 1));
    k[1] = k[0] != (double)size * X->k;
    SPS_TRY(spsi_reduce(X->ctx, k + 1, 1));
    SPS_REQUIRE(X->ctx, k[1] == 0, SPS_ESHAPE, "sps_block_write: the blocks of "
                "the processes have different numbers of columns");
    SPS_TRY(spsi_comm_gather(X->ctx, (double)X->n, rows));
    *first = *whole = 0;
    for (int r = 0; r < size; r++) {
        if (r == own) *first = *whole;
        *whole += (int64_t)rows[r];
    }
fail:
    spsi_free(X->ctx, rows);
    return st;
}

/* For several processes, collective: each writes its rows to the same file. */
static sps_status write_rows(const sps_block *X, const char *path,
                             bool interleaved)
{
    const size_t length = strlen(path);
    const spsi_writer *w = writer_of(path);
    spsi_shared s = { .fd = -1 };
    int64_t first = 0, whole = 0;
    sps_status st;

    SPS_TRY(check_name(X->ctx, path));
    SPS_REQUIRE(X->ctx, w->rows && !interleaved &&
                !spsi_name_ends(path, length, ".gz"), SPS_EUNFIT,
                "%s: several processes write real blocks as Matrix Market or "
                ".npy, not compressed", path);
    SPS_TRY(place_rows(X, &first, &whole));
    SPS_TRY(spsi_shared_open(X->ctx, path, &s));
    SPS_TRY(w->rows(&s, X, first, whole));
    SPS_TRY(spsi_shared_close(&s));
fail:
    spsi_shared_abandon(&s);
    return st;
}

sps_status sps_block_write(const sps_block *X, const char *path,
                           bool interleaved)
{
    spsi_sink *s = NULL;
    sps_status st;

    SPS_HANDLE(X);
    SPS_REQUIRE(X->ctx, path, SPS_EINVAL, "sps_block_write: path is NULL");
    if (spsi_comm_many(X->ctx)) {
        SPS_TRY(spsi_comm_begin(X->ctx));
        return spsi_comm_end(X->ctx, write_rows(X, path, interleaved));
    }
    SPS_TRY(check_name(X->ctx, path));
    SPS_REQUIRE(X->ctx, !interleaved || X->n % 2 == 0, SPS_ESHAPE,
                "sps_block_write: %lld rows cannot be interleaved pairs",
                (long long)X->n);
    SPS_TRY(spsi_sink_open(X->ctx, path, &s));
    SPS_TRY(writer_of(path)->block(s, X, interleaved));
    return spsi_sink_close(&s);

fail:
    spsi_sink_abandon(&s);
    return st;
}
