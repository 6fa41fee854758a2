/* SPDX-License-Identifier: BSD-3-Clause */
/* standins.h - see standins.c. */
#ifndef SPS_STANDINS_H
#define SPS_STANDINS_H

#include <setjmp.h>
#include <stdbool.h>

/* Where a call into the libraries returns to if they want to end the process;
 * valid while `armed`. */
typedef struct standins {
    jmp_buf back;
    bool armed;
} standins;

extern standins spsi_standins;

/* Begins the sequence of `rand` anew, so that each call of a library finds the
 * same one. */
void spsi_standins_seed(void);

#endif
