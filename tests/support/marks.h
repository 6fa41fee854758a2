/* SPDX-License-Identifier: BSD-3-Clause */
/* marks.h - Check's assertions without one file write per assertion that holds.
 *
 * Check records file and line of every assertion that holds, so that a crash
 * can be located by the last of them.  Each record is a system call of its own,
 * and in a test that compares every number these dominate: 48 of the 67 s of
 * check_row_blocks were system time.  Here one in a thousand is recorded; a
 * crash can still be located by the name of the test, a debugger or the
 * sanitizers' stack trace. */
#ifndef SPS_TEST_MARKS_H
#define SPS_TEST_MARKS_H

#include <check.h>

static inline void marks_note(const char *file, int line)
{
    static unsigned count;      /* over all threads */

    if (__atomic_fetch_add(&count, 1, __ATOMIC_RELAXED) % 1000 == 0)
        _mark_point(file, line);
}
#define _mark_point marks_note /* the function that check.h's macros call */

#endif
