/* SPDX-License-Identifier: BSD-3-Clause */
/* zip.c - the layout of a zip archive (APPNOTE.TXT of PKWARE, 4.3 to 4.5):
 *
 *   local header  30 bytes, name, extra fields   (sizes of 64 bits: field 1)
 *   data          stored or deflated
 *   descriptor    if flag 3 is set: [signature] crc, packed, unpacked
 *   ...           the next member, or the directory
 */
#include <stdio.h>
#include <string.h>

#include "io/stream/codec.h"
#include "io/files/zip.h"

#define LOCAL 0x04034b50u
#define RECORD 0x02014b50u
#define END 0x06054b50u
#define WIDE_END 0x06064b50u
#define WIDE_LOCATOR 0x07064b50u
#define DESCRIPTOR 0x08074b50u
#define ABSENT 0xffffffffu   /* the size is in the extra field */
#define RATIO 1032           /* deflate packs at most by this factor */

enum { STORED = 0, DEFLATED = 8 };

static uint32_t number(const unsigned char *p, int bytes)
{
    uint32_t v = 0;

    for (int i = bytes; i-- > 0;) v = v << 8 | p[i];
    return v;
}

static uint64_t wide_number(const unsigned char *p)
{
    return number(p, 4) | (uint64_t)number(p + 4, 4) << 32;
}

bool spsi_zip_begins(const char *p, size_t length)
{
    return length >= 30 && memcmp(p, "PK\3\4", 4) == 0;
}

sps_status spsi_zip_open(const spsi_file *f, spsi_zip *z)
{
    memset(z, 0, sizeof *z);
    return spsi_bytes_open(f, &z->file);
}

void spsi_zip_close(spsi_zip *z)
{
    if (z->inflating) (void)inflateEnd(&z->z);
    spsi_bytes_close(&z->member);
    spsi_bytes_close(&z->file);
}

/* ---------------------------------------------------------------- a member */

static sps_status cut_off(const spsi_zip *z)
{
    return spsi_fail(z->file.f->ctx, SPS_EPARSE, "%s: cut off after %llu "
                     "bytes, inside the member %s (fetch or write the file "
                     "again)", z->file.name,
                     (unsigned long long)z->file.offset, z->name);
}

static sps_status fill_stored(spsi_zip *z, char *buffer, size_t room,
                              size_t *got)
{
    const size_t n = z->left < room ? (size_t)z->left : room;
    sps_status st;

    SPS_TRY(spsi_bytes_some(&z->file, buffer, n, got));
    if (*got < n) return cut_off(z);
    z->left -= n;
    z->done = z->left == 0;
fail:
    return st;
}

/* Makes one step of inflate, from the buffer of the file. */
static sps_status inflate_some(spsi_zip *z)
{
    const spsi_file *f = z->file.f;
    const char *p;
    size_t got;
    sps_status st;
    int code;

    SPS_TRY(spsi_bytes_peek(&z->file, 1, &p, &got));
    if (z->sized && got > z->left) got = (size_t)z->left;
    z->z.next_in = (z_const Bytef *)p;
    z->z.avail_in = (unsigned)got;
    code = inflate(&z->z, Z_NO_FLUSH);
    spsi_bytes_consume(&z->file, got - z->z.avail_in);
    if (z->sized) z->left -= got - z->z.avail_in;
    SPS_REQUIRE(f->ctx, code != Z_MEM_ERROR, SPS_ENOMEM, "%s: not enough "
                "host memory to unpack the file", f->name);
    if (code == Z_BUF_ERROR && got == 0) return cut_off(z);
    SPS_REQUIRE(f->ctx, code == Z_OK || code == Z_STREAM_END ||
                code == Z_BUF_ERROR, SPS_EPARSE, "%s: the member %s is broken "
                "near byte %llu: %s (fetch or write the file again)", f->name,
                z->name, (unsigned long long)z->file.offset,
                z->z.msg ? z->z.msg : "no deflate");
    z->done = code == Z_STREAM_END;
fail:
    return st;
}

static sps_status fill_deflated(spsi_zip *z, char *buffer, size_t room,
                                size_t *got)
{
    sps_status st = SPS_OK;
    size_t at = 0;

    while (at < room && !z->done) {
        const unsigned step = room - at < INT32_MAX ? (unsigned)(room - at)
                                                    : INT32_MAX;
        z->z.next_out = (Bytef *)buffer + at;
        z->z.avail_out = step;
        SPS_TRY(inflate_some(z));
        at += step - z->z.avail_out;
    }
    *got = at;
fail:
    return st;
}

static sps_status fill_member(void *source, char *buffer, size_t room,
                              size_t *got)
{
    spsi_zip *z = source;
    sps_status st;

    SPS_TRY((z->deflated ? fill_deflated : fill_stored)(z, buffer, room, got));
    z->crc = (uint32_t)crc32_z(z->crc, (const Bytef *)buffer, *got);
    z->produced += *got;
fail:
    return st;
}

/* ------------------------------------------------------------------ headers */

