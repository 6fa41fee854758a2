/* SPDX-License-Identifier: BSD-3-Clause */
/* precond.c - creates preconditioners by name or from callbacks. */
#include "driver/precond.h"

#include <stdio.h>
#include <string.h>

#include "core/comm.h"
#include "core/options.h"
#include "operator/operator_ranks.h"
#include "operator/reorder.h"

const sps_precond_type *spsi_precond_type(const char *name)
{
    for (int i = 0; spsi_preconds[i]; i++)
        if (!strcmp(spsi_preconds[i]->name, name)) return spsi_preconds[i];
    return NULL;
}

const sps_precond_type *spsi_precond_always(void)
{
    for (int i = 0; spsi_preconds[i]; i++)
        if (spsi_preconds[i]->always) return spsi_preconds[i];
    return NULL;
}

sps_status spsi_precond_new(sps_context *ctx, const sps_precond_type *type,
                            int64_t n, sps_precond **M_p)
{
    sps_status st = spsi_new(ctx, type->size, (void **)M_p);

    if (st != SPS_OK) return st;
    (*M_p)->type = type;
    (*M_p)->ctx = (*M_p)->own.ctx = ctx;
    (*M_p)->n = n;
    ctx->live++;
    return SPS_OK;
}

/* If each process has an M of its own, begins work in which sums are those of
 * this process only.  Returns the communicator for spsi_comm_back. */
static sps_comm *apart(const sps_precond *M)
{
    return M->of_block || M->type->ranks == SPS_RANKS_OWN
        ? spsi_comm_apart(M->ctx) : M->ctx->opt.comm;
}

/* Builds M, or, if opt is NULL, updates it, within M->seconds. */
static sps_status within_limit(sps_precond *M, const sps_options *opt)
{
    const double before = spsi_deadline_begin(M->ctx, M->seconds);
    sps_comm *of = apart(M);
    sps_status st = opt ? M->type->build(M, opt) : M->type->update(M);

    st = spsi_rejoin(M->ctx, of, st);
    spsi_deadline_end(M->ctx, before);
    return st;
}

/* Copies the entries of A to the host, for types that read them there. */
static sps_status fetch(const sps_precond_type *type, const sps_operator *A)
{
    return type->needs & SPS_READS_THERE ? SPS_OK : spsi_operator_fetch(A);
}

static bool of_own_block(const sps_precond_type *type, bool same)
{
    return !same && (type->ranks == SPS_RANKS_OWN ||
                     type->ranks == SPS_RANKS_OWN_OR_SAME);
}

/* Returns whether M of this type can be built for a distributed matrix; same:
 * with across_ranks. */
static bool counts(const sps_precond_type *type, bool same)
{
    return type->ranks == SPS_RANKS_SAME ||
           type->ranks == SPS_RANKS_OWN_OR_SAME ||
           (!same && type->ranks != SPS_RANKS_NOT);
}

/* For a matrix distributed over processes, sets *A to the operator from which M
 * is built; EUNFIT if M cannot be. */
static sps_status counts_there(const sps_precond_type *type,
                               const sps_operator **A)
{
    const bool same = spsi_comm_ordered((*A)->ctx);
    char names[256] = "";
    size_t length = 0;

    if (!(*A)->ranks) return SPS_OK;
    if (of_own_block(type, same)) return spsi_ranks_own(*A, A);
    if (counts(type, same)) return SPS_OK;
    for (int i = 0; spsi_preconds[i] && length < sizeof names; i++)
        if (counts(spsi_preconds[i], same))
            length += (size_t)snprintf(names + length, sizeof names - length,
                                       " %s", spsi_preconds[i]->name);
    return spsi_fail((*A)->ctx, SPS_EUNFIT, "preconditioner %s is not "
                     "supported for a matrix over several processes%s; these "
                     "are:%s", type->name, same ? " with across_ranks, since "
                     "it depends on the division of rows" : "", names);
}

/* Returns whether M of this type can read of A what it needs; columns: of A'A,
 * by the norms of columns. */
