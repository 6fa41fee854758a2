/* SPDX-License-Identifier: BSD-3-Clause */
/* csr_far_test.h - for tests of the order of work in a product by panels
 * (csr_multiply_far.cu). */
#ifndef SPS_CUDA_CSR_FAR_TEST_H
#define SPS_CUDA_CSR_FAR_TEST_H

#include "matrix/csr.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Waits that are omitted: for A_i in its slot, of the copy to the host for C_i,
 * for C_i in its slot, for C_i-3 that leaves the slot of C_i, and at the end
 * for all of C. */
enum {
    SPS_FAR_ENTERED = 1, SPS_FAR_COMPUTED = 2, SPS_FAR_THERE = 4,
    SPS_FAR_LEFT = 8, SPS_FAR_DONE = 16
};
/* Stages that are delayed, by 2 ms on the device and 10 ms on the host: each
 * piece of A on its way to a slot, copies of a slot to the device, values of
 * C_i, copies of C_i to a slot, each piece of C on its way from there, and rows
 * of C that the host computes. */
enum {
    SPS_FAR_ENTER = 1, SPS_FAR_UP = 2, SPS_FAR_PRODUCT = 4, SPS_FAR_DOWN = 8,
    SPS_FAR_LEAVE = 16, SPS_FAR_HOST = 32
};
typedef struct sps_far_test {
    unsigned omit, late;
    bool poison;                 /* slots and device memory that are released
                                    are filled with NaN */
    int64_t fail;                /* number of the copy between host and device
                                    that fails, the first one being 1; 0:
                                    none */
    bool alone;                  /* the host computes no rows of C */
    size_t room;                 /* for the rows of B of a part; 0: by the
                                    memory that is free */
    size_t panel;                /* largest panel of A or C in the second pass;
                                    0: 64 MB */
} sps_far_test;

/* The product by panels; `multiply_far` of the module. */
sps_status spsi_cuda_csr_multiply_far_tested(sps_context *ctx,
                                             const sps_csr *A,
                                             const sps_csr *B,
                                             const sps_far_test *test,
                                             sps_csr **C_p);

#ifdef __cplusplus
}
#endif
#endif