/* Reads sizes of 64 bits from the extra fields. */
static sps_status read_extra(spsi_zip *z, size_t length, uint64_t *packed)
{
    unsigned char p[65536 + 1];
    sps_status st;

    SPS_TRY(spsi_bytes_take(&z->file, p, length, "the header of a member"));
    for (size_t at = 0; at + 4 <= length;) {
        const size_t n = number(p + at + 2, 2);
        const unsigned char *field = p + at + 4, *end = field + n;

        if (at + 4 + n > length) break;
        if (number(p + at, 2) == 1) {
            z->wide = true;
            if (z->size == ABSENT && end - field >= 8) {
                z->size = wide_number(field);
                field += 8;
            }
            if (*packed == ABSENT && end - field >= 8)
                *packed = wide_number(field);
        }
        at += 4 + n;
    }
fail:
    return st;
}

static sps_status read_name(spsi_zip *z, size_t length)
{
    const size_t kept = length < sizeof z->name ? length : sizeof z->name - 1;
    sps_status st;

    SPS_TRY(spsi_bytes_take(&z->file, z->name, kept, "the name of a member"));
    z->name[kept] = '\0';
    for (char *p = z->name; *p; p++) if (*p < ' ' || *p > '~') *p = '?';
    SPS_TRY(spsi_bytes_skip(&z->file, length - kept, "the name of a member"));
fail:
    return st;
}

static sps_status start_inflate(spsi_zip *z)
{
    sps_context *ctx = z->file.f->ctx;
    sps_status st = SPS_OK;

    if (z->inflating) return inflateReset(&z->z) == Z_OK ? SPS_OK : SPS_EBUG;
    z->z = (z_stream){.zalloc = spsi_zlib_new, .zfree = spsi_zlib_free,
                      .opaque = ctx};
    SPS_REQUIRE(ctx, inflateInit2(&z->z, -15) == Z_OK, SPS_ENOMEM,
                "%s: not enough host memory to unpack the file", z->file.name);
    z->inflating = true;
fail:
    return st;
}

/* Returns an upper bound of the unpacked bytes, by the header and by what the
 * file can contain. */
static uint64_t bound_of(const spsi_zip *z)
{
    uint64_t most = z->file.bound;

    if (z->sized && z->left < most) most = z->left;
    if (z->deflated) most = most < UINT64_MAX / RATIO ? most * RATIO
                                                      : UINT64_MAX;
    return z->sized && z->size < most ? z->size : most;
}

static sps_status start_member(spsi_zip *z)
{
    spsi_bytes *m = &z->member;
    char *buffer = m->buffer;
    sps_status st = SPS_OK;

    *m = (spsi_bytes){.f = z->file.f, .fill = fill_member, .source = z,
                      .bound = bound_of(z), .buffer = buffer};
    snprintf(m->name, sizeof m->name, "%.80s: %s", z->file.name, z->name);
    if (!buffer) SPS_TRY(spsi_bytes_start(m));
    z->crc = 0;
    z->produced = 0;
    z->done = !z->deflated && z->left == 0;
    if (z->deflated) SPS_TRY(start_inflate(z));
fail:
    return st;
}

static sps_status refuse(const spsi_zip *z, const char *what)
{
    return spsi_fail(z->file.f->ctx, SPS_EPARSE, "%s: byte %llu: the member "
                     "%s %s", z->file.name,
                     (unsigned long long)z->file.offset, z->name, what);
}

static sps_status read_local(spsi_zip *z, const unsigned char *p)
{
    const uint32_t flags = number(p + 6, 2), method = number(p + 8, 2);
    uint64_t packed = number(p + 18, 4);
    sps_status st;

    z->promised = number(p + 14, 4);
    z->size = number(p + 22, 4);
    z->wide = false;
    z->sized = !(flags & 8);
    SPS_TRY(read_name(z, number(p + 26, 2)));
    SPS_TRY(read_extra(z, number(p + 28, 2), &packed));
    if (flags & 1) return refuse(z, "is encrypted (write it without)");
    if (method != STORED && method != DEFLATED)
        return refuse(z, "is compressed by a method other than deflate "
                      "(scipy.sparse.save_npz writes what is read here)");
    z->deflated = method == DEFLATED;
    z->left = packed;
    if (!z->sized && !z->deflated)
        return refuse(z, "has no size before its bytes (was it written to a "
                      "pipe? write it to a file, or compressed)");
    SPS_TRY(start_member(z));
fail:
    return st;
}

sps_status spsi_zip_next(spsi_zip *z, bool *more)
{
    const spsi_bytes *b = &z->file;
    unsigned char p[30];
    uint32_t magic;
    sps_status st;

    SPS_TRY(spsi_bytes_take(&z->file, p, 4, "the archive"));
    magic = number(p, 4);
    *more = magic == LOCAL;
    SPS_REQUIRE(b->f->ctx, *more || magic == RECORD || magic == END ||
                magic == WIDE_END, SPS_EPARSE, "%s: byte %llu: neither a "
                "member of the archive nor its directory (fetch or write the "
                "file again)", b->name, (unsigned long long)b->offset - 4);
    if (!*more) return SPS_OK;
    SPS_TRY(spsi_bytes_take(&z->file, p + 4, 26, "the header of a member"));
    SPS_TRY(read_local(z, p));
fail:
    return st;
}

