/* SPDX-License-Identifier: BSD-3-Clause */
/* nearest.h - the edit distance of names, for "did you mean".  libc alone, as
 * replace.h. */
#ifndef SPS_NEAREST_H
#define SPS_NEAREST_H

#include <stdbool.h>

#pragma GCC visibility push(hidden)

/* Whether `name` is similar to `word`, and more similar than all names for
 * which an earlier call returned true; *limit, which calls update, is INT_MAX
 * at the first.  Case is ignored. */
bool spsi_nearer(const char *word, const char *name, int *limit);

#pragma GCC visibility pop
#endif
