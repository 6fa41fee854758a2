/* SPDX-License-Identifier: BSD-3-Clause */
/* format.h - kinds of files.  A kind is one file with a table spsi_format, and
 * its line in lib/io/open.c; files that no table recognises are Matrix Market
 * files (mtx.h), or are refused with a hint (mtx_foreign.c).
 *
 * A file passes through text.h (unpacked bytes) and is recognised by its first
 * bytes; `read` returns a csr or a dense array, from which the csr or block
 * that the caller wants is made. */
#ifndef SPS_FORMAT_H
#define SPS_FORMAT_H

#include "io/stream/text.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A file that is being read. */
typedef struct spsi_file {
    sps_context *ctx;
    spsi_text *text;
    const char *name;          /* for messages */
    const char *variable;      /* VARIABLE of FILE:VARIABLE, or NULL */
    char *path;                /* FILE, if a variable is named */
    sps_read_options options;
    bool block;                /* the caller wants a block, otherwise a csr */
    bool peek;                 /* only the sizes are needed */
    int64_t first, rows, whole;  /* of a block: rows first .. first+rows-1 are
                                  wanted of a file that must have `whole`; all
                                  rows if whole is 0 */
} spsi_file;

/* Contents of a file: a csr, or a dense array of nrow x ncol elements without
 * gaps.  With `peek` only the sizes. */
typedef struct spsi_content {
    int64_t nrow, ncol, count; /* count: entries in the file */
    sps_csr *A;                /* rows need not be sorted; columns and offsets
                                  have been checked */
    double *x;
    sps_order order;           /* storage order of x */
    sps_read_info info;        /* field, symmetry, lines, rounded; the rest is
                                  filled in by read.c */
} spsi_content;

typedef struct spsi_format {
    bool (*recognise)(const spsi_file *f, const char *head, size_t length);
    /* EPARSE "FILE: what (and what to do)", with the line or the byte. */
    sps_status (*read)(const spsi_file *f, spsi_content *c);
} spsi_format;

extern const spsi_format spsi_format_boeing, spsi_format_plain,
    spsi_format_mat5, spsi_format_npy, spsi_format_npz, spsi_format_petsc;

/* entries.c: checks the range of c->nrow, ncol and count, and their memory
 * (size.h). */
sps_status spsi_format_check(const spsi_file *f, const spsi_content *c,
                             bool mirrors, uint64_t bytes);

/* Creates the csr of `count` entries, all in range, of a c->nrow x c->ncol
 * matrix.  If val is NULL, all values are 1.  sign is 0, or the factor of the
 * mirror image of each entry off the diagonal.  The order within a row is that
 * of the entries. */
sps_status spsi_entries_csr(const spsi_file *f, const spsi_content *c,
                            int64_t count, const int32_t *row,
                            const int32_t *col, const double *val, double sign,
                            sps_csr **A_p);
/* Does the same for entries by columns: those of column j are start[j] to
 * start[j + 1] - 1, checked. */
sps_status spsi_entries_csc(const spsi_file *f, const spsi_content *c,
                            const int64_t *start, const int32_t *row,
                            const double *val, double sign, sps_csr **A_p);
/* Returns EPARSE unless start[0 .. n] begins with 0, never decreases, and ends
 * with `count`; `what` is its name in the file, and `base` is added to the
 * numbers in the message. */
sps_status spsi_entries_check(const spsi_file *f, const char *what,
                              const int64_t *start, int64_t n, int64_t count,
                              int base);

/* open.c: opens the file `path`; *format is its kind, or NULL for Matrix Market
 * and for unknown kinds.  f->ctx is set, and f must be closed also after a
 * failure. */
sps_status spsi_file_open(spsi_file *f, const char *path,
                          const sps_read_options *ro,
                          const spsi_format **format);
void spsi_file_close(spsi_file *f);

/* open.c: ESHAPE if f->whole is neither 0 nor n. */
sps_status spsi_file_rows(const spsi_file *f, int64_t n);

/* mtx_csr.c, mtx_block.c: read Matrix Market files. */
sps_status spsi_mtx_read_csr(const spsi_file *f, sps_read_info *info,
                             sps_csr **A_p);
sps_status spsi_mtx_read_block(const spsi_file *f, bool interleaved,
                               sps_block **X_p);
/* mtx_block_ranks.c: for several processes, collective.  Reads a real array
 * file by parts to the own rows, f->first and so on; f is not open.  *done is
 * false, on all processes, if the file must be read as a whole by each. */
sps_status spsi_mtx_read_block_ranks(spsi_file *f, const char *path,
                                     const sps_read_options *ro,
                                     sps_block **X_p, bool *done);
/* mtx_read.c: fills in *c with the sizes in the header of a Matrix Market
 * file. */
sps_status spsi_mtx_sizes(const spsi_file *f, spsi_content *c);

#ifdef __cplusplus
}
#endif
#endif
