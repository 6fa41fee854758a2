/* SPDX-License-Identifier: BSD-3-Clause */
/* options.h - the options as a table: one row for each name. */
#ifndef SPS_OPTIONS_H
#define SPS_OPTIONS_H

#include "context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* *out = *opt, or the defaults when opt is NULL; checks struct_size and every
 * range; strings that are NULL become their defaults.  Every public function
 * that takes options begins with it. */
/* What an option that is double, single or auto says; auto follows
 * precision. */
bool spsi_options_single(const sps_options *opt, const char *word);
sps_status spsi_options_take(sps_context *ctx, const sps_options *opt,
                             sps_options *out);
/* Name of option number i, NULL past the last. */
const char *spsi_options_name(int i);
/* Frees the texts that sps_options_parse kept. */
void spsi_options_forget(sps_context *ctx);

#ifdef __cplusplus
}
#endif
#endif
