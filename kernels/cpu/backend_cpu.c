/* SPDX-License-Identifier: BSD-3-Clause */
/* backend_cpu.c - the place "cpu": life, memory, and the table of slots.
 *
 * Work is done when a call returns, so that there is nothing to wait for.
 * Memory comes through the context's allocator; large pieces ask for huge
 * pages and are touched first by the threads that will work on them. */
#include "rows.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define ALIGN ((uintptr_t)256)
#define PAGE ((size_t)4096)
#define HUGE_PAGE ((uintptr_t)1 << 21)

typedef struct state {
    double *scratch;
    int64_t doubles;
} state;

static sps_status open_cpu(sps_context *ctx)
{
    sps_status st;
    state *s = NULL;

    SPS_TRY(SPS_NEW(ctx, 1, &s));
    snprintf(ctx->device, sizeof ctx->device, "cpu, %d thread%s", ctx->threads,
             ctx->threads == 1 ? "" : "s");
    ctx->backend_data = s;
    ctx->stream = NULL;
    return SPS_OK;

fail:
    return st;
}

static void close_cpu(sps_context *ctx)
{
    state *s = ctx->backend_data;

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

sps_status spsi_cpu_scratch(sps_context *ctx, int64_t doubles, double **p_p)
{
    sps_status st;
    state *s = ctx->backend_data;

    if (doubles > s->doubles) {
        void *p = NULL;

        SPS_TRY(spsi_new_raw(ctx, (size_t)doubles * sizeof(double), &p));
        spsi_free(ctx, s->scratch);
        s->scratch = p;
        s->doubles = doubles;
    }
    *p_p = s->scratch;
    return SPS_OK;

fail:
    return st;
}

/* Partial results of up to `items` numbers: the limits of chunks_of, taken
 * for every narrower block at once. */
static sps_status reserve(sps_context *ctx, int64_t n, int k)
{
    int64_t items = 2 * (int64_t)k * k, limit = (int64_t)1 << 21;
    int64_t most = (n + 1023) / 1024 * items;
    double *p;

    if (limit < items) limit = items;
    if (most > limit) most = limit;
    return spsi_cpu_scratch(ctx, most + 2 * k * packed_cols(k) + 128, &p);
}

/* MemAvailable, which counts what the system would give back, unlike
 * sysconf; *free_p stays as it is when there is no such line. */
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

/* --- memory: the address given by the context's allocator stands right
 *     before the aligned piece. */

static void ask_huge_pages(void *p, size_t bytes)
{
#ifdef MADV_HUGEPAGE
    uintptr_t first = ((uintptr_t)p + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    uintptr_t last = ((uintptr_t)p + bytes) / HUGE_PAGE * HUGE_PAGE;

    if (last > first) madvise((void *)first, last - first, MADV_HUGEPAGE);
#else
    (void)p, (void)bytes;
#endif
}

/* A page belongs to the part of the machine whose thread writes it first. */
static void touch(sps_context *ctx, char *p, size_t bytes)
{
    int64_t pages = (int64_t)((bytes + PAGE - 1) / PAGE);

    if (pages < 64) return;
#pragma omp parallel for num_threads(ctx->threads) schedule(static)
    for (int64_t i = 0; i < pages; i++) p[(size_t)i * PAGE] = 0;
}

static sps_status alloc(sps_context *ctx, size_t bytes, void **p_p)
{
    sps_status st;
    void *base = NULL;
    uintptr_t p;

    SPS_REQUIRE(ctx, bytes <= SIZE_MAX - ALIGN - sizeof base, SPS_ENOMEM,
                "%zu bytes are more than an address can hold", bytes);
    SPS_TRY(spsi_new_raw(ctx, bytes + ALIGN + sizeof base, &base));
    p = ((uintptr_t)base + sizeof base + ALIGN - 1) / ALIGN * ALIGN;
    ((void **)p)[-1] = base;
    ask_huge_pages((void *)p, bytes);
    touch(ctx, (char *)p, bytes);
    *p_p = (void *)p;
    return SPS_OK;

fail:
    return st;
}

static void release(sps_context *ctx, void *p, size_t bytes)
{
    (void)bytes;
    if (p) spsi_free(ctx, ((void **)p)[-1]);
}

static sps_status copy(sps_context *ctx, void *to, const void *from,
                       size_t bytes)
{
    const size_t piece = (size_t)1 << 20;
    int64_t count = (int64_t)((bytes + piece - 1) / piece);

#pragma omp parallel for num_threads(ctx->threads) schedule(static)            \
    if (count > 1)
    for (int64_t i = 0; i < count; i++) {
        size_t at = (size_t)i * piece;

        memcpy((char *)to + at, (const char *)from + at,
               bytes - at < piece ? bytes - at : piece);
    }
    return SPS_OK;
}

SPS_DEFINE(sps_backend, spsi_backend_cpu) = {
    .name = "cpu",
    .place = SPS_HOST,
    .open = open_cpu,
    .close = close_cpu,
    .sync = sync_cpu,
    .reserve = reserve,
    .memory = memory,
    .phase_begin = NULL,   /* the host's clock is right */
    .phase_end = NULL,
    .alloc = alloc,
    .release = release,
    .upload = copy,
    .download = copy,
    .copy = copy,
    .fill = spsi_cpu_fill,
    .random = spsi_cpu_random,
    .set = spsi_cpu_set,
    .get = spsi_cpu_get,
    .gather = spsi_cpu_gather,
    .scatter = spsi_cpu_scatter,
    .axpby = spsi_cpu_axpby,
    .axpby_cols = spsi_cpu_axpby_cols,
    .scale_rows = spsi_cpu_scale_rows,
    .dots = spsi_cpu_dots,
    .maxabs = spsi_cpu_maxabs,
    .gram = spsi_cpu_gram,
    .mul_small = spsi_cpu_mul_small,
    .solve_small = spsi_cpu_solve_small,
    .remove_means = spsi_cpu_remove_means,
    .gram_pair = spsi_cpu_gram_pair,
    .update_pair = spsi_cpu_update_pair,
    .update_pair_cols = spsi_cpu_update_pair_cols,
    .combine = spsi_cpu_combine,
    .basis_dots = spsi_cpu_basis_dots,
    .basis_update = spsi_cpu_basis_update,
    .steps_lengths = spsi_cpu_steps_lengths,
    .steps_residual = spsi_cpu_steps_residual,
    .steps_directions = spsi_cpu_steps_directions,
    .csr_diagonal = spsi_cpu_csr_diagonal,
    .csr_block_inverse = spsi_cpu_csr_block_inverse,
    .csr_fsai = spsi_cpu_csr_fsai,
    .csr_ilu0 = spsi_cpu_csr_ilu0,
    .csr_ilut = spsi_cpu_csr_ilut,
    .triangle_open = spsi_cpu_triangle_open,
    .triangle_refresh = spsi_cpu_triangle_open,
    .triangle_solve = spsi_cpu_triangle_solve,
    .triangle_close = spsi_cpu_triangle_close,
};
