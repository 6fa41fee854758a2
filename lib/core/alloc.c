/* SPDX-License-Identifier: BSD-3-Clause */
/* alloc.c - the only allocator of host memory.
 *
 * An allocation as the allocator returned it, and what the caller of spsi_new
 * sees:
 *
 *   base                            p, a multiple of 64
 *   [ slack ][ header: base, bytes ][ the caller's bytes ][ slack ]
 *
 * The header stores the allocated size, which a caller's allocator needs when
 * memory is freed; the slack makes the alignment independent of the allocator.
 * Zeroed memory comes from calloc, so that pages never written are never
 * touched, and pages are placed by the first thread that writes them.
 *
 * Large requests are checked against the memory of the machine.  Linux
 * overcommits, and kills a process that uses more than there is; ENOMEM must be
 * returned before that.
 *
 * A context belongs to one thread: allocate outside parallel regions. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/context.h"
#include "core/options.h"

#define ALIGN ((size_t)64)
#define LARGE ((size_t)64 << 20)
#define HUGE_PAGE ((uintptr_t)1 << 21)
#define OVERHEAD (ALIGN + sizeof(header))

typedef struct header {
    void *base;
    size_t total; /* bytes requested from the allocator */
} header;

static header *header_of(void *p)
{
    return (header *)p - 1;
}

static void *take(sps_context *ctx, size_t total, bool zero)
{
    const sps_allocator *hook = &ctx->host;
    void *base;

    if (!hook->alloc) return zero ? calloc(1, total) : malloc(total);
    base = hook->alloc(total, hook->data);
    return base && zero ? memset(base, 0, total) : base;
}

/* Reads a file in /proc or /sys: returns the first number that follows `key` at
 * the beginning of a line, times unit, or SIZE_MAX if there is none. */
