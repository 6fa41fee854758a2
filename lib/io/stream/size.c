/* SPDX-License-Identifier: BSD-3-Clause */
/* size.c - memory for the result, by the sizes in the header of the file, and
 * whether that is plausible: a file of a few bytes can announce any number of
 * rows. */
#include <unistd.h>

#include "block/block.h"
#include "io/stream/size.h"

/* Unless the caller gives a memory limit, a result of more than LARGE bytes and
 * of more than TIMES the bytes of the text is rejected.  An entry of a real csr
 * takes at least 4 bytes of text and at most 24 of the result, so that only a
 * matrix of mostly empty rows reaches this ratio.  From WORTH_TELLING bytes to
 * LARGE there is a note instead. */
#define LARGE UINT64_C(1000000000)
#define TIMES 1000
#define WORTH_TELLING (LARGE / 100)

static uint64_t times(uint64_t a, uint64_t b)
{
    uint64_t c;
    return __builtin_mul_overflow(a, b, &c) ? UINT64_MAX : c;
}

static uint64_t plus(uint64_t a, uint64_t b)
{
    uint64_t c;
    return __builtin_add_overflow(a, b, &c) ? UINT64_MAX : c;
}

/* Bytes of the result: a block; or a csr, where all entries are counted as if
 * off the diagonal (an upper bound for files with a symmetry). */
static uint64_t result_bytes(const spsi_size *s, bool block)
{
    uint64_t rows = times((uint64_t)s->nrow, s->complex ? 2 : 1);
    uint64_t entries = times((uint64_t)s->count, (s->complex ? 4 : 1) *
                             (s->mirrors ? UINT64_C(2) : 1));

    if (block) return times(times(rows, (uint64_t)s->ncol), sizeof(double));
    return plus(times(entries, sizeof(double) + sizeof(int32_t)),
                times(rows + 1, sizeof(int64_t)));
}

/* Returns EPARSE, or adds a note if the result is small, where `need` bytes of
 * result are implausible for a text of at most `bytes` bytes. */
static sps_status check_ratio(sps_context *ctx, const spsi_size *s,
                              uint64_t need, uint64_t bytes)
{
    sps_status st = SPS_OK;

    if (need / TIMES <= bytes || need <= WORTH_TELLING) return SPS_OK;
    SPS_REQUIRE(ctx, need <= LARGE, SPS_EPARSE, "%s: %lld rows, %lld "
                "columns, %lld entries would need %.1f GB, but the text has "
                "at most %llu bytes; if the sizes are right, allow that "
                "much memory: -max-bytes %.0fG of spsolve, max_bytes of "
                "sps_read_options",
                s->where, (long long)s->nrow, (long long)s->ncol,
                (long long)s->count, 1e-9 * (double)need,
                (unsigned long long)bytes,
                (double)(need / (UINT64_C(1) << 30) + 1));
    spsi_note(ctx, "%s: %lld rows need %.1f MB, although the text has at "
              "most %llu bytes", s->where, (long long)s->nrow,
              1e-6 * (double)need, (unsigned long long)bytes);
fail:
    return st;
}

sps_status spsi_size_check(sps_context *ctx, const sps_read_options *options,
                           const spsi_size *s, bool block, uint64_t bytes)
{
    uint64_t need = result_bytes(s, block), limit = options->max_bytes;
    uint64_t shares = s->shares > 1 ? (uint64_t)s->shares : 1;
    uint64_t machine = times((uint64_t)sysconf(_SC_PHYS_PAGES),
                             (uint64_t)sysconf(_SC_PAGESIZE));
    sps_status st = SPS_OK;

    SPS_REQUIRE(ctx, !block || (s->ncol >= 1 && s->ncol <=
                SPS_BLOCK_MAX), SPS_EPARSE, "%s: the file has %lld "
                "columns, but a block of vectors may have 1 to %d: split it "
                "into several files", s->where, (long long)s->ncol,
                SPS_BLOCK_MAX);
    SPS_REQUIRE(ctx, limit == 0 || need <= limit, SPS_ENOMEM, "%s: "
                "%lld rows, %lld columns, %lld entries need %llu bytes, but "
                "the limit is %llu", s->where,
                (long long)s->nrow, (long long)s->ncol, (long long)s->count,
                (unsigned long long)need, (unsigned long long)limit);
    /* A limit of the caller may exceed the memory of the machine, since that of
     * a virtual machine may grow. */
    SPS_REQUIRE(ctx, limit > 0 || need / shares <= machine, SPS_ENOMEM,
                "%s: %lld rows, %lld columns, %lld entries need %llu bytes, "
                "but this machine has %llu; if it can have more, allow "
                "that: -max-bytes %.0fG of spsolve, max_bytes of "
                "sps_read_options", s->where,
                (long long)s->nrow, (long long)s->ncol, (long long)s->count,
                (unsigned long long)need, (unsigned long long)machine,
                (double)(need / (UINT64_C(1) << 30) + 1));
    if (limit == 0) SPS_TRY(check_ratio(ctx, s, need, bytes));
fail:
    return st;
}
