/* SPDX-License-Identifier: BSD-3-Clause */
/* options_table.h - the table of options, and values of rows as text. */
#ifndef SPS_OPTIONS_TABLE_H
#define SPS_OPTIONS_TABLE_H

#include "core/context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A row: the public information on an option, and the offset of its member in
 * sps_options. */
typedef struct spsi_option {
    size_t offset;
    bool numbered;          /* a WORD that is stored as its position in the
                               list: an enum */
    sps_option_info info;
} spsi_option;

/* Returns row i, or NULL past the last. */
const spsi_option *spsi_option_row(int i);
/* Returns the row of a name or alias, in which '-' may replace '_', or NULL if
 * there is none; the context's error then suggests the most similar name. */
const spsi_option *spsi_option_find(sps_context *ctx, const char *name);
/* Returns 1 for the name basis, 2 for precond_precision, and 0 otherwise.
 * These options of version 0.1 have become values of option precision:
 * spsi_option_find returns its row for them, and setting one of them sets the
 * equivalent value. */
int spsi_option_before_0_2(const char *name);
void *spsi_option_member(const spsi_option *row, const sps_options *opt);
/* Returns whether the option's member of sps_options is a string (const char
 * *). */
bool spsi_option_is_text(const spsi_option *row);

/* Finds word i of a blank-separated list; returns false past the last. */
bool spsi_option_word(const char *words, int i, char *word, size_t size);

/* options.c: returns EINVAL, with the range or the known names in its text, for
 * a value that the row does not allow. */
sps_status spsi_option_check_text(sps_context *ctx, const spsi_option *row,
                                  const char *text);
sps_status spsi_option_check_number(sps_context *ctx, const spsi_option *row,
                                    double value);

/* options_text.c: sets the member from text.  A string is copied into ctx;
 * without ctx, as for the defaults, which are string literals, the pointer
 * itself is stored. */
sps_status spsi_option_set(sps_context *ctx, const spsi_option *row,
                           sps_options *opt, const char *text);

#ifdef __cplusplus
}
#endif
#endif
