/* SPDX-License-Identifier: BSD-3-Clause */
/* mtx_size.c - memory for the result, by the sizes in the size line, and
 * whether that is plausible: a file of a few bytes can announce any number of
 * rows. */
#include <unistd.h>

#include "block/block.h"
#include "io/mtx.h"

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
static uint64_t result_bytes(const spsi_mtx *m, bool block)
{
    const spsi_mtx_header *h = &m->header;
    bool two = h->field == SPSI_MTX_COMPLEX;
    uint64_t rows = times((uint64_t)h->nrow, two ? 2 : 1);
    uint64_t entries = times((uint64_t)h->count, (two ? 4 : 1) *
                             (spsi_mtx_mirrors(m) ? UINT64_C(2) : 1));

    if (block) return times(times(rows, (uint64_t)h->ncol), sizeof(double));
    return plus(times(entries, sizeof(double) + sizeof(int32_t)),
                times(rows + 1, sizeof(int64_t)));
}

/* EPARSE or a note, as above, where `need` bytes of result are implausible for
 * a text of at most `bytes` bytes. */
static sps_status check_ratio(const spsi_mtx *m, uint64_t need, uint64_t bytes)
{
    const spsi_mtx_header *h = &m->header;
    sps_status st = SPS_OK;

    if (need / TIMES <= bytes || need <= WORTH_TELLING) return SPS_OK;
    SPS_REQUIRE(m->ctx, need <= LARGE, SPS_EPARSE, "%s: %lld rows, %lld "
                "columns, %lld entries would take %.1f GB, but the text has at "
                "most %llu bytes; if they are right, allow that much memory: "
                "-max-bytes %.0fG of spsolve, max_bytes of sps_read_options",
                m->name, (long long)h->nrow, (long long)h->ncol,
                (long long)h->count, 1e-9 * (double)need,
                (unsigned long long)bytes,
                (double)(need / (UINT64_C(1) << 30) + 1));
    spsi_note(m->ctx, "%s: %lld rows take %.1f MB, though the text has at "
              "most %llu bytes", m->name, (long long)h->nrow,
              1e-6 * (double)need, (unsigned long long)bytes);
fail:
    return st;
}

sps_status spsi_mtx_check_size(const spsi_mtx *m, bool block, uint64_t bytes)
{
    const spsi_mtx_header *h = &m->header;
    uint64_t need = result_bytes(m, block), limit = m->options.max_bytes;
    uint64_t machine = times((uint64_t)sysconf(_SC_PHYS_PAGES),
                             (uint64_t)sysconf(_SC_PAGESIZE));
    sps_status st = SPS_OK;

    SPS_REQUIRE(m->ctx, !block || (h->ncol >= 1 && h->ncol <=
                SPS_BLOCK_MAX), SPS_EPARSE, "%s:%lld: %lld columns; a block "
                "has 1 to %d", m->name, (long long)m->line,
                (long long)h->ncol, SPS_BLOCK_MAX);
    SPS_REQUIRE(m->ctx, limit == 0 || need <= limit, SPS_ENOMEM, "%s:%lld: "
                "%lld rows, %lld columns, %lld entries need %llu bytes, but "
                "the limit is %llu", m->name, (long long)m->line,
                (long long)h->nrow, (long long)h->ncol, (long long)h->count,
                (unsigned long long)need, (unsigned long long)limit);
    SPS_REQUIRE(m->ctx, need <= machine, SPS_ENOMEM, "%s:%lld: %lld rows, "
                "%lld columns, %lld entries need %llu bytes, but this machine "
                "has %llu", m->name, (long long)m->line, (long long)h->nrow,
                (long long)h->ncol, (long long)h->count,
                (unsigned long long)need, (unsigned long long)machine);
    if (limit == 0) SPS_TRY(check_ratio(m, need, bytes));
fail:
    return st;
}
