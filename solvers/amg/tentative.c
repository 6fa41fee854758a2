/* SPDX-License-Identifier: BSD-3-Clause */
/* tentative.c - the tentative prolongator T of a level.
 *
 * For each aggregate T contains the near-null vectors restricted to its rows,
 * orthonormal in the norm of D: with S^-1 B = Q R on the rows of an aggregate,
 * B the near-null vectors, T = S Q there, and R are the rows of the next
 * level's near-null vectors, so that T R = B.  A vector is dropped if its
 * remainder after orthogonalisation against those before it is below
 * SPS_COARSE_RANK times the longest vector; R still represents it.
 * Gram-Schmidt is applied twice.
 *
 * Aggregates share no rows: each is processed by itself, in place. */
#include "solvers/amg/amg.h"

#include <math.h>

typedef struct job {
    amg_level *l;
    int64_t *first;           /* aggregates + 1 elements: where the nodes of
                                 aggregate a begin in member */
    int32_t *member;
    double *Q;                /* n x q, row-major */
    double *R;                /* q x q for each aggregate, row-major */
    bool again;
    sps_csr *T;
} job;

/* Lists nodes by aggregate, ascending, by a counting sort. */
static sps_status list_members(sps_context *ctx, job *j)
{
    const amg_level *l = j->l;
    int64_t *next = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, l->aggregates + 2, &j->first));
    SPS_TRY(SPS_NEW(ctx, l->aggregates + 1, &next));
    SPS_TRY(SPS_NEW(ctx, l->nodes + 1, &j->member));
    for (int64_t v = 0; v < l->nodes; v++)
        if (l->aggregate[v] >= 0) j->first[l->aggregate[v] + 1]++;
    for (int64_t a = 0; a < l->aggregates; a++) {
        j->first[a + 1] += j->first[a];
        next[a] = j->first[a];
    }
    for (int64_t v = 0; v < l->nodes; v++)
        if (l->aggregate[v] >= 0)
            j->member[next[l->aggregate[v]]++] = (int32_t)v;
fail:
    spsi_free(ctx, next);
    return st;
}

static void scale_near(void *data, int64_t first, int64_t last)
{
    const job *j = data;
    const int q = j->l->vectors;

    for (int64_t i = first; i < last; i++)
        for (int c = 0; c < q; c++)
            j->Q[i * q + c] = j->l->scale[i] > 0
                                  ? j->l->near[i * q + c] / j->l->scale[i]
                                  : 0;
}

/* Returns the dot product of columns x and y of Q on the rows of aggregate
 * a. */
static double dot(const job *j, int64_t a, int x, int y)
{
    const int q = j->l->vectors;
    double sum = 0;

    for (int64_t m = j->first[a]; m < j->first[a + 1]; m++) {
        const int32_t v = j->member[m];

        for (int64_t i = j->l->start[v]; i < j->l->start[v + 1]; i++)
            sum += j->Q[i * q + x] * j->Q[i * q + y];
    }
    return sum;
}

/* Replaces column y of Q by f (y - h x), with column x of Q, on the rows of
 * aggregate a. */
static void change(const job *j, int64_t a, int x, double h, int y, double f)
{
    const int q = j->l->vectors;

    for (int64_t m = j->first[a]; m < j->first[a + 1]; m++) {
        const int32_t v = j->member[m];

        for (int64_t i = j->l->start[v]; i < j->l->start[v + 1]; i++)
            j->Q[i * q + y] = f * (j->Q[i * q + y] - h * j->Q[i * q + x]);
    }
}

static bool has(const amg_level *l, int64_t a, int column)
{
    return l->kept[a] >> column & 1;
}

/* Computes Q and R of aggregate a. */
static void orthonormalise(const job *j, int64_t a)
{
    amg_level *l = j->l;
    const int q = l->vectors;
    double *R = j->R + a * q * q, most = 0;

    for (int y = 0; y < q; y++) most = fmax(most, sqrt(dot(j, a, y, y)));
    if (!j->again) l->kept[a] = 0;
    for (int y = 0; y < q; y++) {
        double length;

        for (int pass = 0; pass < 2; pass++)
            for (int x = 0; x < y; x++) {
                const double h = has(l, a, x) ? dot(j, a, x, y) : 0;

                R[x * q + y] += h;
                if (has(l, a, x)) change(j, a, x, h, y, 1);
            }
        length = sqrt(dot(j, a, y, y));
        if (!j->again && length > SPS_COARSE_RANK * most) l->kept[a] |= 1ull << y;
        if (!has(l, a, y)) continue;
        R[y * q + y] = length;
        change(j, a, y, 0, y, length > 0 ? 1 / length : 0);
    }
}

