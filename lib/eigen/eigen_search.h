/* SPDX-License-Identifier: BSD-3-Clause */
/* eigen_search.h - which pairs are wanted, and how the search for them goes. */
#ifndef SPS_EIGEN_SEARCH_H
#define SPS_EIGEN_SEARCH_H

#include <math.h>

#include "driver/linear.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sps_selection {
    bool nearest;                /* the pairs nearest to sigma, else an end */
    double sign;                 /* 1: smallest first, -1: largest first */
    double sigma;
} sps_selection;

/* What the pairs wanted are sorted by, ascending. */
static inline double spsi_selection_rank(const sps_selection *wanted,
                                         double lambda)
{
    return wanted->nearest ? fabs(lambda - wanted->sigma)
                           : wanted->sign * lambda;
}

typedef struct sps_search {
    sps_stop stop;               /* why it ended; SPS_STOP_RUNNING before */
    const char *event;           /* for the next call of the monitor, or NULL */
    int iteration, restarts;
    double started;              /* seconds */
} sps_search;

#ifdef __cplusplus
}
#endif
#endif
