/* SPDX-License-Identifier: BSD-3-Clause */
/* convert.c - -convert: writes the matrix of -A, or the block of -B, to a file
 * of another format. */
#include "tools/command/job.h"

#include <string.h>

/* Writes the matrix to a file; of a symmetric matrix one triangle, where the
 * format can state that it is symmetric. */
static int convert_matrix(job *j, char *what, size_t size)
{
    sps_status st;
    int code;

    j->system.read.struct_size = sizeof j->system.read;
    code = job_read_csr(j, j->opt.file.A, &j->system.read, &j->A);
    if (code) return code;
    if (j->A->props & SPS_INTERLEAVED)
        return job_fail(j, EXIT_INPUT, "bad_input", "%s: complex matrices are "
                        "not converted", j->opt.file.A);
    if (j->opt.laplacian && (code = job_laplacian(j))) return code;
    snprintf(what, size, "%lld x %lld, %lld entries", (long long)j->A->nrow,
             (long long)j->A->ncol, (long long)j->A->nnz);
    st = sps_csr_write(j->ctx, j->opt.file.convert, j->A,
                       (j->A->props & SPS_SYMMETRIC) != 0);
    return st == SPS_OK ? 0 : job_failed(j, st, false);
}

static int convert_block(job *j, char *what, size_t size)
{
    sps_read_options ro;
    sps_status st;
    int64_t n = 0;
    int k = 0;

    job_read_options(j, &ro);
    st = sps_block_read(j->ctx, j->opt.file.B, &ro, false, &j->B);
    if (st != SPS_OK) return job_failed(j, st, true);
    sps_block_shape(j->B, &n, &k);
    snprintf(what, size, "%lld x %d, dense", (long long)n, k);
    st = sps_block_write(j->B, j->opt.file.convert, false);
    return st == SPS_OK ? 0 : job_failed(j, st, false);
}

void convert_run(job *j)
{
    const cli_values *v = &j->opt;
    FILE *f = strcmp(v->file.convert, "-") == 0 ? stderr : stdout;
    char what[120] = "";
    const char *note;
    int code = job_context(j);

    if (code == 0)
        code = v->file.A ? convert_matrix(j, what, sizeof what)
                    : convert_block(j, what, sizeof what);
    progress_clear(&j->progress);
    if (code != 0) {
        fprintf(stderr, CLI_PROGRAM ": %s\n", j->end.message);
        return;
    }
    j->end.status = "converted";
    if (v->quiet) return;
    fprintf(f, "%s: %s, written to %s in %.3f s\n",
            v->file.A ? v->file.A : v->file.B, what, v->file.convert,
            job_now() - j->seconds.start);
    for (int i = 0; (note = sps_context_note(j->ctx, i)); i++)
        fprintf(f, "note: %s\n", note);
}
