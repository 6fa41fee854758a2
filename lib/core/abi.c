/* SPDX-License-Identifier: BSD-3-Clause */
/* abi.c - the rule for struct_size (spsolve.h, conventions), and the structs of
 * programs built against 0.1 whose layout has changed since:
 *
 *   sps_context_options  112 bytes, allocators by value and `reduce`;
 *   sps_options          280 bytes, the front part of today's;
 *   sps_csr, sps_progress  without struct_size: it was added later, and so it
 *                        comes after the members that 0.1 had. */
#include <string.h>

#include "core/abi.h"

/* A size above that of every version comes from uninitialised memory. */
#define LARGEST 65536

sps_status spsi_abi_check(sps_context *ctx, const char *name, const void *p,
                          size_t theirs, size_t ours)
{
    const char *bytes = p;
    sps_status st = SPS_OK;

    SPS_REQUIRE(ctx, theirs >= sizeof(size_t) && theirs <= LARGEST &&
                theirs % sizeof(size_t) == 0, SPS_EINVAL,
                "%s.struct_size is %zu, which is not its size in any version "
                "(%zu in this one): set it to sizeof(%s), or call its "
                "_default function where there is one", name, theirs, ours,
                name);
    for (size_t i = ours; i < theirs; i++)
        SPS_REQUIRE(ctx, bytes[i] == 0, SPS_EINVAL,
                    "%s.struct_size is %zu, this library knows %zu bytes, and "
                    "byte %zu is set: a member of a later version is in use",
                    name, theirs, ours, i);
fail:
    return st;
}

void spsi_abi_copy(const void *from, void *to)
{
    const size_t head = sizeof(size_t);
    size_t size, other;

    memcpy(&size, to, head);
    memcpy(&other, from, head);
    if (other < size) size = other;
    memcpy((char *)to + head, (const char *)from + head, size - head);
}

void spsi_abi_defaults(const void *defaults, void *opt, size_t size)
{
    if (!opt || size < sizeof size) return;
    memset(opt, 0, size);
    memcpy(opt, &size, sizeof size);
    spsi_abi_copy(defaults, opt);
}

/* ------------------------------------------------------------ built for 0.1 */

typedef struct hooks_0_1 {
    void *(*alloc)(size_t bytes, void *data);
    void (*free)(void *p, size_t bytes, void *data);
    void *data;
} hooks_0_1;

typedef struct context_options_0_1 {
    size_t struct_size;
    sps_place place;
    int device;
    void *stream;
    int threads;
    uint64_t seed;
    bool reproducible;
    hooks_0_1 host, gpu;
    int (*reduce)(double *values, int count, void *data);
    void *reduce_data;
} context_options_0_1;

#define OPTIONS_0_1 offsetof(sps_options, monitor_data) + sizeof(void *)

_Static_assert(sizeof(context_options_0_1) != sizeof(sps_context_options),
               "the size tells the versions apart");
_Static_assert(offsetof(sps_options, monitor_data) == 272,
               "members of 0.1 stay where they are");

/* Programs built against 0.1 call these functions by name. */
void (sps_context_options_default)(sps_context_options *options)
{
    const context_options_0_1 defaults = {
        .struct_size = sizeof defaults, .place = SPS_AUTO, .seed = 1,
        .reproducible = true,
    };

    if (options) memcpy((void *)options, &defaults, sizeof defaults);
}

void (sps_options_default)(sps_options *opt)
{
    sps_options_init(opt, OPTIONS_0_1);
}

static sps_allocator hooks(const hooks_0_1 *old)
{
    return (sps_allocator){ .struct_size = sizeof(sps_allocator),
                            .alloc = old->alloc, .free = old->free,
                            .data = old->data };
}

