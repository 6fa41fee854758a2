/* SPDX-License-Identifier: BSD-3-Clause */
/* product_gram.h - Y = a X C + b W and Y'Y in one pass, of 33 to 64 columns; Y =
 * a X C + b W of 65 to 128 and Y = a X C of 49 to 56. */
#ifndef SPS_CUDA_PRODUCT_GRAM_H
#define SPS_CUDA_PRODUCT_GRAM_H

#include "state.h"

/* The first k1 columns of X and k2 of W and Y; c: k1 x k2 on the device. */
typedef struct sps_cuda_product {
    double a, b;
    const sps_block *X, *W;
    const double *c;
    sps_block *Y;       /* may share memory with X or W, column by column */
    int k1, k2;
} sps_cuda_product;

/* Whether they serve. */
bool spsi_cuda_product_gram_for(const sps_cuda_product *p);
sps_status spsi_cuda_product_gram(const sps_cuda_product *p, sps_small *G);

/* The same; squares: of Y's columns, or NULL. */
bool spsi_cuda_wide_product_for(const sps_cuda_product *p);
sps_status spsi_cuda_wide_product(const sps_cuda_product *p,
                                  sps_small *squares);

#endif
