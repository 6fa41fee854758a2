/* SPDX-License-Identifier: BSD-3-Clause */
/* absent.h - whether a listed preconditioner lacks its module here: factor,
 * where MUMPS was not found.  For loops over sps_list("precond"). */
#ifndef SPS_TEST_ABSENT_H
#define SPS_TEST_ABSENT_H

#include <check.h>

#include "spsolve.h"

static inline bool absent(const char *precond)
{
    sps_context *own = NULL;
    sps_csr *A = NULL;
    sps_operator *op = NULL;
    sps_precond *M = NULL;
    sps_options opt;
    sps_context_options o;
    sps_status st;

    sps_context_options_default(&o);
    o.place = SPS_HOST;
    ck_assert_int_eq(sps_context_create(&o, &own, NULL), SPS_OK);
    ck_assert_int_eq(sps_csr_create(own, 1, 1, 1, SPS_F64, &A), SPS_OK);
    A->rowptr[1] = 1;
    *(double *)A->val = 1;
    ck_assert_int_eq(sps_operator_csr(own, A, 1, NULL, &op), SPS_OK);
    sps_options_default(&opt);
    opt.precond = precond;
    st = sps_precond_create(op, 1, &opt, &M);
    ck_assert(st == SPS_OK || st == SPS_EABSENT);
    sps_precond_destroy(&M);
    sps_operator_destroy(&op);
    sps_csr_destroy(own, &A);
    sps_context_destroy(&own);
    return st == SPS_EABSENT;
}

#endif
