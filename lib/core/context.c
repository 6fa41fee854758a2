/* SPDX-License-Identifier: BSD-3-Clause */
/* context.c - the context: memory space, backend, memory accounting, the last
 * failure, notes and the cancel flag. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/abi.h"
#include "core/backend.h"
#include "core/comm.h"
#include "core/options.h"
#include "core/module.h"
#include "core/team.h"

static sps_status check_options(sps_context *ctx)
{
    const sps_context_options *o = &ctx->opt;
    sps_status st;

    SPS_TRY(spsi_context_options_check(ctx, o));
    SPS_REQUIRE(ctx, !ctx->host.alloc == !ctx->host.free, SPS_EINVAL,
                "a host allocator needs both alloc and free");
    SPS_REQUIRE(ctx, !ctx->gpu.alloc == !ctx->gpu.free, SPS_EINVAL,
                "a device allocator needs both alloc and free");
    SPS_REQUIRE(ctx, !o->across_ranks || o->place == SPS_HOST, SPS_EUNFIT,
                "across_ranks: sums that do not depend on the number of "
                "processes are supported on the host only (SPS_HOST)");
    SPS_REQUIRE(ctx, o->comm_seconds == 0, SPS_EUNFIT, "comm_seconds %g: "
                "waiting is done by the caller's functions (sps_comm_user), "
                "which the library cannot end", o->comm_seconds);
fail:
    return st;
}

static sps_status open_place(sps_context *ctx, const sps_backend *backend)
{
    sps_status st;

    ctx->backend = backend;
    ctx->opt.place = backend->place;
    st = backend->open(ctx);
    if (st != SPS_OK) ctx->backend = NULL;
    ctx->machine.core = spsi_core_fitted();
    return st;
}

static sps_status open_cuda(sps_context *ctx)
{
    sps_status st;
    char why[SPS_ERROR_SIZE / 2];

    if (spsi_module_installed() && !spsi_module_device(why, sizeof why)) {
        (void)snprintf(ctx->module_state, sizeof ctx->module_state,
                       "not loaded: %s", why);
        return spsi_fail(ctx, SPS_EDEVICE, "no GPU: %s", why);
    }
    ctx->module = spsi_module_load(why, sizeof why);
    (void)snprintf(ctx->module_state, sizeof ctx->module_state, "%s%s",
                   ctx->module ? "loaded " : "absent: ", why);
    SPS_REQUIRE(ctx, ctx->module, SPS_EABSENT,
                "no CUDA module: %s; build it by configure --with-cuda, or "
                "set SPSOLVE_MODULE_PATH to its file or folder", why);
    SPS_TRY(open_place(ctx, ctx->module->backend));
fail:
    return st;
}

static sps_status open_any(sps_context *ctx)
{
    char why[SPS_ERROR_SIZE];
    sps_status st = open_cuda(ctx);

    if (st == SPS_OK || st == SPS_ENOMEM) return st;
    memcpy(why, ctx->error, sizeof why);
    ctx->error[0] = '\0';
    ctx->dead = false; /* it was set by an error of the GPU, which is no longer
                          used */
    ctx->stream = NULL;
    st = open_place(ctx, spsi_backends[0]);
    if (st == SPS_OK)
        spsi_note(ctx, "running on the host: %s",
                  spsi_module_expected() ? why : "no CUDA module is installed");
    return st;
}

static sps_status open_context(sps_context *ctx)
{
    switch (ctx->opt.place) {
    case SPS_CUDA: return open_cuda(ctx);
    case SPS_AUTO: return open_any(ctx);
    default:
        (void)snprintf(ctx->module_state, sizeof ctx->module_state,
                       "not asked for");
        return open_place(ctx, spsi_backends[0]);
    }
}

/* The context is itself allocated by its allocator, so it is set up on the
 * stack and copied. */