static bool has_entries(const sps_operator *A, const sps_precond_type *type,
                        bool columns)
{
    return A->A || A->ranks || !(type->needs & SPS_NEEDS_CSR) ||
           (A->diagonal && type->needs & SPS_DIAGONAL_ONLY && !columns);
}

static sps_status check_entries(const sps_operator *A,
                                const sps_precond_type *type, bool columns)
{
    char names[128] = "";
    size_t length = 0;

    if (has_entries(A, type, columns)) return SPS_OK;
    for (int i = 0; spsi_preconds[i] && length < sizeof names; i++)
        if (A->diagonal && spsi_preconds[i]->needs & SPS_DIAGONAL_ONLY)
            length += (size_t)snprintf(names + length, sizeof names - length,
                                       "%s, ", spsi_preconds[i]->name);
    return spsi_fail(A->ctx, SPS_EUNFIT, "%s needs the entries of the matrix, "
                     "and %s; use %snone or a preconditioner of your own",
                     type->name, A->diagonal
                         ? "of streamed rows the diagonal alone is kept"
                         : "this operator is a callback", names);
}

/* Builds M of the type `name`, whose requirements have been checked. */
static sps_status build_named(const sps_operator *A, int width,
                              const sps_precond_type *type,
                              const sps_options *opt, int passes, bool columns,
                              sps_precond **M_p)
{
    const sps_operator *whole = A;
    sps_status st = SPS_OK;
    sps_precond *M = NULL;

    if (A->ranks && type->over) SPS_TRY(type->over(A, opt, &type));
    SPS_TRY(counts_there(type, &A));
    SPS_TRY(check_entries(A, type, columns));
    SPS_TRY(spsi_precond_new(A->ctx, type, columns ? A->ncol : A->n, &M));
    M->A = A;
    M->of_block = A != whole;
    M->width = width;
    M->passes = passes;
    M->columns = columns;
    M->single = spsi_options_single(opt, "single_precond");
    if (!type->floats && !strcmp(opt->precision, "single_precond"))
        spsi_note(A->ctx, "preconditioner %s: its values are in double "
                  "precision, since it does not support single precision",
                  type->name);
    M->seconds = opt->max_seconds;
    SPS_TRY(fetch(type, A));
    SPS_TRY(within_limit(M, opt));
    *M_p = M;
    return SPS_OK;

fail:
    sps_precond_destroy(&M);
    return st;
}

static sps_status find_type(const sps_operator *A, int width, const char *name,
                            const sps_precond_type **type)
{
    sps_status st = SPS_OK;

    *type = spsi_precond_type(name);
    SPS_REQUIRE(A->ctx, width >= 1 && width <= SPS_BLOCK_MAX, SPS_EINVAL,
                "width %d: blocks have 1 to %d columns", width, SPS_BLOCK_MAX);
    SPS_REQUIRE(A->ctx, *type, SPS_EINVAL,
                "unknown preconditioner '%s'; sps_list(\"precond\") names them",
                name);
fail:
    return st;
}

sps_status spsi_precond_named(const sps_operator *A, int width,
                              const char *name, const sps_options *opt,
                              int passes, sps_precond **M_p)
{
    /* Of a complex matrix the caller's sizes, not those of its real form. */
    const int64_t scale = A->props & SPS_INTERLEAVED ? 2 : 1;
    const sps_precond_type *type;
    sps_status st;

    SPS_TRY(find_type(A, width, name, &type));
    SPS_REQUIRE(A->ctx, A->n == A->ncol, SPS_EUNFIT,
                "the matrix is %lld x %lld; %s needs a square one",
                (long long)(A->n / scale), (long long)(A->ncol / scale), name);
    SPS_TRY(build_named(A, width, type, opt, passes, false, M_p));
fail:
    return st;
}

