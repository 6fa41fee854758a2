/* SPDX-License-Identifier: BSD-3-Clause */
/* csr_multiply_values.h - computes the values of rows of C = A B.  The file is
 * included once for each type of values, with these macros:
 *
 *   REAL          the type of the values of A, B and C
 *   FMA           its fused multiply-add
 *   NAME(verb)    the name of a function for this type
 *   BODY(verb)    the same with _of (isa.h)
 *
 * c_ij is the sum of a_ik b_kj over ascending k, a chain of fused multiply-adds
 * that starts from -0 (so that the first product is kept as it is, with its
 * sign).  Both kinds of row (csr_multiply_pattern.h), any division into threads
 * and both places, CPU and GPU, have the same chain, hence the same bits.  Each
 * product reads an entry of B and its column or slot, and reads and writes a
 * sum in the L1 cache. */

INLINE void NAME(sum_slots)(const sps_csr *A, const sps_csr *B, int64_t i,
                            const product_room *w, REAL *val)
{
    const REAL *a = A->val, *b = B->val;
    const int32_t *slot = w->slot;

    for (int64_t s = 0; s < w->count; s++) val[s] = (REAL)-0.0;
    for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
        const int64_t q = B->rowptr[A->col[p]];
        const int64_t n = B->rowptr[A->col[p] + 1] - q;
        const REAL factor = a[p];

        for (int64_t t = 0; t < n; t++)
            val[slot[t]] = FMA(factor, b[q + t], val[slot[t]]);
        slot += n;
    }
}

INLINE void NAME(sum_window)(const sps_csr *A, const sps_csr *B, int64_t i,
                             const product_room *w, REAL *val)
{
    const REAL *a = A->val, *b = B->val;
    const int32_t zero = w->span.first;
    REAL *sum = w->sum;

    for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
        const int64_t end = B->rowptr[A->col[p] + 1];
        const REAL factor = a[p];

        for (int64_t q = B->rowptr[A->col[p]]; q < end; q++) {
            REAL *c = sum + (B->col[q] - zero);

            *c = FMA(factor, b[q], *c);
        }
    }
    for (int64_t s = 0; s < w->count; s++) {
        val[s] = sum[w->col[s] - zero];
        sum[w->col[s] - zero] = (REAL)-0.0;
    }
}

INLINE void NAME(sum_row)(const sps_csr *A, const sps_csr *B, int64_t i,
                          const product_room *w, REAL *val)
{
    if (w->window)
        NAME(sum_window)(A, B, i, w, val);
    else
        NAME(sum_slots)(A, B, i, w, val);
}

/* Makes the columns and values of row i. */
INLINE void NAME(make_row)(const sps_csr *A, const sps_csr *B, int64_t i,
                           product_room *w, int32_t *col, REAL *val)
{
    const int32_t *before = w->col;
    int32_t move;

    if (repeats(A, B, i, w, &move)) {
        for (int64_t s = 0; s < w->count; s++) col[s] = before[s] + move;
        w->span.first += move;
        w->span.last += move;
    } else {
        w->span = span_of(A, B, i);
        w->window = is_window(w->span);
        w->count = 0;
        if (w->span.products > 0 && w->window)
            window_pattern(A, B, i, w, col);
        else if (w->span.products > 0)
            hash_pattern(A, B, i, w, col);
    }
    w->row = i;
    w->col = col;
    if (w->span.products > 0) NAME(sum_row)(A, B, i, w, val);
}

/* Computes the values of row i, whose columns are w->col.  Returns false if
 * these are not the columns of the product. */
INLINE bool NAME(renew_row)(const sps_csr *A, const sps_csr *B, int64_t i,
                            product_room *w, const int32_t *col, int64_t count,
                            REAL *val)
{
    const int32_t *before = w->col;
    int32_t move;
    bool same = repeats(A, B, i, w, &move) && count == w->count;

    for (int64_t s = 0; same && s < count; s++)
        same = col[s] == before[s] + move;
    w->col = col;
    w->count = count;
    w->row = -2;
    if (same) {
        w->span.first += move;
        w->span.last += move;
    } else {
        w->span = span_of(A, B, i);
        w->window = is_window(w->span);
        if (w->span.products == 0) return count == 0;
        if (w->window ? !window_known(A, B, i, w) : !hash_known(A, B, i, w))
            return false;
    }
    w->row = i;
    NAME(sum_row)(A, B, i, w, val);
    return true;
}

INLINE void BODY(make_rows)(void *data, int64_t first, int64_t last)
{
    const multiply_job *j = data;
    product_room w = room_of(j);

    for (int64_t r = first; r < last; r++) {
        const int64_t i = j->row + r, at = j->start[i] - j->start[j->row];

        NAME(make_row)(j->A, j->B, i, &w, j->col + at, (REAL *)j->val + at);
        if (j->count) j->count[i] = w.count;
    }
}
CLONED(static, NAME(make_rows),
       (void *data, int64_t first, int64_t last),
       (data, first, last))

INLINE void BODY(renew_rows)(void *data, int64_t first, int64_t last)
{
    multiply_job *j = data;
    product_room w = room_of(j);

    for (int64_t i = first; i < last; i++) {
        const int64_t at = j->C->rowptr[i], n = j->C->rowptr[i + 1] - at;

        if (!NAME(renew_row)(j->A, j->B, i, &w, j->C->col + at, n,
                             (REAL *)j->C->val + at))
            spsi_team_least(&j->bad, i);
    }
}
CLONED(static, NAME(renew_rows),
       (void *data, int64_t first, int64_t last),
       (data, first, last))

#undef REAL
#undef FMA
#undef NAME
#undef BODY
