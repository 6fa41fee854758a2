/* SPDX-License-Identifier: BSD-3-Clause */
/* nearest.h - the edit distance of names, for "did you mean".  It needs only
 * libc, as replace.h does. */
#ifndef SPS_NEAREST_H
#define SPS_NEAREST_H

#include <stdbool.h>

#pragma GCC visibility push(hidden)

/* Returns whether `name` is similar to `word`, and more similar than all names
 * for which an earlier call returned true; the caller sets *limit to INT_MAX
 * before the first call, and each call updates it.  Case is ignored. */
bool spsi_nearer(const char *word, const char *name, int *limit);

#pragma GCC visibility pop
#endif
