/* SPDX-License-Identifier: BSD-3-Clause */
/* backend_cpu.c - the backend "cpu": instruction set, creation, memory, and
 * the table of operations.
 *
 * Operations are complete when a call returns, so there is no synchronisation.
 * Memory comes from the context's allocator; large allocations request huge
 * pages and are first written by the threads that will use them (NUMA
 * placement). */
#include "core/deadline.h"
#include "cpu/rows.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ALIGN ((uintptr_t)256)
#define PAGE ((size_t)4096)

static const char *const names[] = { "plain", "avx2", "avx512" };

static sps_isa present(void)
{
#if SPS_X86_CLONES
    if (__builtin_cpu_supports("x86-64-v4")) return SPS_ISA_AVX512;
    if (__builtin_cpu_supports("x86-64-v3")) return SPS_ISA_AVX2;
#endif
    return SPS_ISA_PLAIN;
}

/* Returns the index of SPSOLVE_ISA in names: the last one if the variable is
 * not set, -1 if its value is not among them. */
static int limit(const char **text)
{
    *text = getenv("SPSOLVE_ISA");
    if (!*text || !**text) return SPS_ISA_AVX512;
    for (int i = 0; i <= SPS_ISA_AVX512; i++)
        if (strcmp(*text, names[i]) == 0) return i;
    return -1;
}

bool spsi_cpu_isa_valid(const char **text)
{
    return limit(text) >= 0;
}

/* The level is determined once and stored as 1 + level. */
sps_isa spsi_cpu_isa(void)
{
    static int known;
    int level = __atomic_load_n(&known, __ATOMIC_RELAXED);

    if (!level) {
        const char *text;
        const int most = limit(&text), own = (int)present();

        level = 1 + (most >= 0 && most < own ? most : own);
        __atomic_store_n(&known, level, __ATOMIC_RELAXED);
    }
    return (sps_isa)(level - 1);
}

/* The bandwidth of the cores, up to 16.  Predicted times of kernels are
 * compared only with each other, so the order of magnitude suffices. */
static sps_machine machine_of(int threads)
{
    return (sps_machine){
        .copy = spsi_core_fitted().copy * (threads < 16 ? threads : 16) };
}

static sps_status open_cpu(sps_context *ctx)
{
    sps_status st;
    cpu_state *s = NULL;
    const char *isa;

    SPS_REQUIRE(ctx, spsi_cpu_isa_valid(&isa), SPS_EINVAL, "SPSOLVE_ISA is "
                "\"%s\": set it to plain, avx2 or avx512, or not at all",
                isa);
    SPS_TRY(SPS_NEW(ctx, 1, &s));
    snprintf(ctx->device, sizeof ctx->device, "cpu, %d thread%s", ctx->threads,
             ctx->threads == 1 ? "" : "s");
    ctx->machine = machine_of(ctx->threads);
    ctx->backend_data = s;
    ctx->stream = NULL;
    return SPS_OK;

fail:
    return st;
}

static void close_cpu(sps_context *ctx)
{
    cpu_state *s = ctx->backend_data;

    if (!s) return;
    spsi_free(ctx, s->scratch);
    spsi_free(ctx, s);
    ctx->backend_data = NULL;
}

static sps_status sync_cpu(sps_context *ctx)
{
    (void)ctx;
    return SPS_OK;
}

/* Reserves memory for partial results of chunks of up to 2 k^2 doubles each,
 * within the limits of chunks_of; it suffices for all narrower blocks as
 * well. */
static sps_status reserve(sps_context *ctx, int64_t n, int k)
{
    int64_t items = 2 * (int64_t)k * k, limit = (int64_t)1 << 21;
    int64_t most = (n + 1023) / 1024 * items;
    double *p;

    if (limit < items) limit = items;
    if (most > limit) most = limit;
    return spsi_cpu_scratch(ctx, most + 2 * k * packed_cols(k) + 128, &p);
}

/* Sets *free_p from MemAvailable of /proc/meminfo, which, unlike sysconf,
 * includes memory that the system can reclaim; *free_p is unchanged if there is
 * no such line. */
static void read_available(size_t *free_p)
{
    FILE *f = fopen("/proc/meminfo", "r");
    char line[128];
    unsigned long long kib;

    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
            *free_p = (size_t)kib * 1024;
    if (f) fclose(f);
}

