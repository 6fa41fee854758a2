/* SPDX-License-Identifier: BSD-3-Clause */
/* bytes_numbers.c - converts arrays of binary numbers of any type and byte
 * order to doubles, offsets and indices, piece by piece, so that each piece is
 * still in the cache when it is converted. */
#include <math.h>
#include <string.h>

#include "io/stream/bytes.h"

enum { PIECE = 4096 };           /* numbers converted at once */

/* ----------------------------------------------------------- one number */

static void swap(unsigned char *p, int size)
{
    for (int i = 0; i < size / 2; i++) {
        unsigned char c = p[i];
        p[i] = p[size - 1 - i];
        p[size - 1 - i] = c;
    }
}

#define LOAD(type) type v; memcpy(&v, p, sizeof v)

/* Reads the integer at p; returns false if it exceeds int64_t: *to then has its
 * bits as a uint64_t. */
static bool whole(const unsigned char *p, spsi_binary t, int64_t *to)
{
    const bool is_signed = t.kind == 'i';

    switch (t.size) {
    case 1: *to = is_signed ? (int8_t)*p : *p; break;
    case 2: if (is_signed) { LOAD(int16_t); *to = v; }
            else { LOAD(uint16_t); *to = v; }
            break;
    case 4: if (is_signed) { LOAD(int32_t); *to = v; }
            else { LOAD(uint32_t); *to = v; }
            break;
    default: memcpy(to, p, 8); return is_signed || *to >= 0;
    }
    return true;
}

static double real(const unsigned char *p, spsi_binary t, int64_t *rounded)
{
    int64_t w = 0;
    double x;

    if (t.kind == 'f' && t.size == 4) { LOAD(float); return (double)v; }
    if (t.kind == 'f') { LOAD(double); return v; }
    if (!whole(p, t, &w)) {
        x = (double)(uint64_t)w;
        *rounded += x >= 0x1p64 || (uint64_t)x != (uint64_t)w;
        return x;
    }
    x = (double)w;
    *rounded += x >= 0x1p63 || (int64_t)x != w;
    return x;
}

/* --------------------------------------------------------------- pieces */

/* Reads n <= PIECE numbers to raw, in the order of this machine. */
static sps_status piece(spsi_bytes *b, spsi_binary t, int64_t n,
                        unsigned char *raw, const char *what)
{
    sps_status st;

    SPS_TRY(spsi_bytes_take(b, raw, (size_t)n * (size_t)t.size, what));
    if (t.swapped && t.size == 8)
        for (int64_t i = 0; i < n; i++) {
            uint64_t v;
            memcpy(&v, raw + 8 * i, 8);
            v = __builtin_bswap64(v);
            memcpy(raw + 8 * i, &v, 8);
        }
    else if (t.swapped && t.size == 4)
        for (int64_t i = 0; i < n; i++) {
            uint32_t v;
            memcpy(&v, raw + 4 * i, 4);
            v = __builtin_bswap32(v);
            memcpy(raw + 4 * i, &v, 4);
        }
    else if (t.swapped)
        for (int64_t i = 0; i < n; i++) swap(raw + t.size * i, t.size);
fail:
    return st;
}

static sps_status check_finite(spsi_bytes *b, spsi_binary t, const double *x,
                               int64_t n, int64_t first)
{
    const uint64_t end = b->offset;
    double sum = 0;
    sps_status st = SPS_OK;

    if (b->f->options.allow_nonfinite || t.kind != 'f') return SPS_OK;
    for (int64_t i = 0; i < n; i++) sum += 0 * x[i];   /* NaN if one is not */
    if (sum == 0) return SPS_OK;
    for (int64_t i = 0; i < n; i++)
        SPS_REQUIRE(b->f->ctx, isfinite(x[i]), SPS_EPARSE, "%s: byte %llu: "
                    "number %lld is %s, which is not finite (allow such "
                    "values to read them)", b->name,
                    (unsigned long long)(end - (uint64_t)(n - i) *
                                                   (uint64_t)t.size),
                    (long long)(first + i), isnan(x[i]) ? "NaN"
                    : x[i] > 0 ? "infinity" : "-infinity");
fail:
    return st;
}

sps_status spsi_bytes_reals(spsi_bytes *b, spsi_binary t, int64_t count,
                            double *to, int64_t *rounded)
{
    unsigned char raw[PIECE * 8];
    const bool direct = t.kind == 'f' && t.size == 8;
    sps_status st = SPS_OK;

    for (int64_t done = 0; done < count; done += PIECE) {
        const int64_t n = count - done < PIECE ? count - done : PIECE;

        SPS_TRY(piece(b, t, n, direct ? (unsigned char *)(to + done) : raw,
                      "numbers"));
        for (int64_t i = 0; i < n && !direct; i++)
            to[done + i] = real(raw + t.size * i, t, rounded);
        SPS_TRY(check_finite(b, t, to + done, n, done));
    }
fail:
    return st;
}

