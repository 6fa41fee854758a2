/* SPDX-License-Identifier: BSD-3-Clause */
/* schwarz.h - see schwarz.c. */
#ifndef SPS_SCHWARZ_H
#define SPS_SCHWARZ_H

#include "driver/precond.h"

/* The member `over` of the types ic0, ilu0, ilut and factor, which each process
 * builds for its diagonal block: replaces such a type by the one of the same
 * name that has a coarse space.  It does not if near_null is none, with
 * across_ranks, or for one process. */
sps_status spsi_schwarz_over(const sps_operator *A, const sps_options *opt,
                             const sps_precond_type **type_p);

#endif
