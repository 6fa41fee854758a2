/* SPDX-License-Identifier: BSD-3-Clause */
/* shared.c - one file that several processes write together. */
#include "io/stream/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/comm.h"


static sps_status fail_errno(const spsi_shared *s, const char *doing)
{
    char text[128];

    return spsi_fail(s->ctx, SPS_EIO, "%s: %s: %s", s->name, doing,
                     strerror_r(errno, text, sizeof text));
}

/* Sends the temporary name from process 0 to all. */
static sps_status tell_name(spsi_shared *s)
{
    const int size = spsi_comm_size(s->ctx);
    sps_message from = { 0, s->file.temporary, sizeof s->file.temporary };
    sps_message *to = NULL;
    sps_status st = SPS_OK;

    if (spsi_comm_rank(s->ctx) > 0)
        return spsi_comm_exchange(s->ctx, NULL, 0, &from, 1);
    SPS_TRY(SPS_NEW(s->ctx, size, &to));
    for (int r = 1; r < size; r++) {
        to[r - 1] = from;
        to[r - 1].peer = r;
    }
    SPS_TRY(spsi_comm_exchange(s->ctx, to, size - 1, NULL, 0));
fail:
    spsi_free(s->ctx, to);
    return st;
}

/* Returns the number of the file in its file system, cut so that sums of it are
 * exact; 0 if it is not open. */
static double identity(int fd)
{
    struct stat st;

    return fd >= 0 && fstat(fd, &st) == 0
        ? (double)((uint64_t)st.st_ino % (UINT64_C(1) << 38) + 1) : 0;
}

/* Process 0 creates the file.  *plain becomes false if `path` is standard
 * output, a device or a pipe. */
static sps_status create(spsi_shared *s, const char *path, bool *plain)
{
    double sum;
    sps_status st = SPS_OK;

    *plain = true;
    if (spsi_comm_rank(s->ctx) == 0) {
        s->open = spsi_replace_open_named(&s->file, path, plain);
        if (!s->open && *plain) return fail_errno(s, s->file.doing);
    }
    sum = !*plain;
    SPS_TRY(spsi_reduce(s->ctx, &sum, 1));
    *plain = sum == 0;
fail:
    return st;
}

/* The other processes open the file.  *same becomes whether all have opened the
 * same file. */
static sps_status join(spsi_shared *s, bool *same)
{
    const bool first = spsi_comm_rank(s->ctx) == 0;
    double mine, sum, differs;
    sps_status st;

    SPS_TRY(tell_name(s));
    if (!first) {
        s->fd = open(s->file.temporary, O_WRONLY | O_CLOEXEC);
        s->file.temporary[0] = '\0';       /* process 0 removes it */
        s->open = s->fd >= 0;
    }
    mine = sum = identity(first ? s->file.fd : s->fd);
    SPS_TRY(spsi_reduce(s->ctx, &sum, 1));
    differs = sum != spsi_comm_size(s->ctx) * mine;
    SPS_TRY(spsi_reduce(s->ctx, &differs, 1));
    *same = differs == 0;
fail:
    return st;
}

sps_status spsi_shared_open(sps_context *ctx, const char *path, spsi_shared *s)
{
    bool good;
    sps_status st;

    *s = (spsi_shared){ .ctx = ctx, .name = path, .fd = -1 };
    s->file.fd = -1;
    SPS_TRY(create(s, path, &good));
    SPS_REQUIRE(ctx, good, SPS_EUNFIT, "%s: several processes can write only "
                "regular files", path);
    SPS_TRY(join(s, &good));
    SPS_REQUIRE(ctx, good, SPS_EUNFIT, "%s: the processes do not see the same "
                "folder under this name", path);
fail:
    return st;
}

sps_status spsi_shared_put(spsi_shared *s, const void *text, size_t length,
                           uint64_t at)
{
    const int fd = s->fd >= 0 ? s->fd : s->file.fd;
    const char *p = text;

    while (length > 0) {
        const ssize_t n = pwrite(fd, p, length, (off_t)at);

        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fail_errno(s, "cannot write");
        p += n;
        at += (uint64_t)n;
        length -= (size_t)n;
    }
    return SPS_OK;
}

sps_status spsi_shared_place(spsi_shared *s, int count, double *lengths,
                             double *starts)
{
    const int size = spsi_comm_size(s->ctx), own = spsi_comm_rank(s->ctx);
    const int64_t all = (int64_t)size * count;
    double *table = NULL;      /* table[r * count + i]: process r, section i */
    sps_status st;

    SPS_TRY(SPS_NEW(s->ctx, all, &table));
    memcpy(table + (int64_t)own * count, lengths,
           (size_t)count * sizeof *table);
    SPS_TRY(spsi_reduce_long(s->ctx, table, all));
    for (int i = 0; i < count; i++) {
        starts[i] = lengths[i] = 0;
        for (int r = 0; r < size; r++) {
            if (r == own) starts[i] = lengths[i];
            lengths[i] += table[(int64_t)r * count + i];
        }
    }
fail:
    spsi_free(s->ctx, table);
    return st;
}

sps_status spsi_shared_close(spsi_shared *s)
{
    double all = 0;
    sps_status st = SPS_OK;

    if (s->fd >= 0) {
        if (fsync(s->fd) != 0) return fail_errno(s, "cannot flush to the disk");
        s->open = false;
        if (close(s->fd) != 0) return fail_errno(s, "cannot close");
    }
    SPS_TRY(spsi_reduce(s->ctx, &all, 1));          /* all have written */
    if (s->fd >= 0) return SPS_OK;
    s->open = false;
    if (!spsi_replace_close(&s->file)) return fail_errno(s, s->file.doing);
fail:
    return st;
}

void spsi_shared_abandon(spsi_shared *s)
{
    if (s->open && s->fd >= 0) (void)close(s->fd);
    else if (s->open) spsi_replace_abandon(&s->file);
    s->open = false;
}
