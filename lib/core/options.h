/* SPDX-License-Identifier: BSD-3-Clause */
/* options.h - the options as a table: one row for each name. */
#ifndef SPS_OPTIONS_H
#define SPS_OPTIONS_H

#include "core/context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns whether option precision selects single precision for `what`, which
 * is single_basis or single_precond: it does by that word, or by mixed. */
bool spsi_options_single(const sps_options *opt, const char *what);
/* *out = *opt, or the defaults if opt is NULL.  Checks struct_size and the
 * range of every option, and replaces strings that are NULL by their defaults.
 * Every public function that has an options argument calls it first. */
sps_status spsi_options_take(sps_context *ctx, const sps_options *opt,
                             sps_options *out);
/* Limits the host memory of a context to `bytes` in total: what it allocates,
 * and what it counts for other libraries.  For spsolve -max-bytes; spsolve.h
 * has no such option. */
void spsi_limit_host(sps_context *ctx, size_t bytes);
/* Fails for a value of a context's option that its row does not allow. */
sps_status spsi_context_options_check(sps_context *ctx,
                                      const sps_context_options *o);
/* Generated from the build lists, NULL-terminated; without the names that stand
 * for others. */
extern const char *const spsi_solver_names[], *const spsi_eigensolver_names[];
extern const char *const spsi_precond_names[], *const spsi_kernel_names_host[];
/* Returns name i of a kind, as sps_list does (solver, eigensolver, precond,
 * kernel.cpu, option or context_option), or NULL past the last. */
const char *spsi_name(const char *kind, int i);
/* Frees the option texts stored in ctx. */
void spsi_options_forget(sps_context *ctx);

#ifdef __cplusplus
}
#endif
#endif
