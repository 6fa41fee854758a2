/* SPDX-License-Identifier: BSD-3-Clause */
/* context.c - what everything hangs on: the place, its backend, memory, the
 * last failure, notes and the wish to stop. */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backend.h"
#include "options.h"
#include "planner.h"
#include "registry.h"

#define MAX_THREADS 4096

void sps_context_options_default(sps_context_options *options)
{
    if (!options) return;
    *options = (sps_context_options){
        .struct_size = sizeof *options,
        .place = SPS_AUTO,
        .seed = 1,
        .reproducible = true,
    };
}

/* Cores that this process may use: a container or a batch system narrows the
 * mask, and more threads than cores would only wait for each other. */
static int cores(void)
{
    cpu_set_t set;
    long online;

    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return CPU_COUNT(&set);
    online = sysconf(_SC_NPROCESSORS_ONLN); /* more cores than the mask has */
    return online < 1 ? 1 : online > MAX_THREADS ? MAX_THREADS : (int)online;
}

static sps_status check_options(sps_context *ctx)
{
    const sps_context_options *o = &ctx->opt;
    sps_status st = SPS_OK;

    SPS_REQUIRE(ctx, o->struct_size == sizeof *o, SPS_EINVAL,
                "sps_context_options.struct_size is %zu, this library knows "
                "%zu: call sps_context_options_default first", o->struct_size,
                sizeof *o);
    SPS_REQUIRE(ctx, o->place == SPS_AUTO || o->place == SPS_HOST ||
                o->place == SPS_CUDA, SPS_EINVAL,
                "place %d is none of SPS_AUTO, SPS_HOST, SPS_CUDA",
                (int)o->place);
    SPS_REQUIRE(ctx, o->device >= 0, SPS_EINVAL,
                "device %d: ordinals of GPUs begin with 0", o->device);
    SPS_REQUIRE(ctx, o->threads >= 0 && o->threads <= MAX_THREADS, SPS_EINVAL,
                "%d threads: give 1 to %d, or 0 for all cores", o->threads,
                MAX_THREADS);
    SPS_REQUIRE(ctx, !o->host.alloc == !o->host.free, SPS_EINVAL,
                "a host allocator needs both alloc and free");
    SPS_REQUIRE(ctx, !o->gpu.alloc == !o->gpu.free, SPS_EINVAL,
                "a device allocator needs both alloc and free");
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
    return st;
}

static sps_status open_cuda(sps_context *ctx)
{
    sps_status st;
    char why[SPS_ERROR_SIZE / 2];

    ctx->module = spsi_module_load(why, sizeof why);
    (void)snprintf(ctx->module_state, sizeof ctx->module_state, "%s%.140s",
                   ctx->module ? "loaded " : "absent: ", why);
    SPS_REQUIRE(ctx, ctx->module, SPS_EABSENT,
                "no CUDA module: %s; configure --with-cuda builds it, "
                "SPSOLVE_MODULE_PATH names it", why);
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
    ctx->dead = false; /* that was the GPU, the host is well */
    ctx->stream = NULL;
    st = open_place(ctx, &spsi_backend_cpu);
    if (st == SPS_OK)
        spsi_note(ctx, "running on the host: %s",
                  ctx->module || spsi_module_expected()
                      ? why : "no CUDA module is installed");
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
        return open_place(ctx, &spsi_backend_cpu);
    }
}

/* The context is the first thing its own allocator gives, so it is begun on
 * the stack and moved. */
sps_status sps_context_create(const sps_context_options *options,
                              sps_context **ctx_p, const char **error)
{
    static _Thread_local char failure[SPS_ERROR_SIZE];
    sps_context seed = {0}, *ctx = NULL;
    sps_status st;

    if (options)
        seed.opt = *options;
    else
        sps_context_options_default(&seed.opt);
    SPS_REQUIRE(&seed, ctx_p, SPS_EINVAL, "ctx_p is NULL");
    SPS_TRY(check_options(&seed));
    seed.threads = seed.opt.threads ? seed.opt.threads : cores();
    SPS_TRY(spsi_new_raw(&seed, sizeof seed, (void **)&ctx));
    *ctx = seed;
    SPS_TRY(open_context(ctx));
    *ctx_p = ctx;
    if (error) *error = "";
    return SPS_OK;

fail:
    memcpy(failure, ctx ? ctx->error : seed.error, sizeof failure);
    if (error) *error = failure;
    sps_context_destroy(&ctx);
    return st;
}

void sps_context_destroy(sps_context **ctx_p)
{
    sps_context *ctx = ctx_p ? *ctx_p : NULL, last;

    if (!ctx) return;
    *ctx_p = NULL;
    if (ctx->backend) ctx->backend->close(ctx);
    spsi_wisdom_clear(ctx);
    spsi_options_forget(ctx);
    for (int i = 0; i < ctx->note_count; i++) spsi_free(ctx, ctx->notes[i]);
    spsi_free(ctx, ctx->notes);
    last = *ctx; /* whose allocator frees the context itself */
    spsi_free(&last, ctx);
}

const char *sps_context_error(const sps_context *ctx)
{
    return ctx ? ctx->error : "the context is NULL";
}

const char *sps_context_note(const sps_context *ctx, int i)
{
    return ctx && i >= 0 && i < ctx->note_count ? ctx->notes[i] : NULL;
}

sps_status sps_context_information(const sps_context *ctx,
                                   sps_context_info *info)
{
    sps_context *own = (sps_context *)ctx; /* to record a failure */
    size_t unused = 0, total = 0;
    sps_status st;

    if (!ctx) return SPS_EINVAL;
    SPS_REQUIRE(own, info, SPS_EINVAL, "info is NULL");
    SPS_REQUIRE(own, info->struct_size == sizeof *info, SPS_EINVAL,
                "sps_context_info.struct_size is %zu, this library knows %zu",
                info->struct_size, sizeof *info);
    if (ctx->opt.place == SPS_CUDA)
        SPS_TRY(ctx->backend->memory(own, &unused, &total));
    *info = (sps_context_info){
        .struct_size = sizeof *info,
        .place = ctx->opt.place,
        .threads = ctx->threads,
        .host_bytes = ctx->host_bytes,
        .host_peak = ctx->host_peak,
        .device_bytes = ctx->device_bytes,
        .device_peak = ctx->device_peak,
        .device_free = unused,
        .device_total = total,
        .live_objects = ctx->live,
    };
    memcpy(info->device, ctx->device, sizeof info->device);
    memcpy(info->module, ctx->module_state, sizeof info->module);
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
    return ctx ? ctx->backend->sync(ctx) : SPS_EINVAL;
}
