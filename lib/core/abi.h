/* SPDX-License-Identifier: BSD-3-Clause */
/* abi.h - the rule for struct_size, in one place: structs of a caller who may
 * have been built against another version of the library. */
#ifndef SPS_ABI_H
#define SPS_ABI_H

#include "core/context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* SPS_OK if the caller's struct at p, of `theirs` bytes, can be used by this
 * version, where the type has `ours` bytes: `theirs` is a plausible size, and
 * all bytes beyond `ours` are zero.  Otherwise EINVAL with both sizes and the
 * `name` of the type. */
sps_status spsi_abi_check(sps_context *ctx, const char *name, const void *p,
                          size_t theirs, size_t ours);
/* Copies the members that both structs have, except struct_size, with which
 * both begin: from the caller's struct over the defaults, or from the library's
 * to the caller's.  The caller's struct has been checked. */
void spsi_abi_copy(const void *from, void *to);

/* Applies spsi_abi_check to p, a pointer to a struct of this type, by its
 * member struct_size; NULL is accepted. */
#define SPS_ABI_CHECK(ctx, type, p)                                            \
    ((p) ? spsi_abi_check((ctx), #type, (p), (p)->struct_size, sizeof(type))   \
         : SPS_OK)

/* Sets ctx->opt, ctx->host and ctx->gpu from the caller's options, or to the
 * defaults if options is NULL. */
sps_status spsi_abi_context(sps_context *ctx,
                            const sps_context_options *options);
/* Fills the caller's struct opt of `size` bytes, which may be shorter or longer
 * than the library's struct `defaults`, and sets its struct_size. */
void spsi_abi_defaults(const void *defaults, void *opt, size_t size);
/* Checks a csr of the caller: that it is not NULL, and its struct_size, dtype
 * and props.  `call` is the name of the public function, for the error text. */
sps_status spsi_abi_csr_struct(sps_context *ctx, const char *call,
                               const sps_csr *A);
/* Returns whether A holds this process's rows of a matrix that is distributed
 * over several processes. */
bool spsi_abi_csr_rows(const sps_csr *A);
/* Does the checks of spsi_abi_csr_struct, and refuses a matrix distributed over
 * processes with EUNFIT. */
sps_status spsi_abi_csr(sps_context *ctx, const char *call, const sps_csr *A);

#ifdef __cplusplus
}
#endif
#endif
