/* SPDX-License-Identifier: BSD-3-Clause */
/* client_0_1.h - a program built against the header of version 0.1. */
#ifndef SPS_TEST_CLIENT_0_1_H
#define SPS_TEST_CLIENT_0_1_H

/* Each returns NULL, or a description of the failure. */
const char *client_0_1_solves(void);
const char *client_0_1_is_told(void);

#endif