static sps_status context_of_0_1(sps_context *ctx,
                                 const context_options_0_1 *old)
{
    sps_status st = SPS_OK;

    SPS_REQUIRE(ctx, !old->reduce, SPS_EINVAL, "this program was built against "
                "version 0.1; sps_context_options.reduce was replaced by "
                "sps_comm_user() and sps_context_options.comm: change the "
                "program and build it again");
    ctx->opt.place = old->place;
    ctx->opt.device = old->device;
    ctx->opt.stream = old->stream;
    ctx->opt.threads = old->threads;
    ctx->opt.seed = old->seed;
    ctx->opt.reproducible = old->reproducible;
    ctx->host = hooks(&old->host);
    ctx->gpu = hooks(&old->gpu);
fail:
    return st;
}

static sps_status take_hooks(sps_context *ctx, const sps_allocator *from,
                             sps_allocator *to)
{
    sps_status st = SPS_ABI_CHECK(ctx, sps_allocator, from);

    to->struct_size = sizeof *to;
    if (st == SPS_OK && from) spsi_abi_copy(from, to);
    return st;
}

sps_status spsi_abi_context(sps_context *ctx,
                            const sps_context_options *options)
{
    sps_status st = SPS_OK;

    sps_context_options_default(&ctx->opt);
    if (!options) return SPS_OK;
    if (options->struct_size == sizeof(context_options_0_1))
        return context_of_0_1(ctx, (const void *)options);
    SPS_TRY(SPS_ABI_CHECK(ctx, sps_context_options, options));
    spsi_abi_copy(options, &ctx->opt);
    SPS_TRY(take_hooks(ctx, ctx->opt.host, &ctx->host));
    SPS_TRY(take_hooks(ctx, ctx->opt.gpu, &ctx->gpu));
fail:
    return st;
}

/* --------------------------------------------------------------------- csr */

#define CSR_PROPS (unsigned)(SPS_SYMMETRIC | SPS_SPD | SPS_INTERLEAVED | \
                             SPS_SORTED)

sps_status spsi_abi_csr_struct(sps_context *ctx, const char *call,
                               const sps_csr *A)
{
    const size_t least = offsetof(sps_csr, struct_size) + sizeof(size_t);
    sps_status st = SPS_OK;

    SPS_REQUIRE(ctx, A, SPS_EINVAL, "%s: the matrix is NULL", call);
    SPS_REQUIRE(ctx, A->struct_size >= least, SPS_EINVAL, "%s: "
                "sps_csr.struct_size is %zu, this library knows %zu bytes and "
                "needs %zu of them: set it to sizeof(sps_csr)", call,
                A->struct_size, sizeof *A, least);
    SPS_TRY(SPS_ABI_CHECK(ctx, sps_csr, A));
    SPS_REQUIRE(ctx, A->dtype == SPS_F64 || A->dtype == SPS_F32, SPS_EINVAL,
                "%s: sps_csr.dtype is %d, neither SPS_F64 nor SPS_F32", call,
                (int)A->dtype);
    SPS_REQUIRE(ctx, !(A->props & ~CSR_PROPS), SPS_EINVAL, "%s: sps_csr.props "
                "is %u; this library knows SPS_SYMMETRIC, SPS_SPD, "
                "SPS_INTERLEAVED and SPS_SORTED, all other bits are zero",
                call, A->props);
fail:
    return st;
}

bool spsi_abi_csr_rows(const sps_csr *A)
{
    return A && A->struct_size >= sizeof *A &&
           (A->first != 0 || A->whole != 0 || A->global);
}

sps_status spsi_abi_csr(sps_context *ctx, const char *call, const sps_csr *A)
{
    sps_status st;

    SPS_TRY(spsi_abi_csr_struct(ctx, call, A));
    SPS_REQUIRE(ctx, !spsi_abi_csr_rows(A), SPS_EUNFIT, "%s: this csr has "
                "the rows from %lld on of a matrix of %lld rows that is "
                "distributed over processes; only sps_operator_csr accepts "
                "such a csr", call, (long long)A->first, (long long)A->whole);
fail:
    return st;
}
