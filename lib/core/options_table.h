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
    bool numbered;          /* a WORD stored as the number of the word: an
                               enum */
    sps_option_info info;
} spsi_option;

/* Row number i, NULL past the last. */
const spsi_option *spsi_option_row(int i);
/* The row of a name or alias, in which '-' may stand for '_'; NULL: none, and
 * the context's error suggests the most similar one. */
const spsi_option *spsi_option_find(sps_context *ctx, const char *name);
/* 1 for the name basis, 2 for precond_precision, else 0.  These options of 0.1
 * are now values of option precision: spsi_option_find returns its row for
 * them, and to set one of them sets the equivalent value. */
int spsi_option_before_0_2(const char *name);
void *spsi_option_member(const spsi_option *row, const sps_options *opt);
/* Whether the option's member of sps_options is a string (const char *). */
bool spsi_option_is_text(const spsi_option *row);

/* Word number i of a blank-separated list; false past the last. */
bool spsi_option_word(const char *words, int i, char *word, size_t size);

/* options.c: EINVAL, with the range or the known names, for a value that the
 * row does not allow. */
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