static sps_status refuse_reals(spsi_bytes *b, spsi_binary t)
{
    sps_status st = SPS_OK;

    SPS_REQUIRE(b->f->ctx, t.kind == 'i' || t.kind == 'u', SPS_EPARSE,
                "%s: byte %llu: numbers of NumPy's kind '%c', where integers "
                "('i' or 'u') are expected",
                b->name, (unsigned long long)b->offset, t.kind);
fail:
    return st;
}

sps_status spsi_bytes_wholes(spsi_bytes *b, spsi_binary t, int64_t count,
                             int64_t *to)
{
    unsigned char raw[PIECE * 8];
    sps_status st;

    SPS_TRY(refuse_reals(b, t));
    for (int64_t done = 0; done < count; done += PIECE) {
        const int64_t n = count - done < PIECE ? count - done : PIECE;

        SPS_TRY(piece(b, t, n, raw, "integers"));
        for (int64_t i = 0; i < n; i++)
            SPS_REQUIRE(b->f->ctx, whole(raw + t.size * i, t, &to[done + i]),
                        SPS_EPARSE, "%s: before byte %llu: the integer %llu is "
                        "larger than 2^63 - 1", b->name,
                        (unsigned long long)b->offset,
                        (unsigned long long)to[done + i]);
    }
fail:
    return st;
}

static sps_status refuse_index(spsi_bytes *b, spsi_binary t, int64_t index,
                               int base, int64_t limit, const char *what,
                               int64_t behind)
{
    return spsi_fail(b->f->ctx, SPS_EPARSE, "%s: byte %llu: %s %lld is out "
                     "of range: the smallest %s is %d, the largest %lld",
                     b->name,
                     (unsigned long long)(b->offset - (uint64_t)behind *
                                                          (uint64_t)t.size),
                     what, (long long)index, what, base,
                     (long long)(limit - 1 + base));
}

sps_status spsi_bytes_indices(spsi_bytes *b, spsi_binary t, int64_t count,
                              int base, int64_t limit, const char *what,
                              int32_t *to)
{
    unsigned char raw[PIECE * 8];
    int64_t w = 0;
    sps_status st;

    SPS_TRY(refuse_reals(b, t));
    for (int64_t done = 0; done < count; done += PIECE) {
        const int64_t n = count - done < PIECE ? count - done : PIECE;

        SPS_TRY(piece(b, t, n, raw, "indices"));
        for (int64_t i = 0; i < n; i++) {
            if (!whole(raw + t.size * i, t, &w) || w < base ||
                w - base >= limit)
                return refuse_index(b, t, w, base, limit, what, n - i);
            to[done + i] = (int32_t)(w - base);
        }
    }
fail:
    return st;
}

sps_status spsi_bytes_expect(const spsi_bytes *b, spsi_binary t, int64_t count,
                             const char *what)
{
    uint64_t left = b->bound - (b->bound > b->offset ? b->offset : b->bound);
    sps_status st = SPS_OK;

    SPS_REQUIRE(b->f->ctx, count >= 0 && (b->bound == UINT64_MAX ||
                (uint64_t)count <= left / (uint64_t)t.size), SPS_EPARSE,
                "%s: byte %llu: the header announces %lld numbers of %d "
                "bytes for %s, but at most %llu bytes follow (was the file "
                "cut off?)", b->name,
                (unsigned long long)b->offset, (long long)count, t.size, what,
                (unsigned long long)left);
fail:
    return st;
}

sps_status spsi_bytes_room(const spsi_bytes *b, spsi_binary t, int64_t count,
                           size_t size, const char *what, void **p_p)
{
    const uint64_t limit = b->f->options.max_bytes;
    sps_status st;

    SPS_TRY(spsi_bytes_expect(b, t, count, what));
    SPS_REQUIRE(b->f->ctx, (uint64_t)count <= SIZE_MAX / size / 2 &&
                (limit == 0 || (uint64_t)count <= limit / size), SPS_ENOMEM,
                "%s: %lld numbers (%s) need %zu bytes each, more than %s",
                b->name,
                (long long)count, what, size, limit > 0 ? "the limit of memory "
                "allows (max_bytes)" : "can be addressed");
    st = spsi_new_raw(b->f->ctx, (size_t)(count > 0 ? count : 1) * size, p_p);
fail:
    return st;
}