static void do_aggregates(void *data, int64_t first, int64_t last)
{
    for (int64_t a = first; a < last; a++) orthonormalise(data, a);
}

static int count_bits(uint64_t x)
{
    int count = 0;

    for (; x; x &= x - 1) count++;
    return count;
}

static void number_columns(amg_level *l)
{
    for (int64_t a = 0; a < l->aggregates; a++)
        l->place[a + 1] = l->place[a] + count_bits(l->kept[a]);
}

/* Writes rows of T: S Q, in the columns of the node's aggregate. */
static void fill_rows(void *data, int64_t first, int64_t last)
{
    const job *j = data;
    const amg_level *l = j->l;
    const int q = l->vectors;

    for (int64_t v = first; v < last; v++) {
        const int32_t a = l->aggregate[v];

        for (int64_t i = l->start[v]; a >= 0 && i < l->start[v + 1]; i++) {
            int64_t to = j->T->rowptr[i];
            int32_t column = (int32_t)l->place[a];

            for (int y = 0; y < q; y++) {
                if (!has(l, a, y)) continue;
                j->T->col[to] = column++;
                ((double *)j->T->val)[to++] = l->scale[i] * j->Q[i * q + y];
            }
        }
    }
}

static sps_status make_rows(sps_context *ctx, job *j)
{
    const amg_level *l = j->l;
    int64_t nnz = 0;
    sps_status st;

    for (int64_t v = 0; v < l->nodes; v++)
        if (l->aggregate[v] >= 0)
            nnz += (l->start[v + 1] - l->start[v]) *
                   (l->place[l->aggregate[v] + 1] - l->place[l->aggregate[v]]);
    SPS_TRY(sps_csr_create(ctx, l->n, l->place[l->aggregates], nnz, SPS_F64,
                           &j->T));
    for (int64_t v = 0; v < l->nodes; v++) {
        const int32_t a = l->aggregate[v];

        for (int64_t i = l->start[v]; i < l->start[v + 1]; i++)
            j->T->rowptr[i + 1] = j->T->rowptr[i] +
                                  (a < 0 ? 0 : l->place[a + 1] - l->place[a]);
    }
    spsi_team_run(ctx, l->nodes, 4 * nnz, fill_rows, j);
fail:
    return st;
}

/* Writes the next level's near-null vectors: the rows of R that are kept. */
static void fill_near(const job *j, double *near)
{
    const amg_level *l = j->l;
    const int q = l->vectors;

    for (int64_t a = 0; a < l->aggregates; a++) {
        double *to = near + l->place[a] * q;

        for (int x = 0; x < q; x++) {
            if (!has(l, a, x)) continue;
            for (int y = 0; y < q; y++) *to++ = j->R[(a * q + x) * q + y];
        }
    }
}

sps_status spsi_amg_tentative(sps_context *ctx, amg_level *l, bool again,
                              sps_csr **T_p, double **near_p)
{
    const int64_t q = l->vectors;
    job j = { .l = l, .again = again };
    double *near = NULL;
    sps_status st;

    SPS_TRY(list_members(ctx, &j));
    SPS_TRY(SPS_NEW(ctx, l->n * q + 1, &j.Q));
    SPS_TRY(SPS_NEW(ctx, l->aggregates * q * q + 1, &j.R));
    spsi_team_run(ctx, l->n, l->n * q, scale_near, &j);
    SPS_TRY(spsi_team_run_in_time(ctx, l->aggregates, 4 * l->n * q * q,
                                  do_aggregates, &j, "amg"));
    number_columns(l);
    SPS_TRY(make_rows(ctx, &j));
    SPS_TRY(SPS_NEW(ctx, l->place[l->aggregates] * q + 1, &near));
    fill_near(&j, near);
    *T_p = j.T;
    j.T = NULL;
    *near_p = near;
fail:
    sps_csr_destroy(ctx, &j.T);
    spsi_free(ctx, j.first);
    spsi_free(ctx, j.member);
    spsi_free(ctx, j.Q);
    spsi_free(ctx, j.R);
    return st;
}
