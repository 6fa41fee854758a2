/* SPDX-License-Identifier: BSD-3-Clause */
/* stream_plan.h - the plan of spmm.stream: panels of a matrix, the first of
 * them in device memory, the others in page-locked host memory with a ring of
 * slots on the device through which they pass.
 *
 * Order of work, where c is the copy stream, m the stream of the context, t a
 * step of the ring (formats/ring.h) and s the slot of step t:
 *
 *     c: wait released[s] of step t - slots; copy panel; record copied[s]
 *     m: wait copied[s]; product of the panel; record released[s]
 *
 * Copies of the first steps are queued before the products of resident panels,
 * so that both overlap.
 *
 * The host multiplies the last panels itself (stream_share.cu).  Here d is a
 * stream for copies to the host, and h is the host:
 *
 *     m: record asked     d: wait asked; copy rows of X; record there
 *     h: queue steps of the ring until `there`; then its threads sum its
 *        panels, the calling thread after it has queued all steps
 *     m: rows of Y from these sums, read over the link.
 *
 * A pass of several products (formats/wave.h) queues, when the copy of a panel
 * has been waited for, all products that are possible with it; a slot is
 * released after the last product of its panel.
 *
 * A pass that begins with slots of unknown contents copies into them when m has
 * reached it, since products of the pass before may still read them:
 *
 *     m: record begun     c: wait begun
 *
 * The events `released` do not suffice there: those of a recording say nothing
 * of its replays, and within a recording c takes part only behind an event of
 * m. */
#ifndef SPS_CUDA_STREAM_PLAN_H
#define SPS_CUDA_STREAM_PLAN_H

#include "formats/panels.h"
#include "formats/ring.h"
#include "formats/wave.h"
#include "plan/sequence.h"

#ifdef __cplusplus
extern "C" {
#endif

/* For tests of the order of work: the bits name waits that are omitted
 * (`omit`), and stages that are delayed by 2 ms (`late`); `poison` fills slots
 * with NaN before they are released. */
enum {
    SPS_STREAM_COPIED = 1, SPS_STREAM_RELEASED = 2, SPS_STREAM_ASKED = 4,
    SPS_STREAM_THERE = 8, SPS_STREAM_BEGUN = 16
};
enum {
    SPS_STREAM_COPY = 1, SPS_STREAM_PRODUCT = 2, SPS_STREAM_RELEASE = 4,
    SPS_STREAM_DOWN = 8, SPS_STREAM_HOST = 16
};
typedef struct sps_stream_test {
    unsigned omit, late;
    bool poison;
    int64_t fail;                /* number of the copy of a panel or of rows of
                                    X that fails, the next one being 1; 0:
                                    none */
    int64_t share;               /* panels for the host; -1 for none, 0 to
                                    choose them by the rates */
} sps_stream_test;

/* The panels that the host multiplies, for blocks of more than 2^(c-1) and up
 * to 2^c columns, where c is the index in `by`. */
typedef struct sps_stream_split {
    int64_t panels;
    int products;                /* number of products by which `panels` was
                                    first corrected, then judged */
    double rate, link;           /* bytes of panels per second that host and
                                    device multiply while both do */
    float with, alone;           /* shortest pass with this share and without
                                    one, in milliseconds */
} sps_stream_split;

enum { SPS_STREAM_CLASSES = 11 };

/* The host in the last pass with a share: bytes of its panels; seconds from the
 * arrival of its rows of X to its last sum, the mean over its threads of those
 * in which they summed, and until all steps of the ring were queued. */
typedef struct sps_stream_host {
    double bytes, summed, busy, queued;
} sps_stream_host;

typedef struct sps_stream_share {
    int64_t most;                /* largest number of panels for the host; 0
                                    for none */
    int64_t columns;             /* largest number of columns of a block for
                                    which the host multiplies panels */
    double *x, *sum;             /* page-locked host memory: rows of X that the
                                    host needs, and its sums of rows of Y */
    size_t x_bytes, sum_bytes;
    void *down;                  /* cudaStream_t; the next five members are
                                    cudaEvent_t */
    void *asked, *there;
    void *started, *streamed, *ended; /* recorded at the start of a pass, after
                                    the panels of the device, and at the end */
    sps_stream_host host;
    sps_stream_split *timed;     /* element of `by` for which a pass is being
                                    timed, or NULL */
    sps_stream_split by[SPS_STREAM_CLASSES];
} sps_stream_share;

typedef struct sps_stream_panel {
    sps_panel is;
    char *at;                    /* packed bytes of the panel, in device memory,
                                    or, if it is streamed, in host memory */
} sps_stream_panel;

/* A piece of memory for the packed bytes (images) of panels, used from its
 * beginning. */
typedef struct sps_stream_chunk {
    char *at;
    size_t bytes, used;
    bool device;
} sps_stream_chunk;

typedef struct sps_stream_plan {
    sps_plan super;
    sps_status (*sequence)(const sps_plan *plan, const sps_spmm_args *args,
                           int count);
    /* These two as in sps_sequence_plan. */
    double (*passes)(const sps_plan *plan, int k, int count);
    sps_stream_panel *panel;
    int64_t panels, resident, panels_room;
    sps_stream_chunk *chunk;
    int64_t chunks, chunks_room;
    size_t room;                 /* largest size of a panel when it is cut */
    size_t left;                 /* device memory for further resident panels */
    int64_t *after;              /* wave.h: for forward passes, and from
                                    after[panels] on for backward ones; NULL if
                                    a pass computes one product only */
    struct {
        int64_t rows, parts;
        int64_t *row, *first;    /* row l: parts first[l] .. first[l + 1] - 1;
                                    their sums are in `part`, k elements each */
        void *part;
    } longs;                     /* long rows, in device memory (panels.h) */
    void *views;                 /* descriptors of the resident panels, in
                                    device memory */
    sps_ring ring;
    struct {
        char *at;
        size_t each, all;        /* bytes of one, which the largest streamed
                                    panel has; bytes that they may take */
    } slots;                     /* of the ring, in device memory */
    void *copies;                /* cudaStream_t; the next three members are
                                    cudaEvent_t */
    void *copied[SPS_RING_MOST], *released[SPS_RING_MOST], *begun;
    sps_stream_share share;
    int64_t shared;              /* number of panels that the host multiplies in
                                    the present pass */
    bool recorded;               /* a pass belongs to a recording, which may
                                    be replayed at any time: the contents of
                                    slots are unknown at the beginning of
                                    each pass */
    sps_stream_test test;
} sps_stream_plan;

#ifdef __cplusplus
}
#endif
#endif
