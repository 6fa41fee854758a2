/* SPDX-License-Identifier: BSD-3-Clause */
/* mtx_store.c - stores the entries of a Matrix Market file between text and
 * result: 8 bytes of indices and 0, 8 or 16 bytes of values for each. */
#include <string.h>

#include "io/mtx.h"

sps_status spsi_mtx_add_segment(spsi_mtx *m, int64_t pieces,
                                spsi_mtx_segment **s_p)
{
    sps_status st = SPS_OK;
    spsi_mtx_segment *s;

    if (m->segments == m->room) {
        int64_t room = m->room ? 2 * m->room : 16;
        SPS_TRY(spsi_resize(m->ctx, (size_t)room * sizeof *m->segment,
                            (void **)&m->segment));
        m->room = room;
    }
    s = &m->segment[m->segments++];
    memset(s, 0, sizeof *s);
    SPS_TRY(SPS_NEW(m->ctx, pieces, &s->piece));
    s->pieces = pieces;
    *s_p = s;
fail:
    return st;
}

sps_status spsi_mtx_give_room(spsi_mtx *m, spsi_mtx_segment *s,
                              int64_t capacity, bool indices)
{
    size_t n = (size_t)capacity;       /* bounded by the bytes of a batch, or
                                          by a result that fits memory */
    sps_status st = SPS_OK;

    s->capacity = capacity;
    if (indices) {
        SPS_TRY(spsi_new_raw(m->ctx, n * sizeof *s->row, (void **)&s->row));
        SPS_TRY(spsi_new_raw(m->ctx, n * sizeof *s->col, (void **)&s->col));
    }
    if (m->words > 0)
        SPS_TRY(spsi_new_raw(m->ctx, n * (size_t)m->words * sizeof *s->val,
                             (void **)&s->val));
fail:
    return st;
}

static void free_segment(spsi_mtx *m, spsi_mtx_segment *s)
{
    for (int64_t i = 0; i < s->pieces; i++)
        spsi_free(m->ctx, s->piece[i].line);
    spsi_free(m->ctx, s->piece);
    spsi_free(m->ctx, s->row);
    spsi_free(m->ctx, s->col);
    spsi_free(m->ctx, s->val);
}

void spsi_mtx_drop(spsi_mtx *m)
{
    for (int64_t i = 0; i < m->segments; i++) free_segment(m, &m->segment[i]);
    spsi_free(m->ctx, m->segment);
    m->segment = NULL;
    m->segments = m->room = 0;
}

void spsi_mtx_free(spsi_mtx **m_p)
{
    spsi_mtx *m = *m_p;

    if (!m) return;
    spsi_mtx_drop(m);
    spsi_free(m->ctx, m);
    *m_p = NULL;
}

int64_t spsi_mtx_line(const spsi_mtx *m, int64_t entry)
{
    for (int64_t k = 0; k < m->segments; k++)
        for (int64_t i = 0; i < m->segment[k].pieces; i++) {
            const spsi_mtx_piece *p = &m->segment[k].piece[i];
            if (entry < p->count)
                return p->first_line + (p->line ? p->line[entry] : entry);
            entry -= p->count;
        }
    return m->line;
}

/* Advances (i, j) to the next value of an array file, column by column; with a
 * symmetry only the lower triangle is stored, of a skew-symmetric one without
 * diagonal. */
static void advance(const spsi_mtx_header *h, int32_t *i, int32_t *j)
{
    if (++*i < h->nrow) return;
    ++*j;
    *i = h->symmetry == SPSI_MTX_GENERAL ? 0
       : h->symmetry == SPSI_MTX_SKEW ? *j + 1 : *j;
}

/* Appends value p of `from`, entry number `number` of the file, to `to` as
 * entry (i, j), unless it is zero. */
static sps_status place(spsi_mtx *m, const spsi_mtx_segment *from, int64_t p,
                        int32_t i, int32_t j, int64_t number,
                        spsi_mtx_segment *to)
{
    double im, re = spsi_mtx_value(m, from, p, &im);
    spsi_mtx_piece *piece = to->piece;

    if (i == j && m->header.symmetry == SPSI_MTX_HERMITIAN && im != 0)
        return spsi_mtx_complain(m, SPSI_MTX_REAL_DIAGONAL, "\n",
                                 spsi_mtx_line(m, number));
    if (re == 0 && im == 0) return SPS_OK;
    to->row[piece->count] = i;
    to->col[piece->count] = j;
    memcpy(to->val + m->words * piece->count, from->val + m->words * p,
           (size_t)m->words * sizeof *to->val);
    piece->count++;
    piece->diagonal += i == j;
    return SPS_OK;
}

sps_status spsi_mtx_expand(spsi_mtx *m)
{
    sps_status st;
    spsi_mtx_segment *to;
    int64_t number = 0;
    int32_t i = m->header.symmetry == SPSI_MTX_SKEW ? 1 : 0, j = 0;

    SPS_TRY(spsi_mtx_add_segment(m, 1, &to));
    SPS_TRY(spsi_mtx_give_room(m, to, m->stored, true));
    for (const spsi_mtx_segment *s = m->segment; s < to; s++)
        for (int64_t k = 0; k < s->pieces; k++) {
            const spsi_mtx_piece *piece = &s->piece[k];
            for (int64_t p = 0; p < piece->count; p++, number++) {
                SPS_TRY(place(m, s, piece->at + p, i, j, number, to));
                advance(&m->header, &i, &j);
            }
        }
    to->piece->row_high = (int32_t)m->header.nrow - 1;
    to->piece->col_high = (int32_t)m->header.ncol - 1;
    m->diagonal = to->piece->diagonal;
    m->stored = to->piece->count;
    for (spsi_mtx_segment *s = m->segment; s < to; s++) free_segment(m, s);
    m->segment[0] = *to;
    m->segments = 1;
fail:
    return st;
}
