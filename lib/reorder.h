/* SPDX-License-Identifier: BSD-3-Clause */
/* reorder.h - a second operator over the same matrix with its unknowns in a
 * better order, for solvers to work on: P A P' (P x) = P b. */
#ifndef SPS_REORDER_H
#define SPS_REORDER_H

#include "operator.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sps_reordering {
    sps_csr *A, *P, *T;       /* P A P', P, P' */
    int64_t *entry;           /* of the original that entry p of A is */
    sps_operator *inner;      /* over A */
    sps_operator *forth, *back;   /* over P and P' */
    void *val;                /* scratch for new values */
} sps_reordering;

/* Makes op->reordered where o->reorder asks for it, or auto predicts a gain
 * (noted). */
sps_status spsi_operator_reorder(sps_operator *op, const sps_options *o);
/* The inner operator takes op's values. */
sps_status spsi_operator_reorder_values(sps_operator *op);
void spsi_operator_reorder_drop(sps_operator *op);

#ifdef __cplusplus
}
#endif
#endif
