/* SPDX-License-Identifier: BSD-3-Clause */
/* blas.h - to be called around every use of BLAS and LAPACK. */
#ifndef SPS_BLAS_H
#define SPS_BLAS_H

#include "core/context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* From here to spsi_blas_end, OpenBLAS works in the calling thread only:
 * results do not depend on its number of threads, and it starts none.  Other
 * libraries are not changed (the reference BLAS has one thread anyway).  Calls
 * nest, and any number of threads may be inside.  `callers` is the number of
 * threads that will call BLAS at the same time before spsi_blas_end.
 *
 * ENOMEM: there is no address space for the buffers of OpenBLAS, which would
 * retry for ever instead of failing.  spsi_blas_end must not be called then. */
sps_status spsi_blas_begin(sps_context *ctx, int callers);
void spsi_blas_end(int callers);

#ifdef __cplusplus
}
#endif
#endif
