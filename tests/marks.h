/* SPDX-License-Identifier: BSD-3-Clause */
/* marks.h - Check's assertions without a write to a file for each that holds.
 *
 * Check notes file and line of every assertion that holds, to place a crash by
 * the last of them.  Each note is a write of its own, more than all else in a
 * test that looks at every number: 48 of 67 s of check_row_blocks were spent
 * in the system.  Here one in a thousand is noted; a crash is placed by the
 * name of its test, a debugger or the sanitizers' stack. */
#ifndef SPS_TEST_MARKS_H
#define SPS_TEST_MARKS_H

#include <check.h>

static inline void marks_note(const char *file, int line)
{
    static unsigned count;

    if (count++ % 1000 == 0) _mark_point(file, line);
}
#define _mark_point marks_note /* what check.h's macros call */

#endif
