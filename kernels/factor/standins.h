/* SPDX-License-Identifier: BSD-3-Clause */
/* standins.h - see standins.c. */
#ifndef SPS_STANDINS_H
#define SPS_STANDINS_H

#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdbool.h>

/* The place to which a call into the libraries returns if they try to end the
 * process; valid in one thread, while `armed`. */
typedef struct standins {
    jmp_buf back;
    pthread_t thread;
    atomic_bool armed;
} standins;

extern standins spsi_standins;

/* Makes the place valid for the calling thread. */
void spsi_standins_arm(void);
/* Restarts the sequence of rand(), so that each call of a library finds the
 * same one. */
void spsi_standins_seed(void);

#endif
