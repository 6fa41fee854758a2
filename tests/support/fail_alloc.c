/* SPDX-License-Identifier: BSD-3-Clause */
/* fail_alloc.c - see fail_alloc.h. */
#include "tests/support/fail_alloc.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* Header before each host block, checked by free.  Its 40 bytes leave the block
 * aligned to 8 bytes only: the library must align whatever it gets. */
typedef struct head {
    uint64_t magic, bytes;
    char skew[24];
} head;

#define ALIVE 0x5ca1ab1e5ca1ab1eu
#define FREED 0xdeadbeefdeadbeefu

static bool refused(fail_alloc *f)
{
    f->calls++;
    if (f->allowed < 0 || f->calls <= f->allowed) return false;
    f->fired = true;
    return true;
}

static void *host_alloc(size_t bytes, void *data)
{
    fail_alloc *f = data;
    head *h;

    if (refused(f) || !(h = malloc(sizeof *h + bytes))) return NULL;
    h->magic = ALIVE;
    h->bytes = bytes;
    f->live++;
    f->bytes += bytes;
    return memset(h + 1, 0xff, bytes);
}

static void host_free(void *p, size_t bytes, void *data)
{
    fail_alloc *f = data;
    head *h = (head *)p - 1;

    if (h->magic != ALIVE || h->bytes != bytes) {
        f->mismatches++;
        return; /* leaked rather than freed twice */
    }
    h->magic = FREED;
    memset(p, 0xff, bytes);
    f->live--;
    f->bytes -= bytes;
    free(h);
}

typedef int (*driver_alloc)(unsigned long long *, size_t);
typedef int (*driver_free)(unsigned long long);

static void *driver(const char *name)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);

    return library ? dlsym(library, name) : NULL;
}

static void *device_alloc(size_t bytes, void *data)
{
    fail_alloc *f = data;
    driver_alloc alloc = (driver_alloc)driver("cuMemAlloc_v2");
    unsigned long long p = 0;

    if (refused(f) || !alloc || alloc(&p, bytes) != 0) return NULL;
    f->live++;
    f->bytes += bytes;
    return (void *)(uintptr_t)p;
}

static void device_free(void *p, size_t bytes, void *data)
{
    fail_alloc *f = data;
    driver_free release = (driver_free)driver("cuMemFree_v2");

    if (!release || release((unsigned long long)(uintptr_t)p) != 0)
        f->mismatches++;
    f->live--;
    f->bytes -= bytes;
}

const sps_allocator *fail_alloc_host(fail_alloc *f)
{
    f->hooks = (sps_allocator){sizeof f->hooks, host_alloc, host_free, f};
    return &f->hooks;
}

const sps_allocator *fail_alloc_device(fail_alloc *f)
{
    f->hooks = (sps_allocator){sizeof f->hooks, device_alloc, device_free, f};
    return &f->hooks;
}

void fail_alloc_allow(fail_alloc *f, long count)
{
    f->allowed = count;
    f->calls = 0;
    f->fired = false;
}
