/* SPDX-License-Identifier: BSD-3-Clause */
/* context.h - what everything hangs on: backend, memory, error, notes. */
#ifndef SPS_CONTEXT_H
#define SPS_CONTEXT_H

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sps_backend;
struct sps_module;

#define SPS_ERROR_SIZE 1024

/* Phases that timers tell apart inside a solve. */
typedef enum sps_phase {
    SPS_PHASE_SPMM,
    SPS_PHASE_PRECOND,
    SPS_PHASE_GRAM,
    SPS_PHASE_SMALL,
    SPS_PHASES
} sps_phase;

struct sps_context {
    sps_context_options opt;
    const struct sps_backend *backend; /* of opt.place, never NULL */
    void *backend_data;                /* the backend's own */
    const struct sps_module *module;   /* CUDA catalogue or NULL */
    char module_state[160];            /* why there is none, or its path */
    char device[96];
    void *stream;                      /* cudaStream_t or NULL */
    int threads;
    volatile int cancelled;            /* sps_cancel, sig_atomic_t-like */
    bool dead;                         /* a sticky device error was met */
    char error[SPS_ERROR_SIZE];
    char **notes;
    int note_count;
    size_t host_bytes, host_peak, device_bytes, device_peak;
    int64_t device_frees;              /* whoever kept device addresses and sees
                                          the same count still has them */
    int64_t live;                      /* handles */
    double phase_seconds[SPS_PHASES];  /* since spsi_phase_reset */
    double phase_start;                /* host clock of the open phase */
    struct sps_wisdom *wisdom;         /* lib/wisdom.c */
    char *strings;                     /* texts kept for options (options.c) */
    size_t host_room;                  /* host bytes to be had in all, 0: not
                                          asked yet (alloc.c) */
};

/* The one door to host memory (alloc.c): zeroed, counted, 64-byte aligned.
 * Fault injection and the caller's allocator hook in here. */
sps_status spsi_new(sps_context *ctx, size_t bytes, void **p_p);
void spsi_free(sps_context *ctx, void *p);   /* NULL is fine */
/* Same without zeroing: for arrays that are written at once, in parallel. */
sps_status spsi_new_raw(sps_context *ctx, size_t bytes, void **p_p);
/* Grows or shrinks, contents kept; *p_p may be NULL. */
sps_status spsi_resize(sps_context *ctx, size_t bytes, void **p_p);
char *spsi_strdup(sps_context *ctx, const char *text); /* NULL: no memory */

/* Whether sps_cancel asked to stop; another thread may be writing it. */
static inline bool spsi_cancelled(const sps_context *ctx)
{
    return __atomic_load_n(&ctx->cancelled, __ATOMIC_RELAXED) != 0;
}

/* Device memory counted the same way; used by backends. */
void spsi_count_device(sps_context *ctx, int64_t bytes);

/* Typed shorthand: SPS_NEW(ctx, count, &pointer), overflow-checked. */
sps_status spsi_new_array(sps_context *ctx, int64_t count, size_t size,
                          void **p_p);
#define SPS_NEW(ctx, count, p)                                                 \
    spsi_new_array((ctx), (int64_t)(count), sizeof **(p), (void **)(p))

#ifdef __cplusplus
}
#endif
#endif