/* Reads checksum and sizes that follow the member. */
static sps_status read_descriptor(spsi_zip *z)
{
    const size_t size = z->wide ? 16 : 8;
    unsigned char p[16];
    sps_status st;

    if (z->sized) return SPS_OK;
    SPS_TRY(spsi_bytes_take(&z->file, p, 4, "the end of a member"));
    if (number(p, 4) == DESCRIPTOR)
        SPS_TRY(spsi_bytes_take(&z->file, p, 4, "the end of a member"));
    z->promised = number(p, 4);
    SPS_TRY(spsi_bytes_take(&z->file, p, size, "the end of a member"));
    z->size = z->wide ? wide_number(p + 8) : number(p + 4, 4);
fail:
    return st;
}

static sps_status check_member(spsi_zip *z)
{
    const spsi_file *f = z->file.f;
    sps_status st;

    SPS_TRY(read_descriptor(z));
    SPS_REQUIRE(f->ctx, z->produced == z->size && z->crc == z->promised &&
                (!z->sized || z->left == 0), SPS_EPARSE, "%s: the member %s "
                "has %llu bytes with the checksum %08x, instead of %llu and "
                "%08x (fetch or write the file again)", f->name, z->name,
                (unsigned long long)z->produced, z->crc,
                (unsigned long long)z->size, z->promised);
fail:
    return st;
}

sps_status spsi_zip_end(spsi_zip *z)
{
    const char *p;
    size_t got;
    sps_status st;

    SPS_TRY(spsi_bytes_peek(&z->member, 1, &p, &got));
    SPS_REQUIRE(z->file.f->ctx, got == 0, SPS_EPARSE, "%s: more bytes follow "
                "the array (a wrong shape?)", z->member.name);
    SPS_TRY(check_member(z));
fail:
    return st;
}

sps_status spsi_zip_pass(spsi_zip *z)
{
    const char *p;
    size_t got = 1;
    sps_status st = SPS_OK;

    if (z->sized) return spsi_bytes_skip(&z->file, z->left, "a member");
    while (got > 0) {
        SPS_TRY(spsi_bytes_peek(&z->member, 1, &p, &got));
        spsi_bytes_consume(&z->member, got);
    }
    SPS_TRY(check_member(z));
fail:
    return st;
}

/* ---------------------------------------------------------------- writing */

static char *put(char *p, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++) *p++ = (char)(v >> 8 * i & 0xff);
    return p;
}

/* Writes the fields that local and central headers of ZIP have in common:
 * version 4.5, no flags, method 0 (stored), date 1 January 1980, checksum, the
 * mark that the sizes are in the extra field, and the lengths of the name and
 * of the extra field. */
static char *put_facts(char *p, const spsi_zip_entry *e, int extra)
{
    p = put(p, 45, 2);
    p = put(p, 0, 2 + 2 + 2);
    p = put(p, 0x21, 2);
    p = put(p, e->crc, 4);
    p = put(p, ABSENT, 4);
    p = put(p, ABSENT, 4);
    p = put(p, strlen(e->name), 2);
    return put(p, (uint64_t)extra, 2);
}

size_t spsi_zip_print_local(char *text, const spsi_zip_entry *e)
{
    char *p = put_facts(put(text, LOCAL, 4), e, 20);

    p = (char *)memcpy(p, e->name, strlen(e->name)) + strlen(e->name);
    p = put(p, 1, 2);
    p = put(p, 16, 2);
    p = put(p, e->size, 8);
    p = put(p, e->size, 8);
    return (size_t)(p - text);
}

size_t spsi_zip_print_record(char *text, const spsi_zip_entry *e)
{
    char *p = put_facts(put(put(text, RECORD, 4), 45, 2), e, 28);

    p = put(p, 0, 2 + 2 + 2);              /* comment, disk, attributes */
    p = put(p, 0, 4);
    p = put(p, ABSENT, 4);
    p = (char *)memcpy(p, e->name, strlen(e->name)) + strlen(e->name);
    p = put(p, 1, 2);
    p = put(p, 24, 2);
    p = put(p, e->size, 8);
    p = put(p, e->size, 8);
    p = put(p, e->at, 8);
    return (size_t)(p - text);
}

size_t spsi_zip_print_end(char *text, int count, uint64_t size, uint64_t at)
{
    const uint64_t n = (uint64_t)count;
    char *p = put(put(text, WIDE_END, 4), 44, 8);

    p = put(put(put(p, 45, 2), 45, 2), 0, 8);   /* versions, disks */
    p = put(put(put(put(p, n, 8), n, 8), size, 8), at, 8);
    p = put(put(put(p, WIDE_LOCATOR, 4), 0, 4), at + size, 8);
    p = put(p, 1, 4);
    p = put(put(put(p, END, 4), 0, 4), n, 2);
    p = put(put(put(p, n, 2), ABSENT, 4), ABSENT, 4);
    p = put(p, 0, 2);
    return (size_t)(p - text);
}
