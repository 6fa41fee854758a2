/* SPDX-License-Identifier: BSD-3-Clause */
/* schwarz.h - see schwarz.c. */
#ifndef SPS_SCHWARZ_H
#define SPS_SCHWARZ_H

#include "driver/precond.h"

/* For `over` of types that each process builds for its diagonal block: replaces
 * the type by that of the same name with a coarse space. */
sps_status spsi_schwarz_over(const sps_operator *A, const sps_options *opt,
                             const sps_precond_type **type_p);

#endif