sps_status spsi_precond_columns(const sps_operator *A, int width,
                                const char *name, const sps_options *opt,
                                sps_precond **M_p)
{
    const sps_precond_type *type;
    sps_status st;

    SPS_TRY(find_type(A, width, name, &type));
    SPS_REQUIRE(A->ctx, type->columns, SPS_EUNFIT, "%s is a preconditioner of "
                "square systems; for least squares there is %s, which scales "
                "the columns of the matrix, or none", name,
                spsi_precond_always()->name);
    SPS_TRY(build_named(A, width, type, opt, SPS_PASSES_LINEAR, true, M_p));
fail:
    return st;
}

sps_status spsi_precond_create(const sps_operator *A, int width,
                               const sps_options *opt, bool conjugate,
                               int passes, sps_precond **M_p)
{
    const sps_precond_type *type;
    sps_options o; /* effective options */
    sps_status st;

    if (!A || !M_p)
        return spsi_fail(A ? A->ctx : NULL, SPS_EINVAL, "A or M_p is NULL");
    SPS_TRY(spsi_options_take(A->ctx, opt, &o));
    SPS_TRY(spsi_coords_check(A, &o));
    SPS_TRY(spsi_comm_first(A->ctx, &o.max_seconds));
    type = spsi_precond_type(o.precond);
    st = type && type->choose
             ? type->choose(A, width, &o, conjugate, passes, M_p)
             : spsi_precond_named(A, width, o.precond, &o, passes, M_p);
fail:
    return st;
}

sps_status sps_precond_create(const sps_operator *A, int width,
                              const sps_options *opt, sps_precond **M_p)
{
    sps_precond *M = NULL;
    sps_status st;

    if (!A || !M_p)
        return spsi_fail(A ? A->ctx : NULL, SPS_EINVAL, "A or M_p is NULL");
    SPS_TRY(spsi_comm_begin(A->ctx));
    SPS_TRY(spsi_comm_end(A->ctx, spsi_precond_create(A, width, opt, false,
                                                      SPS_PASSES_LINEAR, &M)));
    *M_p = M;
    return SPS_OK;
fail:
    sps_precond_destroy(&M);
    return st;
}

void spsi_precond_note_double(const sps_precond *M)
{
    spsi_note(M->ctx, "%s: values in double precision, since they exceed the "
              "range of single precision", M->type->name);
}

static void release_operator(sps_context *ctx, void *place)
{
    (void)ctx;
    sps_operator_destroy(place);
}

static void release_csr(sps_context *ctx, void *place)
{
    sps_csr_destroy(ctx, place);
}

sps_status spsi_own_operator(sps_owner *o, sps_operator **op_p)
{
    return spsi_own(o, release_operator, op_p);
}

sps_status spsi_own_csr(sps_owner *o, sps_csr **A_p)
{
    return spsi_own(o, release_csr, A_p);
}

sps_status spsi_precond_operator(sps_precond *M, sps_csr *T,
                                 sps_operator **op_p)
{
    sps_status st = spsi_own_operator(&M->own, op_p);

    if (st != SPS_OK) return st;
    st = SPS_EUNFIT;
    if (M->single)
        st = spsi_operator_single(M->ctx, T, M->width, SPS_F64, NULL, op_p);
    if (M->single && st == SPS_EUNFIT) spsi_precond_note_double(M);
    return st == SPS_EUNFIT ? sps_operator_csr(M->ctx, T, M->width, NULL, op_p)
                            : st;
}

static bool has_floats(const sps_operator *op)
{
    return (op->ranks ? op->ranks->A : op->A)->dtype == SPS_F32;
}

sps_status spsi_precond_values(const sps_precond *M, sps_csr *T, double *val,
                               sps_operator **op_p)
{
    sps_operator *wide = NULL;
    sps_csr now = *T;
    sps_status st = SPS_EUNFIT;

    now.val = val;
    if (has_floats(*op_p))
        st = spsi_operator_single_follow(&now, *op_p);
    if (st != SPS_EUNFIT) return st;
    if (has_floats(*op_p)) {
        spsi_precond_note_double(M);
        SPS_TRY(sps_operator_csr(M->ctx, T, M->width, NULL, &wide));
        sps_operator_destroy(op_p);
        *op_p = wide;
    }
    st = sps_operator_set_values(*op_p, val, T->place);
fail:
    return st;
}

