/* SPDX-License-Identifier: BSD-3-Clause */
/* product_gram.h - Y = a X C + b W and Y'Y in one pass for 33 to 64 columns; Y
 * = a X C + b W for 65 to 128 columns, and Y = a X C for 49 to 56. */
#ifndef SPS_CUDA_PRODUCT_GRAM_H
#define SPS_CUDA_PRODUCT_GRAM_H

#include "cuda/base/state.h"

/* The operands of Y = a X C + b W: the first k1 columns of X and k2 of W and Y;
 * c is C, k1 x k2, in device memory. */
typedef struct sps_cuda_product {
    double a, b;
    const sps_block *X, *W;
    const double *c;
    sps_block *Y;       /* row i may share memory with row i of X or W */
    int k1, k2;
} sps_cuda_product;

/* Returns whether this product is supported (width, alignment, shared
 * memory). */
bool spsi_cuda_product_gram_for(const sps_cuda_product *p);
sps_status spsi_cuda_product_gram(const sps_cuda_product *p, sps_small *G);

/* spsi_cuda_wide_product computes the product without Y'Y; `squares` receives
 * the sums of squares of the columns of Y, unless it is NULL. */
bool spsi_cuda_wide_product_for(const sps_cuda_product *p);
sps_status spsi_cuda_wide_product(const sps_cuda_product *p,
                                  sps_small *squares);

#endif
