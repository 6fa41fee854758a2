/* SPDX-License-Identifier: BSD-3-Clause */
/* limit.h - SPS_TEST_DEVICE_BYTES=N: contexts of the suites take at most N bytes
 * of the GPU (sps_context_options.max_device_bytes), so that any suite can be
 * run as on a small card. */
#ifndef SPS_TEST_LIMIT_H
#define SPS_TEST_LIMIT_H

#include <stdlib.h>

static inline size_t limit_device_bytes(void)
{
    const char *text = getenv("SPS_TEST_DEVICE_BYTES");

    return text ? (size_t)strtoull(text, NULL, 10) : 0;
}

#endif
