/* SPDX-License-Identifier: BSD-3-Clause */
/* alloc.c - the one door to host memory.
 *
 * A block as the allocator gave it, and what the caller of spsi_new sees:
 *
 *   base                            p, a multiple of 64
 *   [ slack ][ header: base, bytes ][ the caller's bytes ][ slack ]
 *
 * The header tells spsi_free the size that was asked for, which a caller's
 * allocator wants to hear again; the slack makes the alignment, whatever the
 * allocator aligns to.  Zeroed memory comes from calloc, so that pages nobody
 * writes are never touched and the first thread to write one places it.
 *
 * Large requests are held against what the machine can give.  The kernel
 * promises more than it has, and kills the process that comes to use it: an
 * honest ENOMEM must be said before.
 *
 * A context belongs to one thread: allocate outside parallel regions. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "context.h"

#define ALIGN ((size_t)64)
#define LARGE ((size_t)64 << 20)
#define OVERHEAD (ALIGN + sizeof(header))

typedef struct header {
    void *base;
    size_t total; /* asked of the allocator */
} header;

static header *header_of(void *p)
{
    return (header *)p - 1;
}

static void *take(sps_context *ctx, size_t total, bool zero)
{
    const sps_allocator *hook = &ctx->opt.host;
    void *base;

    if (!hook->alloc) return zero ? calloc(1, total) : malloc(total);
    base = hook->alloc(total, hook->data);
    return base && zero ? memset(base, 0, total) : base;
}

/* The first number in a file of the kernel after key, SIZE_MAX without. */
static size_t told(const char *path, const char *key, size_t unit)
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

/* Bytes that this process may come to hold, by the machine (memory to be had
 * and swap) and by its container; one part in sixteen is left to others. */
static size_t room(void)
{
    size_t free = told("/proc/meminfo", "MemAvailable:", 1024);
    size_t swap = told("/proc/meminfo", "SwapFree:", 1024);

    if (free != SIZE_MAX && swap != SIZE_MAX) free += swap;
    free = least(free, told("/sys/fs/cgroup/memory.max", "", 1));
    free = least(free, told("/sys/fs/cgroup/memory/memory.limit_in_bytes", "",
                            1));
    return free == SIZE_MAX ? free : free - free / 16;
}

/* Asked once, at the first large request; a caller's allocator knows best. */
static bool too_much(sps_context *ctx, size_t total)
{
    if (total < LARGE || ctx->opt.host.alloc) return false;
    if (ctx->host_room == 0) {
        size_t more = room();

        ctx->host_room = more < SIZE_MAX - ctx->host_bytes
                             ? more + ctx->host_bytes : SIZE_MAX;
    }
    return ctx->host_bytes > ctx->host_room ||
           total > ctx->host_room - ctx->host_bytes;
}

static sps_status allocate(sps_context *ctx, size_t bytes, bool zero,
                           void **p_p)
{
    size_t total = bytes + OVERHEAD;
    void *base;
    uintptr_t p;

    if (too_much(ctx, total))
        return spsi_fail(ctx, SPS_ENOMEM,
                         "no host memory for %zu bytes: %zu are held already, "
                         "%zu could be had in all", bytes, ctx->host_bytes,
                         ctx->host_room);
    base = total > bytes ? take(ctx, total, zero) : NULL;
    if (!base)
        return spsi_fail(ctx, SPS_ENOMEM,
                         "no host memory for %zu bytes; %zu are held already",
                         bytes, ctx->host_bytes);
    p = ((uintptr_t)base + sizeof(header) + ALIGN - 1) & ~(ALIGN - 1);
    *header_of((void *)p) = (header){base, total};
    ctx->host_bytes += total;
    if (ctx->host_peak < ctx->host_bytes) ctx->host_peak = ctx->host_bytes;
    *p_p = (void *)p;
    return SPS_OK;
}

sps_status spsi_new(sps_context *ctx, size_t bytes, void **p_p)
{
    return allocate(ctx, bytes, true, p_p);
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
                         "%lld items of %zu bytes are more than an address "
                         "can hold", (long long)count, size);
    return spsi_new(ctx, (size_t)count * size, p_p);
}

void spsi_free(sps_context *ctx, void *p)
{
    header h;

    if (!p) return;
    h = *header_of(p);
    ctx->host_bytes -= h.total;
    if (ctx->opt.host.free)
        ctx->opt.host.free(h.base, h.total, ctx->opt.host.data);
    else
        free(h.base);
}

/* Bytes from p to the end of its allocation; at least what was asked for. */
static size_t usable(void *p)
{
    const header *h = header_of(p);

    return h->total - (size_t)((char *)p - (char *)h->base);
}

static sps_status too_large(sps_context *ctx, size_t bytes)
{
    return spsi_fail(ctx, SPS_ENOMEM, "no host memory for %zu bytes; %zu are "
                     "held already", bytes, ctx->host_bytes);
}

/* By realloc, which moves the pages of large blocks and copies nothing: at no
 * time there are two.  The bytes move within the block only where the new base
 * stands otherwise to multiples of 64. */
static sps_status move(sps_context *ctx, size_t bytes, void **p_p)
{
    header h = *header_of(*p_p);
    /* volatile: not to be computed when the old base is gone. */
    volatile const size_t offset = (uintptr_t)*p_p - (uintptr_t)h.base;
    const size_t total = bytes + OVERHEAD, held = h.total - offset;
    size_t now;
    char *base;
    uintptr_t p;

    if (total < bytes || (total > h.total && too_much(ctx, total - h.total)))
        return too_large(ctx, bytes);
    base = realloc(h.base, total);
    if (!base) return too_large(ctx, bytes);
    h.base = base;
    p = ((uintptr_t)base + sizeof(header) + ALIGN - 1) & ~(ALIGN - 1);
    now = (size_t)(p - (uintptr_t)base);
    if (now != offset)
        memmove((void *)p, base + offset, held < bytes ? held : bytes);
    *header_of((void *)p) = (header){ base, total };
    ctx->host_bytes += total - h.total;
    if (ctx->host_peak < ctx->host_bytes) ctx->host_peak = ctx->host_bytes;
    *p_p = (void *)p;
    return SPS_OK;
}

sps_status spsi_resize(sps_context *ctx, size_t bytes, void **p_p)
{
    void *old = *p_p, *p = NULL;
    sps_status st;

    if (old && !ctx->opt.host.alloc) return move(ctx, bytes, p_p);
    st = spsi_new_raw(ctx, bytes, &p);
    if (st != SPS_OK) return st; /* *p_p stays as it was */
    if (old) {
        size_t held = usable(old);

        memcpy(p, old, held < bytes ? held : bytes);
        spsi_free(ctx, old);
    }
    *p_p = p;
    return SPS_OK;
}

char *spsi_strdup(sps_context *ctx, const char *text)
{
    size_t bytes = strlen(text) + 1;
    void *p = NULL;

    if (spsi_new_raw(ctx, bytes, &p) != SPS_OK) return NULL;
    return memcpy(p, text, bytes);
}

void spsi_count_device(sps_context *ctx, int64_t bytes)
{
    ctx->device_bytes += (size_t)bytes; /* modulo 2^64: subtracts as well */
    ctx->device_frees += bytes < 0;
    if (ctx->device_peak < ctx->device_bytes)
        ctx->device_peak = ctx->device_bytes;
}
