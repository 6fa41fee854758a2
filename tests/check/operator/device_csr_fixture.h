/* SPDX-License-Identifier: BSD-3-Clause */
/* device_csr_fixture.h - for suites of operators of a csr on a GPU: a context
 * `ctx` in the place under test, and copies of a csr there. */
#ifndef SPS_TEST_DEVICE_CSR_FIXTURE_H
#define SPS_TEST_DEVICE_CSR_FIXTURE_H

#include "core/backend.h"
#include "block/block.h"
#include "tests/support/fixture.h"
#include "tests/support/runner.h"

static sps_context *ctx;

static inline void open_context(void) { ctx = runner_context(); }
static inline void close_context(void) { fixture_close(&ctx); }

static inline bool on_gpu(void) { return ctx->backend->place == SPS_CUDA; }

/* Bytes copied between host memory and the GPU so far. */
static inline int64_t bytes_moved(void)
{
    sps_context_info info = { .struct_size = sizeof info };

    OK(ctx, sps_context_information(ctx, &info));
    return info.bytes_to_device + info.bytes_to_host;
}

static inline sps_csr *lay_down(const sps_csr *A)
{
    sps_csr *D = NULL;

    OK(ctx, spsi_csr_upload(ctx, A, &D));
    return D;
}

#endif
