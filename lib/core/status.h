/* SPDX-License-Identifier: BSD-3-Clause */
/* status.h - error handling: the function that detects the cause writes the
 * text into the context, and all others return its code. */
#ifndef SPS_STATUS_H
#define SPS_STATUS_H

#include "spsolve.h"

#if defined(__GNUC__)
#define SPS_PRINTF(a, b) __attribute__((format(printf, a, b)))
#else
#define SPS_PRINTF(a, b)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Records the text of a failure and returns `code`, for use in a return
 * statement.  If ctx is NULL, the text is stored for the calling thread. */
sps_status spsi_fail(sps_context *ctx, sps_status code, const char *format,
                     ...) SPS_PRINTF(3, 4);
/* Adds a note for the report. */
void spsi_note(sps_context *ctx, const char *format, ...) SPS_PRINTF(2, 3);

/* For C files: st = call, and goto fail unless it is SPS_OK.  The function has
 * a local variable sps_status st and one exit, the label fail. */
#define SPS_TRY(call)                                                          \
    do {                                                                       \
        st = (call);                                                           \
        if (st != SPS_OK) goto fail;                                           \
    } while (0)
#define SPS_REQUIRE(ctx, condition, code, ...)                                 \
    do {                                                                       \
        if (!(condition)) {                                                    \
            st = spsi_fail((ctx), (code), __VA_ARGS__);                        \
            goto fail;                                                         \
        }                                                                      \
    } while (0)

/* Checks a handle before its context is known: at the start of public
 * functions. */
#define SPS_HANDLE(handle)                                                     \
    do {                                                                       \
        if (!(handle))                                                         \
            return spsi_fail(NULL, SPS_EINVAL, "%s: %s is NULL", __func__,     \
                             #handle);                                         \
    } while (0)

/* In .cu files, where C++ forbids a jump past initialised variables, and in
 * the C files beside them: returns the status of the call unless it is
 * SPS_OK. */
#define SPS_TRY_RETURN(call)                                                   \
    do {                                                                       \
        sps_status st_ = (call);                                               \
        if (st_ != SPS_OK) return st_;                                         \
    } while (0)

/* Defines a const table with external linkage in C and in C++. */
#ifdef __cplusplus
#define SPS_DEFINE(type, name)                                                 \
    extern "C" const type name;                                                \
    const type name
#else
#define SPS_DEFINE(type, name)                                                 \
    extern const type name;                                                    \
    const type name
#endif

#ifdef __cplusplus
}
#endif
#endif
