/* SPDX-License-Identifier: BSD-3-Clause */
/* dissection.h - an ordering by nested dissection. */
#ifndef SPS_DISSECTION_H
#define SPS_DISSECTION_H

#include "core/factors.h"

/* Returns the position of each unknown in the order of elimination, counted
 * from 1, in an array that the caller releases by free(); or NULL if METIS is
 * not built in or failed. */
int32_t *spsi_dissection(const sps_factor_matrix *A);

/* The `partition` of sps_factor_library: NULL if METIS is not built in. */
#if SPS_HAVE_METIS
int spsi_parts(const sps_factor_matrix *A, int parts, const float *share,
               int32_t *part);
#define SPS_PARTITION spsi_parts
#else
#define SPS_PARTITION NULL
#endif

#endif
