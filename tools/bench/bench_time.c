/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_time.c - time measurement of spbench; bench.h describes the
 * protocol. */
#include "tools/bench/bench.h"

#include "block/block.h"
#include "core/backend.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WARM = 3, LEAST = 5, MOST = 400 };

static const double BATCH = 2e-3;      /* smallest time of a sample, seconds */
static const int64_t FLUSH = 32 << 20; /* doubles copied to flush the caches:
                                          256 MB */

double bench_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Measures the seconds of one run, averaged over a batch. */
static sps_status sample(bench *b, bench_fn run, void *data, int batch,
                         double *seconds)
{
    sps_status st = sps_context_sync(b->ctx);
    double start = bench_now();

    for (int i = 0; i < batch && st == SPS_OK; i++)
        st = run(data);
    if (st == SPS_OK)
        st = sps_context_sync(b->ctx);
    *seconds = (bench_now() - start) / batch;
    return st;
}

static sps_status flush(bench *b)
{
    int64_t ld;
    double *from = sps_block_data(b->flush[0], &ld);

    return sps_block_set(b->flush[1], 0, 1, from, ld, SPS_ROW_MAJOR,
                         b->place);
}

static sps_status time_cold(bench *b, bench_fn run, void *data, double *cold)
{
    enum { SAMPLES = 9 };
    double t[SAMPLES];
    sps_status st = SPS_OK;

    for (int i = 0; i < SAMPLES && st == SPS_OK; i++) {
        st = flush(b);
        if (st == SPS_OK)
            st = sample(b, run, data, 1, &t[i]);
    }
    if (st == SPS_OK) {
        qsort(t, SAMPLES, sizeof *t, ascending);
        *cold = t[SAMPLES / 2];
    }
    return st;
}

sps_status bench_time(bench *b, bench_fn run, void *data, bench_times *t)
{
    double value[MOST], once, begin;
    int batch, count = 0;
    sps_status st = b->once ? SPS_OK : sample(b, run, data, WARM, &once);

    if (st == SPS_OK)
        st = sample(b, run, data, 1, &once);
    if (st == SPS_OK && b->once)
        *t = (bench_times){once, once, once, 0};
    if (b->once) return st;
    batch = once > BATCH ? 1 : 1 + (int)(BATCH / (once > 1e-9 ? once : 1e-9));
    begin = bench_now();
    while (st == SPS_OK && count < MOST &&
           (count < LEAST || bench_now() - begin < b->seconds))
        st = sample(b, run, data, batch, &value[count++]);
    if (st != SPS_OK)
        return st;
    qsort(value, (size_t)count, sizeof *value, ascending);
    t->median = value[count / 2];
    t->low = value[count / 10];
    t->high = value[count - 1 - count / 10];
    t->cold = 0;
    return b->cold ? time_cold(b, run, data, &t->cold) : SPS_OK;
}

/* ------------------------------------------------------------ the bandwidth */

typedef struct copying { sps_context *ctx; char *to, *from; size_t bytes; }
copying;

/* On the host all threads copy: one core does not saturate the memory. */
static sps_status copy(void *data)
{
    copying *c = data;
    size_t piece = (c->bytes + 1023) / 1024;

    if (c->ctx->backend->place == SPS_CUDA)
        return c->ctx->backend->copy(c->ctx, c->to, c->from, c->bytes);
#pragma omp parallel for num_threads(c->ctx->threads)
    for (size_t i = 0; i < 1024; i++) {
        size_t at = i * piece;

        if (at < c->bytes)
            memcpy(c->to + at, c->from + at,
                   piece < c->bytes - at ? piece : c->bytes - at);
    }
    return SPS_OK;
}

static sps_status bandwidth_of(bench *b, size_t bytes, double *bandwidth)
{
    copying c = {.ctx = b->ctx, .bytes = bytes};
    sps_block *X = NULL, *Y = NULL;
    bench_times t = {0};
    bool cold = b->cold;
    int64_t n = (int64_t)(bytes / sizeof(double));
    sps_status st = sps_block_create(b->ctx, n, 1, &X);

    if (st == SPS_OK)
        st = sps_block_create(b->ctx, n, 1, &Y);
    if (st == SPS_OK) {
        c.from = X->data;
        c.to = Y->data;
        b->cold = false;
        st = bench_time(b, copy, &c, &t);
        b->cold = cold;
    }
    if (st == SPS_OK)
        *bandwidth = 2 * (double)bytes / t.median;
    sps_block_destroy(&X);
    sps_block_destroy(&Y);
    return st;
}

sps_status bench_agree(const bench *b, sps_status st)
{
    double failed = st != SPS_OK;

    launch_sum(&b->of, &failed, 1, EXIT_FAILURE);
    return st == SPS_OK && failed > 0 ? SPS_EPEER : st;
}

sps_status bench_open(bench *b)
{
    sps_status st = bandwidth_of(b, (size_t)512 << 20, &b->bandwidth);

    launch_sum(&b->of, &b->bandwidth, 1, EXIT_FAILURE);
    for (int i = 0; i < 2 && b->cold && st == SPS_OK; i++)
        st = sps_block_create(b->ctx, FLUSH, 1, &b->flush[i]);
    return bench_agree(b, st);
}

void bench_close(bench *b)
{
    sps_block_destroy(&b->flush[0]);
    sps_block_destroy(&b->flush[1]);
    sps_operator_destroy(&b->op[0]);
    sps_operator_destroy(&b->op[1]);
    sps_csr_destroy(b->ctx, &b->single);
    free(b->single_values);
}
