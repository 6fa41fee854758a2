/* SPDX-License-Identifier: BSD-3-Clause */
/* move.c - fills blocks and copies into, out of, and between blocks.  Every
 * element is written once, by the thread that processes its row. */
#include <string.h>

#include "philox.h"
#include "cpu/rows.h"
#include "plan/kernel.h"

/* Returns whether X has no padding and can be treated as one long row. */
static bool dense(const sps_block *X)
{
    return X->ld == X->k;
}

typedef struct fill_job {
    sps_block *X;
    double value;
    uint64_t seed;
    int64_t first;           /* number of X's row 0 in the whole block, which
                                selects its random numbers */
} fill_job;

static void fill_rows(void *data, int64_t first, int64_t last)
{
    const fill_job *f = data;
    const sps_block *X = f->X;
    const int64_t rows = dense(X) ? 1 : last - first;
    const int64_t k = dense(X) ? (last - first) * X->k : X->k;

    for (int64_t i = first; i < first + rows; i++) {
        double *x = row_of(X, i);

        for (int64_t j = 0; j < k; j++) x[j] = f->value;
    }
}

sps_status spsi_cpu_fill(sps_block *X, double value)
{
    spsi_team_run(X->ctx, X->n, work_ns(X->n, X->k, 0), fill_rows,
                  &(fill_job){ .X = X, .value = value });
    return SPS_OK;
}

static void draw_rows(void *data, int64_t first, int64_t last)
{
    const fill_job *f = data;
    const int k = f->X->k;

    for (int64_t i = first; i < last; i++) {
        double *x = row_of(f->X, i);

        for (int j = 0; j + 1 < k; j += 2)
            spsi_philox_pair(f->seed, f->first + i, j / 2, &x[j], &x[j + 1]);
        if (k % 2)
            x[k - 1] = spsi_philox_at(f->seed, f->first + i, k - 1);
    }
}

/* Drawing a random number takes about 8 ns. */
sps_status spsi_cpu_random(sps_block *X, uint64_t seed, int64_t first)
{
    spsi_team_run(X->ctx, X->n, work_ns(X->n, 16 * X->k, 0), draw_rows,
                  &(fill_job){ .X = X, .seed = seed, .first = first });
    return SPS_OK;
}

/* Copies rows first .. last-1 from column-major data, in squares of 16 x 16 so
 * that cache lines are used completely. */
static void set_columns(const sps_block *X, const double *data, int64_t ld,
                        int64_t first, int64_t last)
{
    for (int64_t i0 = first; i0 < last; i0 += 16) {
        int64_t i1 = i0 + 16 < last ? i0 + 16 : last;

        for (int j0 = 0; j0 < X->k; j0 += 16) {
            int j1 = j0 + 16 < X->k ? j0 + 16 : X->k;

            for (int64_t i = i0; i < i1; i++)
                for (int j = j0; j < j1; j++)
                    row_of(X, i)[j] = data[j * ld + i];
        }
    }
}

static void get_columns(const sps_block *X, double *data, int64_t ld,
                        int64_t first, int64_t last)
{
    for (int64_t i0 = first; i0 < last; i0 += 16) {
        int64_t i1 = i0 + 16 < last ? i0 + 16 : last;

        for (int j = 0; j < X->k; j++)
            for (int64_t i = i0; i < i1; i++)
                data[j * ld + i] = row_of(X, i)[j];
    }
}

/* Operands of a copy between a block and the caller's array. */
typedef struct outside_job {
    const sps_block *X;
    double *data;
    int64_t ld;
    sps_order order;
} outside_job;

static void set_rows(void *data, int64_t first, int64_t last)
{
    const outside_job *o = data;

    if (o->order == SPS_COL_MAJOR)
        set_columns(o->X, o->data, o->ld, first, last);
    else
        for (int64_t i = first; i < last; i++)
            memcpy(row_of(o->X, i), o->data + i * o->ld,
                   (size_t)o->X->k * sizeof(double));
}

