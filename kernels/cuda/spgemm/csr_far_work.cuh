/* SPDX-License-Identifier: BSD-3-Clause */
/* csr_far_work.cuh - what the threads of the host do in a product by panels
 * (csr_multiply_far.cu): they copy rows of A to page-locked memory and rows of
 * C from there, piece by piece; when there is nothing to copy most of them
 * compute rows of C themselves, the last ones first, while the device begins
 * with the first ones.  A quarter of the threads only copy: otherwise panels
 * would wait until a thread has finished its rows, and the device with them,
 * and the driver would find no idle core for its calls.
 *
 * Which side computes a row depends on their rates, its bits do not. */
#ifndef SPS_CUDA_CSR_FAR_WORK_CUH
#define SPS_CUDA_CSR_FAR_WORK_CUH

#include "cpu/known_rows.h"
#include "cuda/spgemm/csr_far_test.h"

#include <condition_variable>
#include <cstring>
#include <mutex>
#include <unistd.h>

namespace {

constexpr size_t piece = (size_t)1 << 20;
constexpr size_t some_rows = piece / 4; /* bytes of the rows of C that a thread
                                           computes before it looks for
                                           copies */

/* Two arrays that are copied in pieces. */
struct load {
    char *to[2];
    const char *from[2];
    size_t bytes[2];
    int64_t next, done, pieces;    /* pieces that are claimed and copied, and
                                      their number */
};

constexpr int entries = 2, exits = 3;    /* slots for panels of A, and of C */

/* The lock is for all members but C, entry and rows. */
struct far_work {
    std::mutex lock;
    std::condition_variable change;
    load all[exits + entries];
    int64_t front, back;       /* rows front .. back - 1 of C are not claimed */
    bool over;
    unsigned late;             /* stages that tests delay */
    const sps_csr *C;
    size_t entry;              /* bytes of a column and a value */
    sps_known_rows *rows;      /* NULL: the host computes none */
};

/* A piece `at` of a load, or, if `of` is NULL, rows at .. end - 1 of C. */
struct task {
    load *of;
    int64_t at, end;
};

int64_t pieces_of(size_t bytes)
{
    return (int64_t)((bytes + piece - 1) / piece);
}

void copy_piece(const load &l, int64_t at)
{
    const int64_t first = pieces_of(l.bytes[0]);
    const int i = at < first ? 0 : 1;
    const size_t begin = (size_t)(at - i * first) * piece;
    const size_t left = l.bytes[i] - begin;

    memcpy(l.to[i] + begin, l.from[i] + begin, left < piece ? left : piece);
}

/* Returns the first of some of the last rows that nobody has claimed. */
int64_t last_rows(const far_work &w)
{
    size_t bytes = 0;
    int64_t i = w.back;

    for (; i > w.front && bytes < some_rows; i--)
        bytes += sizeof *w.C->rowptr + w.entry * (size_t)(w.C->rowptr[i] -
                                                          w.C->rowptr[i - 1]);
    return i;
}

bool claim(far_work &w, bool rows, task *t)
{
    for (load &l : w.all)
        if (l.next < l.pieces) {
            *t = {&l, l.next++, 0};
            return true;
        }
    if (!rows || !w.rows || w.front == w.back) return false;
    *t = {NULL, last_rows(w), w.back};
    w.back = t->at;
    return true;
}

void delay(const far_work &w, const task &t)
{
    const unsigned stage = !t.of ? SPS_FAR_HOST
                           : t.of < w.all + exits ? SPS_FAR_LEAVE
                                                  : SPS_FAR_ENTER;

    if (w.late & stage) usleep(10000);
}

/* Works until the load `until` has been copied, without it until the end; rows
 * of C only if `rows`. */
void work(far_work &w, bool rows, const load *until)
{
    std::unique_lock<std::mutex> held(w.lock);
    task t;

    while (until ? until->done < until->pieces : !w.over) {
        if (!claim(w, rows, &t)) {
            w.change.wait(held);
            continue;
        }
        held.unlock();
        delay(w, t);
        if (t.of) copy_piece(*t.of, t.at);
        else spsi_cpu_known_rows_make(w.rows, t.at, t.end);
        held.lock();
        if (t.of && ++t.of->done == t.of->pieces) w.change.notify_all();
    }
}

/* Begins the copies of l, whose earlier ones are done. */
void begin_copies(far_work &w, load &l)
{
    std::lock_guard<std::mutex> held(w.lock);

    l.next = l.done = 0;
    l.pieces = pieces_of(l.bytes[0]) + pieces_of(l.bytes[1]);
    w.change.notify_all();
}

void end_work(far_work &w)
{
    std::lock_guard<std::mutex> held(w.lock);

    w.over = true;
    w.change.notify_all();
}

} // namespace

#endif
