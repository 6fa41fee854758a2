/* SPDX-License-Identifier: BSD-3-Clause */
/* status.h - how a failure travels: the first function that knows the cause
 * writes the text into the context, all others pass the code on. */
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

/* Records the text of a failure; returns code, so that one can return it.
 * ctx may be NULL (then only the code travels). */
sps_status spsi_fail(sps_context *ctx, sps_status code, const char *format,
                     ...) SPS_PRINTF(3, 4);
/* Adds a note for the report. */
void spsi_note(sps_context *ctx, const char *format, ...) SPS_PRINTF(2, 3);

/* C files: one exit, "fail:", with a local sps_status st. */
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

/* .cu files (no jump past initialised variables): the same, returning. */
#define SPS_TRY_RETURN(call)                                                   \
    do {                                                                       \
        sps_status st_ = (call);                                               \
        if (st_ != SPS_OK) return st_;                                         \
    } while (0)

/* A const table with external linkage in C and in C++. */
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
