/* SPDX-License-Identifier: BSD-3-Clause */
/* eigen_search.h - which pairs are wanted, and the state of the search for
 * them. */
#ifndef SPS_EIGEN_SEARCH_H
#define SPS_EIGEN_SEARCH_H

#include <math.h>

#include "driver/linear.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sps_selection {
    bool nearest;                /* the pairs nearest to sigma, rather than
                                    those at an end of the spectrum */
    double sign;                 /* 1: smallest first, -1: largest first */
    double sigma;
} sps_selection;

/* Returns the value by which the wanted pairs are sorted, ascending. */
static inline double spsi_selection_rank(const sps_selection *wanted,
                                         double lambda)
{
    return wanted->nearest ? fabs(lambda - wanted->sigma)
                           : wanted->sign * lambda;
}

typedef struct sps_search {
    sps_stop stop;               /* why it ended, or SPS_STOP_RUNNING */
    const char *event;           /* event that the next call of the monitor
                                    reports, or NULL */
    int iteration, restarts;
    double started;              /* time at which the solve began, in
                                    seconds */
} sps_search;

#ifdef __cplusplus
}
#endif
#endif
