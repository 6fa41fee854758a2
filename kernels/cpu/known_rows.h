/* SPDX-License-Identifier: BSD-3-Clause */
/* known_rows.h - rows of C = A B on the host, where the number of entries of
 * each is known, with the same bits as on the GPU: the host's share of a
 * product whose other rows the GPU computes (csr_multiply.c). */
#ifndef SPS_CPU_KNOWN_ROWS_H
#define SPS_CPU_KNOWN_ROWS_H

#include "matrix/csr.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct multiply_job sps_known_rows;

/* csr_multiply of the host (core/backend.h); A may be rows of a matrix, whose
 * offsets do not begin with 0. */
sps_status spsi_cpu_csr_multiply(sps_context *ctx, const sps_csr *A,
                                 const sps_csr *B, sps_csr **C_p);

/* Allocates the columns and values of C for C->nnz entries, in huge pages where
 * the system has them; those that it had are freed. */
sps_status spsi_cpu_known_rows_room(sps_context *ctx, sps_csr *C);

/* Prepares the computation of rows of C, whose offsets are set and whose arrays
 * are allocated.  A, B and C have values of one type, and stay as they are
 * until the end.  ENOMEM: no memory for the work arrays of all threads. */
sps_status spsi_cpu_known_rows_open(sps_context *ctx, const sps_csr *A,
                                    const sps_csr *B, const sps_csr *C,
                                    sps_known_rows **rows_p);
/* Computes rows first .. last - 1; called by the threads of a parallel region
 * (core/team.h), by each for rows of its own. */
void spsi_cpu_known_rows_make(sps_known_rows *rows, int64_t first,
                              int64_t last);
void spsi_cpu_known_rows_close(sps_known_rows **rows_p);

#ifdef __cplusplus
}
#endif
#endif