static void get_rows(void *data, int64_t first, int64_t last)
{
    const outside_job *o = data;

    if (o->order == SPS_COL_MAJOR)
        get_columns(o->X, o->data, o->ld, first, last);
    else
        for (int64_t i = first; i < last; i++)
            memcpy(o->data + i * o->ld, row_of(o->X, i),
                   (size_t)o->X->k * sizeof(double));
}

static sps_status copy_outside(spsi_team_fn *rows, outside_job *o,
                               sps_place place)
{
    const sps_block *X = o->X;
    sps_status st = SPS_OK;

    SPS_REQUIRE(X->ctx, place != SPS_CUDA, SPS_EINVAL,
                "device memory was given to a context of the host: copy it to "
                "the host first, or make the context with SPS_CUDA");
    spsi_team_run(X->ctx, X->n, work_ns(X->n, 2 * X->k, 0), rows, o);
fail:
    return st;
}

sps_status spsi_cpu_get(const sps_block *X, double *data, int64_t ld,
                        sps_order order, sps_place place)
{
    return copy_outside(get_rows, &(outside_job){ X, data, ld, order }, place);
}

sps_status spsi_cpu_set(sps_block *X, const double *data, int64_t ld,
                        sps_order order, sps_place place)
{
    return copy_outside(set_rows, &(outside_job){ X, (double *)(uintptr_t)data,
                                                  ld, order }, place);
}

/* Operands of a copy between blocks: of column or row index[j] of one and
 * column or row j of the other. */
typedef struct inside_job {
    const sps_block *X;
    const int32_t *index;
    sps_block *Y;
} inside_job;

static void gather_rows(void *data, int64_t first, int64_t last)
{
    const inside_job *p = data;

    for (int64_t i = first; i < last; i++)
        for (int j = 0; j < p->Y->k; j++)
            row_of(p->Y, i)[j] = row_of(p->X, i)[p->index[j]];
}

static void scatter_rows(void *data, int64_t first, int64_t last)
{
    const inside_job *p = data;

    for (int64_t i = first; i < last; i++)
        for (int j = 0; j < p->X->k; j++)
            row_of(p->Y, i)[p->index[j]] = row_of(p->X, i)[j];
}

/* Row i of X, whose elements may be floats. */
static char *bytes_of(const sps_block *X, int64_t i)
{
    return (char *)X->data + (size_t)(i * X->ld) * spsi_dtype_size(X->dtype);
}

static void take_rows(void *data, int64_t first, int64_t last)
{
    const inside_job *p = data;

    for (int64_t i = first; i < last; i++)
        memcpy(bytes_of(p->Y, i), bytes_of(p->X, p->index[i]),
               (size_t)p->Y->k * spsi_dtype_size(p->Y->dtype));
}

static void put_rows(void *data, int64_t first, int64_t last)
{
    const inside_job *p = data;

    for (int64_t i = first; i < last; i++)
        memcpy(bytes_of(p->Y, p->index[i]), bytes_of(p->X, i),
               (size_t)p->X->k * spsi_dtype_size(p->X->dtype));
}

/* Copies all of the block `whole`, which is X or Y. */
static sps_status copy_inside(spsi_team_fn *rows, const sps_block *whole,
                              const sps_block *X, const int32_t *index,
                              sps_block *Y)
{
    spsi_team_run(X->ctx, whole->n, work_ns(whole->n, 2 * whole->k, 0), rows,
                  &(inside_job){ X, index, Y });
    return SPS_OK;
}

sps_status spsi_cpu_gather(const sps_block *X, const int *index, sps_block *Y)
{
    return copy_inside(gather_rows, Y, X, index, Y);
}

sps_status spsi_cpu_scatter(const sps_block *X, const int *index, sps_block *Y)
{
    return copy_inside(scatter_rows, X, X, index, Y);
}

sps_status spsi_cpu_take_rows(const sps_block *X, const int32_t *index,
                              sps_block *Y)
{
    return copy_inside(take_rows, Y, X, index, Y);
}

sps_status spsi_cpu_put_rows(const sps_block *X, const int32_t *index,
                             sps_block *Y)
{
    return copy_inside(put_rows, X, X, index, Y);
}
