/* SPDX-License-Identifier: BSD-3-Clause */
/* context.h - the context: backend, memory, last failure, notes. */
#ifndef SPS_CONTEXT_H
#define SPS_CONTEXT_H

#include "core/rates.h"
#include "core/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sps_backend;
struct sps_module;
struct sps_team;

#define SPS_ERROR_SIZE 1024

/* Phases timed separately inside a solve. */
typedef enum sps_phase {
    SPS_PHASE_SPMM,
    SPS_PHASE_PRECOND,
    SPS_PHASE_GRAM,
    SPS_PHASE_SMALL,
    SPS_PHASES
} sps_phase;

/* Memory used by a context, in bytes (alloc.c). */
typedef struct sps_memory_use {
    size_t host, host_peak, device, device_peak;
    size_t host_limit;                 /* bytes that may be allocated in
                                          total; 0 until the first request
                                          determines it */
    int64_t device_frees;              /* addresses of device memory stay
                                          valid while this count is unchanged */
    int64_t to_device, to_host;        /* bytes copied, counted by the
                                          backend */
} sps_memory_use;

typedef struct sps_notes {
    char **text;
    int count;
} sps_notes;

struct sps_context {
    sps_context_options opt;
    sps_allocator host, gpu;           /* copies of the caller's; their
                                          functions are NULL without any */
    sps_comm *alone;                   /* what opt.comm is for a single process
                                          with across_ranks */
    const struct sps_backend *backend; /* of opt.place, never NULL */
    void *backend_data;                /* owned by the backend */
    const struct sps_module *module;   /* table of the CUDA module or NULL */
    char module_state[SPS_ERROR_SIZE]; /* path of the module, or why none is
                                          loaded */
    char device[96];
    sps_machine machine;               /* rates for predictions */
    void *stream;                      /* cudaStream_t or NULL */
    int threads;
    struct sps_team *team;             /* of `threads` threads (team.h) */
    int cancelled;                     /* sps_cancel; atomic accesses only */
    double deadline;                   /* when the current set-up must end
                                          (deadline.h); 0 without a limit */
    bool dead;                         /* a sticky device error has occurred */
    char error[SPS_ERROR_SIZE];
    sps_notes notes;
    sps_memory_use memory;
    int64_t live;                      /* number of handles not destroyed */
    double phase_seconds[SPS_PHASES];  /* since spsi_phase_reset */
    double phase_start;                /* host clock of the open phase */
    struct sps_wisdom *wisdom;         /* kernels chosen by time (wisdom.c) */
    void (*wisdom_clear)(sps_context *ctx); /* frees `wisdom` */
    char *strings;                     /* copies of option texts (options.c) */
};

/* Allocates host memory: zeroed, counted, aligned to 64 bytes, in huge pages if
 * it is large.  All host memory of the library comes from alloc.c, so that
 * fault injection and the caller's allocator apply to all of it. */
sps_status spsi_new(sps_context *ctx, size_t bytes, void **p_p);
void spsi_free(sps_context *ctx, void *p);   /* p may be NULL */
/* Requests huge pages for an array that holds one at least and has not been
 * written yet: a page fault maps 2 MB instead of 4 KB, and reading is
 * faster. */
void spsi_huge_pages(void *p, size_t bytes);
/* Allocates as spsi_new does, but does not zero the memory: for arrays that are
 * written at once, in parallel. */
sps_status spsi_new_raw(sps_context *ctx, size_t bytes, void **p_p);
/* Grows or shrinks an allocation and preserves its contents; *p_p may be
 * NULL. */
sps_status spsi_resize(sps_context *ctx, size_t bytes, void **p_p);
/* Counts memory that another library is about to allocate by itself; ENOMEM in
 * the cases in which spsi_new returns it. */
sps_status spsi_claim(sps_context *ctx, size_t bytes, const char *what);
void spsi_unclaim(sps_context *ctx, size_t bytes);
char *spsi_strdup(sps_context *ctx, const char *text); /* NULL: no memory */

/* Returns whether sps_cancel was called, possibly by another thread. */
static inline bool spsi_cancelled(const sps_context *ctx)
{
    return __atomic_load_n(&ctx->cancelled, __ATOMIC_RELAXED) != 0;
}

/* Counts device memory that a backend has allocated, or freed if bytes < 0. */
void spsi_count_device(sps_context *ctx, int64_t bytes);
/* Returns how many more bytes of device memory the context may allocate under
 * the option max_device_bytes, or SIZE_MAX without a limit. */
size_t spsi_device_left(const sps_context *ctx);

/* spsi_new for `count` items of `size` bytes, with a check for overflow;
 * usually called as SPS_NEW(ctx, count, &pointer). */
sps_status spsi_new_array(sps_context *ctx, int64_t count, size_t size,
                          void **p_p);
#define SPS_NEW(ctx, count, p)                                                 \
    spsi_new_array((ctx), (int64_t)(count), sizeof **(p), (void **)(p))

#ifdef __cplusplus
}
#endif
#endif