static sps_status memory(sps_context *ctx, size_t *free_p, size_t *total_p)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    (void)ctx;
    *total_p = (size_t)sysconf(_SC_PHYS_PAGES) * page;
    *free_p = *total_p;
    read_available(free_p);
    return SPS_OK;
}

/* --- memory: the address returned by the context's allocator is stored
 * directly before the aligned address that is handed out. */

static void touch_pages(void *data, int64_t first, int64_t last)
{
    char *p = data;

    for (int64_t i = first; i < last; i++) p[(size_t)i * PAGE] = 0;
}

/* Writes to each page once, by the threads of the team: the system clears a
 * page at its first write, in about 400 ns, and places it in the NUMA node of
 * the thread that writes.  After the time limit the remaining pages are left
 * untouched; the threads that use them first will place them. */
static void touch(sps_context *ctx, char *p, size_t bytes)
{
    const int64_t pages = (int64_t)((bytes + PAGE - 1) / PAGE);
    const int64_t piece = 1 << 15;    /* pages per work item, about 10 to 50
                                         ms */

    if (pages < 64) return;
    for (int64_t i = 0; i < pages && !spsi_expired(ctx); i += piece) {
        const int64_t count = pages - i < piece ? pages - i : piece;

        spsi_team_run(ctx, count, 400 * count, touch_pages,
                      p + (size_t)i * PAGE);
    }
}

static sps_status take(sps_context *ctx, size_t bytes, bool clear, void **p_p)
{
    sps_status st;
    void *base = NULL;
    uintptr_t p;

    SPS_REQUIRE(ctx, bytes <= SIZE_MAX - ALIGN - sizeof base, SPS_ENOMEM,
                "%zu bytes are more than an address can hold", bytes);
    SPS_TRY((clear ? spsi_new : spsi_new_raw)(ctx, bytes + ALIGN + sizeof base,
                                              &base));
    p = ((uintptr_t)base + sizeof base + ALIGN - 1) / ALIGN * ALIGN;
    ((void **)p)[-1] = base;
    spsi_huge_pages((void *)p, bytes);
    touch(ctx, (char *)p, bytes);
    *p_p = (void *)p;
    return SPS_OK;

fail:
    return st;
}

static sps_status alloc(sps_context *ctx, size_t bytes, void **p_p)
{
    return take(ctx, bytes, false, p_p);
}

static sps_status alloc_clear(sps_context *ctx, size_t bytes, void **p_p)
{
    return take(ctx, bytes, true, p_p);
}

static void release(sps_context *ctx, void *p, size_t bytes)
{
    (void)bytes;
    if (p) spsi_free(ctx, ((void **)p)[-1]);
}

typedef struct copy_job {
    char *to;
    const char *from;
    size_t bytes;
} copy_job;

static void copy_pages(void *data, int64_t first, int64_t last)
{
    const copy_job *j = data;
    const size_t at = (size_t)first * PAGE, end = (size_t)last * PAGE;

    memcpy(j->to + at, j->from + at, (end < j->bytes ? end : j->bytes) - at);
}

static sps_status copy(sps_context *ctx, void *to, const void *from,
                       size_t bytes)
{
    spsi_team_run(ctx, (int64_t)((bytes + PAGE - 1) / PAGE),
                  (int64_t)bytes / 16, copy_pages,
                  &(copy_job){ to, from, bytes });
    return SPS_OK;
}

#define SLOT(slot) .slot = spsi_cpu_##slot,
SPS_DEFINE(sps_backend, spsi_backend_cpu) = {
    .name = "cpu",
    .place = SPS_HOST,
    .open = open_cpu,
    .close = close_cpu,
    .sync = sync_cpu,
    .reserve = reserve,
    .memory = memory,
    .phase_begin = NULL,   /* the host's clock is accurate */
    .phase_end = NULL,
    .alloc_clear = alloc_clear,
    .alloc = alloc,
    .release = release,
    .upload = copy,
    .download = copy,
    .copy = copy,
    SPS_CPU_OPERATIONS(SLOT)
    .triangle_refresh = spsi_cpu_triangle_open,
};