sps_status sps_context_create(const sps_context_options *options,
                              sps_context **ctx_p, const char **error)
{
    sps_context seed = {0}, *ctx = NULL;
    sps_status st;

    SPS_REQUIRE(&seed, ctx_p, SPS_EINVAL, "ctx_p is NULL");
    SPS_TRY(spsi_abi_context(&seed, options));
    SPS_TRY(check_options(&seed));
    if (seed.opt.across_ranks && !seed.opt.comm) {
        SPS_TRY(spsi_comm_alone(&seed.alone));
        seed.opt.comm = seed.alone;
    }
    if (!spsi_comm_many(&seed)) seed.opt.comm = NULL;
    seed.threads = seed.opt.threads ? seed.opt.threads
                 : spsi_cores("", getenv("OMP_NUM_THREADS"));
    SPS_TRY(spsi_new_raw(&seed, sizeof seed, (void **)&ctx));
    *ctx = seed;
    SPS_TRY(spsi_team_open(ctx));
    SPS_TRY(open_context(ctx));
    *ctx_p = ctx;
    /* Clears the text of an earlier failure of this thread. */
    (void)spsi_fail(ctx, SPS_OK, "%s", "");
    if (error) *error = "";
    return SPS_OK;

fail:
    (void)spsi_fail(NULL, st, "%s", ctx ? ctx->error : seed.error);
    if (!ctx) sps_comm_destroy(&seed.alone);
    if (error) *error = sps_context_error(NULL);
    sps_context_destroy(&ctx);
    return st;
}

void sps_context_destroy(sps_context **ctx_p)
{
    sps_context *ctx = ctx_p ? *ctx_p : NULL, last;

    if (!ctx) return;
    *ctx_p = NULL;
    if (ctx->backend) ctx->backend->close(ctx);
    spsi_team_close(ctx);
    if (ctx->wisdom_clear) ctx->wisdom_clear(ctx);
    spsi_options_forget(ctx);
    for (int i = 0; i < ctx->notes.count; i++)
        spsi_free(ctx, ctx->notes.text[i]);
    spsi_free(ctx, ctx->notes.text);
    sps_comm_destroy(&ctx->alone);
    last = *ctx; /* its allocator frees the context itself */
    spsi_free(&last, ctx);
}

const char *sps_context_note(const sps_context *ctx, int i)
{
    return ctx && i >= 0 && i < ctx->notes.count ? ctx->notes.text[i] : NULL;
}

sps_status sps_context_information(const sps_context *ctx,
                                   sps_context_info *info)
{
    sps_context *own = (sps_context *)ctx; /* to record a failure */
    sps_context_info found;
    size_t unused = 0, total = 0;
    sps_status st;

    SPS_HANDLE(ctx);
    SPS_REQUIRE(own, info, SPS_EINVAL, "info is NULL");
    SPS_TRY(SPS_ABI_CHECK(own, sps_context_info, info));
    if (ctx->opt.place == SPS_CUDA)
        SPS_TRY(ctx->backend->memory(own, &unused, &total));
    found = (sps_context_info){
        .struct_size = sizeof found,
        .place = ctx->opt.place,
        .threads = ctx->threads,
        .host_bytes = ctx->memory.host,
        .host_peak = ctx->memory.host_peak,
        .device_bytes = ctx->memory.device,
        .device_peak = ctx->memory.device_peak,
        .device_free = unused,
        .device_total = total,
        .live_objects = ctx->live,
        .module_state = ctx->module_state,
        .bytes_to_device = ctx->memory.to_device,
        .bytes_to_host = ctx->memory.to_host,
    };
    memcpy(found.device, ctx->device, sizeof found.device);
    (void)snprintf(found.module, sizeof found.module, "%.159s",
                   ctx->module_state);
    spsi_abi_copy(&found, info);
    return SPS_OK;
fail:
    return st;
}

void sps_cancel(sps_context *ctx, bool stop)
{
    if (ctx) __atomic_store_n(&ctx->cancelled, stop ? 1 : 0, __ATOMIC_RELAXED);
}

sps_status sps_context_sync(sps_context *ctx)
{
    SPS_HANDLE(ctx);
    return ctx->backend->sync(ctx);
}
