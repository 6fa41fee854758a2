/* SPDX-License-Identifier: BSD-3-Clause */
/* rates.h - what predictions assume of a place, measured once
 * (doc/machine.md). */
#ifndef SPS_RATES_H
#define SPS_RATES_H

/* Bytes/s that an H200 copies, read plus written; the other rates of that
 * machine are multiples of it (kernels/cuda/machine.h). */
#define SPS_H200_COPY 4.2e12

#endif
