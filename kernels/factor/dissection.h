/* SPDX-License-Identifier: BSD-3-Clause */
/* dissection.h - an ordering by nested dissection. */
#ifndef SPS_DISSECTION_H
#define SPS_DISSECTION_H

#include "core/factors.h"

/* Position of each unknown in the order of elimination, from 1, to be freed by
 * free(); NULL if METIS is not built in, or failed. */
int32_t *spsi_dissection(const sps_factor_matrix *A);

#endif