static size_t read_limit(const char *path, const char *key, size_t unit)
{
    FILE *f = fopen(path, "re");
    char line[128];
    uint64_t x = SIZE_MAX;

    while (f && x == SIZE_MAX && fgets(line, sizeof line, f)) {
        const char *p = line + strlen(key);
        char *end;

        if (strncmp(line, key, strlen(key)) != 0) continue;
        x = strtoull(p, &end, 10) * unit;
        if (end == p) x = SIZE_MAX;              /* "max": no limit */
    }
    if (f) fclose(f);
    return (size_t)x;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Returns the number of bytes that this process may allocate: the smaller of
 * the machine's available memory and swap and of the limit of its control
 * group, less one sixteenth, which is left to other processes. */
static size_t available(void)
{
    size_t free = read_limit("/proc/meminfo", "MemAvailable:", 1024);
    size_t swap = read_limit("/proc/meminfo", "SwapFree:", 1024);

    if (free != SIZE_MAX && swap != SIZE_MAX) free += swap;
    free = least(free, read_limit("/sys/fs/cgroup/memory.max", "", 1));
    free = least(free, read_limit("/sys/fs/cgroup/memory/memory.limit_in_bytes",
                                  "", 1));
    return free == SIZE_MAX ? free : free - free / 16;
}

/* Returns whether `total` more bytes would exceed the limit, which is
 * determined at the first request.  With an allocator of the caller there is no
 * limit. */
static bool too_many(sps_context *ctx, size_t total)
{
    sps_memory_use *m = &ctx->memory;

    if (ctx->host.alloc) return false;
    if (m->host_limit == 0) {
        size_t more = available();

        m->host_limit = more < SIZE_MAX - m->host ? more + m->host : SIZE_MAX;
    }
    return m->host > m->host_limit || total > m->host_limit - m->host;
}

/* Adds bytes modulo 2^64, so that a negative count can be passed as well. */
static void count_host(sps_memory_use *m, size_t bytes)
{
    m->host += bytes;
    if (m->host_peak < m->host) m->host_peak = m->host;
}

/* Requests below LARGE are not checked before the limit is known: asking the
 * system for its limits would take longer than the allocation. */
static bool exceeds_limit(sps_context *ctx, size_t total)
{
    return (total >= LARGE || ctx->memory.host_limit > 0) &&
           too_many(ctx, total);
}

static sps_status allocate(sps_context *ctx, size_t bytes, bool zero,
                           void **p_p)
{
    size_t total = bytes + OVERHEAD;
    void *base;
    uintptr_t p;

    if (exceeds_limit(ctx, total))
        return spsi_fail(ctx, SPS_ENOMEM,
                         "no host memory for %zu bytes: %zu are allocated, "
                         "%zu are available in total", bytes, ctx->memory.host,
                         ctx->memory.host_limit);
    base = total > bytes ? take(ctx, total, zero) : NULL;
    if (!base)
        return spsi_fail(ctx, SPS_ENOMEM,
                         "no host memory for %zu bytes; %zu are allocated",
                         bytes, ctx->memory.host);
    p = ((uintptr_t)base + sizeof(header) + ALIGN - 1) & ~(ALIGN - 1);
    *header_of((void *)p) = (header){base, total};
    count_host(&ctx->memory, total);
    *p_p = (void *)p;
    return SPS_OK;
}

/* All pages of the array are advised, its first one too: realloc remaps memory
 * only if all of it has the same advice. */
void spsi_huge_pages(void *p, size_t bytes)
{
#ifdef MADV_HUGEPAGE
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t at = (uintptr_t)p, end = at + bytes;
    const uintptr_t first = at / page * page;

    if (end / HUGE_PAGE > (at + HUGE_PAGE - 1) / HUGE_PAGE)
        madvise((void *)first, end - first, MADV_HUGEPAGE);
#else
    (void)p, (void)bytes;
#endif
}

sps_status spsi_new(sps_context *ctx, size_t bytes, void **p_p)
{
    const sps_status st = allocate(ctx, bytes, true, p_p);

    if (st == SPS_OK && !ctx->host.alloc) spsi_huge_pages(*p_p, bytes);
    return st;
}

sps_status spsi_new_raw(sps_context *ctx, size_t bytes, void **p_p)
{
    return allocate(ctx, bytes, false, p_p);
}

sps_status spsi_new_array(sps_context *ctx, int64_t count, size_t size,
                          void **p_p)
{
    if (count < 0 || (uint64_t)count > (SIZE_MAX - OVERHEAD) / size)
        return spsi_fail(ctx, SPS_ENOMEM,
                         "%lld items of %zu bytes exceed the address space",
                         (long long)count, size);
    return spsi_new(ctx, (size_t)count * size, p_p);
}

void spsi_free(sps_context *ctx, void *p)
{
    header h;

    if (!p) return;
    h = *header_of(p);
    ctx->memory.host -= h.total;
    if (ctx->host.free)
        ctx->host.free(h.base, h.total, ctx->host.data);
    else
        free(h.base);
}

/* Returns the bytes from p to the end of its allocation, at least the requested
 * size. */
static size_t usable(void *p)
{
    const header *h = header_of(p);

    return h->total - (size_t)((char *)p - (char *)h->base);
}

static sps_status too_large(sps_context *ctx, size_t bytes)
{
    return spsi_fail(ctx, SPS_ENOMEM, "no host memory for %zu bytes; %zu are "
                     "allocated", bytes, ctx->memory.host);
}

/* Uses realloc, which remaps the pages of large allocations instead of copying,
 * so that there are never two copies.  The contents move within the allocation
 * only if the new base has another alignment modulo 64. */
static sps_status move(sps_context *ctx, size_t bytes, void **p_p)
{
    header h = *header_of(*p_p);
    /* volatile: must not be computed after the old base was freed. */
    volatile const size_t offset = (uintptr_t)*p_p - (uintptr_t)h.base;
    const size_t total = bytes + OVERHEAD, held = h.total - offset;
    size_t now;
    char *base;
    uintptr_t p;

    if (total < bytes ||
        (total > h.total && exceeds_limit(ctx, total - h.total)))
        return too_large(ctx, bytes);
    base = realloc(h.base, total);
    if (!base) return too_large(ctx, bytes);
    h.base = base;
    p = ((uintptr_t)base + sizeof(header) + ALIGN - 1) & ~(ALIGN - 1);
    now = (size_t)(p - (uintptr_t)base);
    if (now != offset)
        memmove((void *)p, base + offset, held < bytes ? held : bytes);
    *header_of((void *)p) = (header){ base, total };
    count_host(&ctx->memory, total - h.total);
    *p_p = (void *)p;
    return SPS_OK;
}

sps_status spsi_resize(sps_context *ctx, size_t bytes, void **p_p)
{
    void *old = *p_p, *p = NULL;
    sps_status st;

    if (old && !ctx->host.alloc) return move(ctx, bytes, p_p);
    st = spsi_new_raw(ctx, bytes, &p);
    if (st != SPS_OK) return st; /* *p_p is unchanged */
    if (old) {
        size_t held = usable(old);

        memcpy(p, old, held < bytes ? held : bytes);
        spsi_free(ctx, old);
    }
    *p_p = p;
    return SPS_OK;
}

void spsi_limit_host(sps_context *ctx, size_t bytes)
{
    ctx->memory.host_limit = bytes;
}

sps_status spsi_claim(sps_context *ctx, size_t bytes, const char *what)
{
    sps_memory_use *m = &ctx->memory;

    if (too_many(ctx, bytes))
        return spsi_fail(ctx, SPS_ENOMEM, "no host memory for %zu bytes, %s: "
                         "%zu are allocated, %zu are available in total",
                         bytes, what, m->host, m->host_limit);
    count_host(m, bytes);
    return SPS_OK;
}

void spsi_unclaim(sps_context *ctx, size_t bytes)
{
    ctx->memory.host -= bytes;
}

char *spsi_strdup(sps_context *ctx, const char *text)
{
    size_t bytes = strlen(text) + 1;
    void *p = NULL;

    if (spsi_new_raw(ctx, bytes, &p) != SPS_OK) return NULL;
    return memcpy(p, text, bytes);
}

size_t spsi_device_left(const sps_context *ctx)
{
    const size_t limit = ctx->opt.max_device_bytes, use = ctx->memory.device;

    if (limit == 0) return SIZE_MAX;
    return use < limit ? limit - use : 0;
}

void spsi_count_device(sps_context *ctx, int64_t bytes)
{
    sps_memory_use *m = &ctx->memory;

    m->device += (size_t)bytes; /* modulo 2^64: subtracts as well */
    m->device_frees += bytes < 0;
    if (m->device_peak < m->device) m->device_peak = m->device;
}