static sps_status apply_user(const sps_precond *M, const sps_block *R,
                             sps_block *Z)
{
    int code = M->user(1.0, R->data, R->ld, 0.0, Z->data, Z->ld, R->n, R->k,
                       M->ctx->stream, M->user_data);

    if (code == 0) return SPS_OK;
    return spsi_comm_defer(M->ctx, spsi_fail(M->ctx, SPS_EUSER, "the "
                                             "preconditioner callback "
                                             "returned %d", code));
}

static const sps_precond_type user_type = {
    .name = "user", .symmetric = true, .size = sizeof(sps_precond),
    .apply = apply_user,
};

sps_status sps_precond_user(sps_context *ctx, int64_t n, sps_apply_fn apply,
                            void *data, sps_precond **M_p)
{
    sps_status st = SPS_OK;
    sps_precond *M = NULL;

    if (!ctx || !apply || !M_p)
        return spsi_fail(ctx, SPS_EINVAL, "ctx, apply or M_p is NULL");
    SPS_REQUIRE(ctx, n >= 0, SPS_EINVAL, "sps_precond_user: n is %lld; the "
                "number of rows must not be negative", (long long)n);
    SPS_TRY(spsi_precond_new(ctx, &user_type, n, &M));
    M->user = apply;
    M->user_data = data;
    *M_p = M;
fail:
    return st;
}

sps_status sps_precond_update(sps_precond *M)
{
    sps_status st = SPS_OK;

    SPS_HANDLE(M);
    if (!M->type->update) return SPS_OK;
    SPS_TRY(spsi_comm_begin(M->ctx));
    if (M->A) st = fetch(M->type, M->A);
    if (st == SPS_OK) st = within_limit(M, NULL);
    st = spsi_comm_end(M->ctx, st);
fail:
    return st;
}

sps_status sps_precond_apply(const sps_precond *M, const sps_block *R,
                             sps_block *Z)
{
    sps_status st = SPS_OK;
    sps_comm *of;

    if (!M || !R || !Z)
        return spsi_fail(M ? M->ctx : NULL, SPS_EINVAL, "a handle is NULL");
    SPS_REQUIRE(M->ctx, R->ctx == M->ctx && Z->ctx == M->ctx, SPS_EINVAL,
                "preconditioner and blocks belong to different contexts");
    SPS_REQUIRE(M->ctx, R->n == M->n && Z->n == M->n && R->k == Z->k,
                SPS_ESHAPE, "Z = M R: R is %lld x %d, Z is %lld x %d, M has "
                "%lld rows", (long long)R->n, R->k, (long long)Z->n, Z->k,
                (long long)M->n);
    SPS_REQUIRE(M->ctx, M->type == &user_type || R->k <= M->width, SPS_ESHAPE,
                "the blocks have %d columns; this preconditioner was made for "
                "at most %d",
                R->k, M->width);
    SPS_REQUIRE(M->ctx, !spsi_blocks_overlap(R, Z), SPS_EINVAL,
                "Z and R share memory");
    of = apart(M);
    st = M->type->apply(M, R, Z);
    spsi_comm_back(M->ctx, of);
fail:
    return st;
}

size_t sps_precond_describe(const sps_precond *M, char *text, size_t size)
{
    if (size > 0) text[0] = '\0';
    if (!M) return 0;
    if (M->type->describe) return M->type->describe(M, text, size);
    return (size_t)snprintf(text, size, "%s\n", M->type->name);
}

const char *sps_precond_name(const sps_precond *M)
{
    return M ? M->type->name : "none";
}

void sps_precond_destroy(sps_precond **M_p)
{
    sps_precond *M = M_p ? *M_p : NULL;

    if (!M) return;
    if (M->type->destroy) M->type->destroy(M);
    spsi_owner_release(&M->own);
    M->ctx->live--;
    spsi_free(M->ctx, M);
    *M_p = NULL;
}
