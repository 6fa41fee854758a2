/* SPDX-License-Identifier: BSD-3-Clause */
/* options_table.h - the table of options, of solvers and of contexts, and
 * values of rows as text. */
#ifndef SPS_OPTIONS_TABLE_H
#define SPS_OPTIONS_TABLE_H

#include "core/context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A row: the public information on an option. */
typedef struct spsi_option {
    bool numbered;          /* a WORD that is stored as its position in the
                               list: an enum */
    sps_option_info info;
} spsi_option;

/* Returns row i, or NULL past the last. */
const spsi_option *spsi_option_row(int i);
/* The same of the options of a context. */
const spsi_option *spsi_context_option_row(int i);
/* Returns the row of a name or alias, in which '-' may replace '_', or NULL if
 * there is none; the context's error then suggests the most similar name. */
const spsi_option *spsi_option_find(sps_context *ctx, const char *name);
/* Returns 1 for the name basis, 2 for precond_precision, and 0 otherwise.
 * These options of version 0.1 have become values of option precision:
 * spsi_option_find returns its row for them, and setting one of them sets the
 * equivalent value. */
int spsi_option_before_0_2(const char *name);
/* Returns the address of the option's member in the struct at `opt`,
 * sps_options or sps_context_options. */
void *spsi_option_member(const spsi_option *row, const void *opt);
/* Returns whether the option's member is a string (const char *). */
bool spsi_option_is_text(const spsi_option *row);

/* Finds word i of a blank-separated list; returns false past the last. */
bool spsi_option_word(const char *words, int i, char *word, size_t size);

/* options.c: returns EINVAL, with the range or the known names in its text, for
 * a value that the row does not allow. */
sps_status spsi_option_check_text(sps_context *ctx, const spsi_option *row,
                                  const char *text);
sps_status spsi_option_check_number(sps_context *ctx, const spsi_option *row,
                                    double value);

/* options_text.c: sets the member of the struct at `opt` from text.  A string
 * is copied into ctx; without ctx, as for the defaults, which are string
 * literals, the pointer itself is stored. */
sps_status spsi_option_set(sps_context *ctx, const spsi_option *row, void *opt,
                           const char *text);

#ifdef __cplusplus
}
#endif
#endif
