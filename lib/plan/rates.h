/* SPDX-License-Identifier: BSD-3-Clause */
/* rates.h - machine constants for predictions, measured once
 * (doc/machine.md). */
#ifndef SPS_RATES_H
#define SPS_RATES_H

/* Copy bandwidth of an H200 in bytes/s, read plus written; the other rates of
 * that machine are multiples of it (kernels/cuda/base/machine.h). */
#define SPS_H200_COPY 4.2e12

#endif
