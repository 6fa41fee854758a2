/* SPDX-License-Identifier: BSD-3-Clause */
/* fail_alloc.h - allocators that fail when told, and remember every size.
 *
 * Host memory comes filled with bytes 0xff (doubles: NaN) and leaves the same
 * way, so that reading what was not written shows.  The device allocator asks
 * the driver, which it finds by name: tests include nothing of CUDA. */
#ifndef FAIL_ALLOC_H
#define FAIL_ALLOC_H

#include "spsolve.h"

typedef struct fail_alloc {
    long allowed;    /* calls that succeed before all fail; < 0: no limit */
    long calls;      /* since fail_alloc_allow */
    bool fired;      /* a call was refused since fail_alloc_allow */
    long live;       /* blocks not freed */
    size_t bytes;    /* in them */
    long mismatches; /* frees that named another size, or freed twice */
} fail_alloc;

/* Hooks for sps_context_options.host and .gpu; f outlives the context. */
sps_allocator fail_alloc_host(fail_alloc *f);
sps_allocator fail_alloc_device(fail_alloc *f);
/* From now on the first count calls succeed; < 0: all. */
void fail_alloc_allow(fail_alloc *f, long count);

#endif
