/* SPDX-License-Identifier: BSD-3-Clause */
/* fail_alloc.h - allocators that fail on request and record the size of every
 * allocation.
 *
 * Host memory is filled with bytes 0xff (doubles: NaN) before it is handed out
 * and when it is freed, so that reads of uninitialised or freed memory show in
 * the results.  The device allocator finds the driver's functions by name at
 * run time: tests include no CUDA header. */
#ifndef FAIL_ALLOC_H
#define FAIL_ALLOC_H

#include "spsolve.h"

typedef struct fail_alloc {
    long allowed;    /* calls that succeed before all fail; < 0: no limit */
    long calls;      /* since fail_alloc_allow */
    bool fired;      /* a call was refused since fail_alloc_allow */
    long live;       /* blocks not freed */
    size_t bytes;    /* their total size */
    long mismatches; /* frees with a wrong size, or freed twice */
    sps_allocator hooks;
} fail_alloc;

/* Allocators for sps_context_options.host and .gpu; f must outlive the
 * context. */
const sps_allocator *fail_alloc_host(fail_alloc *f);
const sps_allocator *fail_alloc_device(fail_alloc *f);
/* From now on the first `count` calls succeed and all later ones fail; < 0: all
 * succeed. */
void fail_alloc_allow(fail_alloc *f, long count);

#endif
