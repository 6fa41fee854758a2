/* SPDX-License-Identifier: BSD-3-Clause */
/* comm.c - see comm.h.
 *
 * A message consists of HEAD control numbers and the first FIRST numbers of the
 * sum, and always has this length: so a process that has failed can join any
 * sum of the others, and sums of different lengths are detected before anything
 * of another length is sent.  Numbers beyond FIRST follow in a second call.
 *
 * Consistency check: each message carries a mark computed from the count of
 * sums and the length of this one.  Marks g are integers below 2^18, so for up
 * to 2^14 processes sum g^2 = (sum g)^2 / size to within 1/4 only if all g are
 * equal (Cauchy-Schwarz), and each process sees the same result. */
#include "core/comm.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <math.h>
#include <string.h>

#include "core/abi.h"
#include "core/module.h"
#include "core/timer.h"

enum { FAILED, WHO, ASKED, CANCELLED, CLOCK, MARK, SQUARE, HEAD };
enum { FIRST = 272, MARKS = 1 << 18, MOST = 1 << 14, LONGEST = 4096 };

/* Created before the contexts that use it, and therefore by malloc. */
struct sps_comm {
    int rank, size;
    sps_comm_calls calls;
    void *data;
    const sps_engine *engine; /* the MPI module that owns `data`, or NULL */
    double shift;             /* added to the clock of this process
                                 (spsi_comm_apart) */
    uint64_t sums;            /* number of sums so far */
    int depth;                /* nesting of collective calls */
    bool over;                /* the open collective call has failed: nothing
                                 is sent until it ends */
    bool steady;              /* no sum precedes an exchange
                                 (spsi_comm_steady) */
    sps_status why;           /* if `over`: the failure, which sums return */
    sps_status fault;         /* failure of a callback, kept until the next
                                 sum */
    char text[SPS_ERROR_SIZE];   /* error text of `fault` */
    bool asking;              /* the monitor of this process requests a stop */
    bool asked, cancelled;    /* at the last sum, on some process: the monitor
                                 requested a stop; sps_cancel had been called */
    double now;               /* clock of process 0 at the last sum */
    void *wire;               /* data of the wire (spsi_wire_data) */
    const sps_context *wired; /* the context that uses the wire */
    double message[HEAD + FIRST];
};

sps_status sps_comm_user(int rank, int size, const sps_comm_calls *calls,
                         void *data, sps_comm **c_p)
{
    sps_comm *c;
    sps_status st;

    SPS_REQUIRE(NULL, calls && c_p, SPS_EINVAL, "sps_comm_user: calls or c_p "
                "is NULL");
    SPS_TRY(SPS_ABI_CHECK(NULL, sps_comm_calls, calls));
    SPS_REQUIRE(NULL, size >= 1 && size <= MOST && rank >= 0 && rank < size,
                SPS_EINVAL, "sps_comm_user: process %d of %d: the number "
                "must be in 0 .. size - 1, and the size at most %d", rank, size,
                MOST);
    c = calloc(1, sizeof *c);
    SPS_REQUIRE(NULL, c, SPS_ENOMEM, "sps_comm_user: no memory for %zu bytes",
                sizeof *c);
    c->rank = rank;
    c->size = size;
    c->data = data;
    c->calls.struct_size = sizeof c->calls;
    spsi_abi_copy(calls, &c->calls);
    if (!c->calls.sum || !c->calls.start != !c->calls.finish) {
        const char *what = !c->calls.sum ? "sum is NULL"
                         : "one of start and finish is NULL; set both or none";

        free(c);
        return spsi_fail(NULL, SPS_EINVAL, "sps_comm_user: %s", what);
    }
    *c_p = c;
fail:
    return st;
}

static int sum_alone(double *values, int count, void *data)
{
    (void)values;
    (void)count;
    (void)data;
    return 0;
}

sps_status spsi_comm_alone(sps_comm **c_p)
{
    const sps_comm_calls calls = { .struct_size = sizeof calls,
                                   .sum = sum_alone };

    return sps_comm_user(0, 1, &calls, NULL, c_p);
}

void sps_comm_shape(const sps_comm *c, int *rank, int *size)
{
    if (rank) *rank = c ? c->rank : 0;
    if (size) *size = c ? c->size : 1;
}

void sps_comm_destroy(sps_comm **c_p)
{
    if (!c_p || !*c_p) return;
    if ((*c_p)->engine) (*c_p)->engine->close((*c_p)->data);
    free(*c_p);
    *c_p = NULL;
}

void sps_comm_abort(sps_comm *c, int code)
{
    if (c && c->engine) c->engine->end_all(c->data, code);
}

sps_status sps_comm_sum(sps_comm *c, double *values, int count)
{
    const int code = !c || count == 0 ? 0
                   : c->calls.sum(values, count, c->data);

    return code == 0 ? SPS_OK : spsi_fail(NULL, SPS_EUSER, "the function that "
                                          "sums over processes failed: it "
                                          "returned %d", code);
}

/* Starts an exchange, and completes it if the communicator has one function for
 * both. */
static int start_exchange(sps_comm *c, const sps_message *send, int sends,
                          const sps_message *receive, int receives)
{
    return c->calls.start
        ? c->calls.start(send, sends, receive, receives, c->data)
        : c->calls.exchange(send, sends, receive, receives, c->data);
}

sps_status sps_comm_exchange(sps_comm *c, const sps_message *send, int sends,
                             const sps_message *receive, int receives)
{
    int code;

    if (!c) return SPS_OK;
    if (!c->calls.start && !c->calls.exchange)
        return spsi_fail(NULL, SPS_EUNFIT, "sps_comm_calls: exchange is "
                         "NULL, and so is start; one of them is needed");
    code = start_exchange(c, send, sends, receive, receives);
    if (code == 0 && c->calls.start) code = c->calls.finish(c->data);
    return code == 0 ? SPS_OK : spsi_fail(NULL, SPS_EUSER, "the function that "
                                          "exchanges messages between "
                                          "processes failed: it returned %d",
                                          code);
}

/* --------------------------------------------------------------------- MPI */

/* Creates a communicator from the functions of an engine, which closes `of`
 * when the communicator is destroyed. */
static sps_status of_engine(int rank, int size, const sps_engine *e, void *of,
                            sps_comm **c_p)
{
    const sps_comm_calls calls = { .struct_size = sizeof calls, .sum = e->sum,
                                   .start = e->start, .finish = e->finish };
    sps_status st;

    SPS_TRY(sps_comm_user(rank, size, &calls, of, c_p));
    (*c_p)->engine = e;
fail:
    return st;
}

/* Returns which MPI is loaded in this process, or -1 if none or another one is.
 * MPI_Get_library_version may be called before MPI is initialised (MPI 4.0,
 * 9.1.1). */
static int implementation_here(void)
{
    int (*tell)(char *text, int *length) = NULL;
    char text[8192] = "";      /* MPI_MAX_LIBRARY_VERSION_STRING of both */
    int length = 0;

    *(void **)&tell = dlsym(RTLD_DEFAULT, "MPI_Get_library_version");
    if (!tell || tell(text, &length) != 0) return -1;
    return strstr(text, "Open MPI") ? SPS_OPENMPI
         : strstr(text, "MPICH") ? SPS_MPICH : -1;
}

static int implementation_of_launcher(void)
{
    if (getenv("OMPI_COMM_WORLD_SIZE")) return SPS_OPENMPI;
    return getenv("PMI_SIZE") || getenv("PMI_RANK") ? SPS_MPICH : -1;
}

/* Finds the module to use: that of the MPI that is loaded in the process;
 * otherwise that of the launcher, which is known from its environment
 * variables; otherwise the first one that can be loaded. */
static const sps_engine *find_engine(char *why, size_t size)
{
    const sps_engine *e;
    int which = implementation_here();

    if (which < 0) which = implementation_of_launcher();
    if (which >= 0) return spsi_module_engine(which, why, size);
    e = spsi_module_engine(SPS_OPENMPI, why, size);
    return e ? e : spsi_module_engine(SPS_MPICH, why, size);
}

sps_status sps_comm_mpi(int fortran_handle, sps_comm **c_p)
{
    char why[SPS_ERROR_SIZE];
    const sps_engine *e = NULL;
    const char *no;
    void *of = NULL;
    int rank = 0, size = 0;
    sps_status st = SPS_OK;

    SPS_REQUIRE(NULL, c_p, SPS_EINVAL, "sps_comm_mpi: c_p is NULL");
    e = find_engine(why, sizeof why);
    SPS_REQUIRE(NULL, e, SPS_EABSENT, "no module of this MPI (libspsolve was "
                "built without it): %s", why);
    no = e->open(fortran_handle, &rank, &size, &of);
    SPS_REQUIRE(NULL, !no, SPS_EINVAL, "sps_comm_mpi, %s: %s", e->name, no);
    SPS_TRY(of_engine(rank, size, e, of, c_p));
    return SPS_OK;

fail:
    if (of) e->close(of);
    return st;
}

/* ------------------------------------------------------------------- shape */

bool spsi_comm_many(const sps_context *ctx)
{
    return ctx->opt.comm && (ctx->opt.comm->size > 1 || ctx->opt.across_ranks);
}

bool spsi_comm_ordered(const sps_context *ctx)
{
    return ctx->opt.comm && ctx->opt.across_ranks;
}

int64_t spsi_comm_chunk(int64_t whole)
{
    const int64_t most = 1024;
    int64_t rows = whole > most ? 6 : 1;

    while ((whole + rows - 1) / rows > most) rows *= 2;
    return rows;
}

int spsi_comm_size(const sps_context *ctx)
{
    return ctx->opt.comm ? ctx->opt.comm->size : 1;
}

int spsi_comm_rank(const sps_context *ctx)
{
    return ctx->opt.comm ? ctx->opt.comm->rank : 0;
}

/* -------------------------------------------------------------------- wire */

const sps_wire *spsi_wire(const sps_context *ctx)
{
    return spsi_comm_many(ctx) && ctx->backend->place != SPS_HOST
        ? ctx->module->wire : NULL;
}

void **spsi_wire_data(const sps_context *ctx)
{
    sps_comm *c = ctx->opt.comm;

    if (!c || (c->wire && c->wired != ctx)) return NULL;
    c->wired = ctx;
    return &c->wire;
}

/* ----------------------------------------------------------------- messages */

static void fill_head(const sps_context *ctx, double *m, int count, bool failed)
{
    const sps_comm *c = ctx->opt.comm;
    const double mark = (double)((c->sums * 7919 + (uint64_t)count * 104729) %
                                 MARKS);

    m[FAILED] = failed;
    m[WHO] = failed ? c->rank : 0;
    m[ASKED] = c->asking;
    m[CANCELLED] = spsi_cancelled(ctx);
    m[CLOCK] = c->rank == 0 ? spsi_now() : 0;
    m[MARK] = mark;
    m[SQUARE] = mark * mark;
}

/* The open collective call has failed with st on all processes: until its end
 * spsi_reduce returns st without a message.  Returns st. */
static sps_status end_call(sps_comm *c, sps_status st)
{
    c->over = c->depth > 0;
    c->why = st;
    return st;
}

static sps_status read_head(sps_context *ctx, const double *m, bool failed)
{
    sps_comm *c = ctx->opt.comm;
    const double spread = m[SQUARE] - m[MARK] / c->size * m[MARK];

    c->sums++;
    c->asked = m[ASKED] > 0;
    c->cancelled = m[CANCELLED] > 0;
    c->now = m[CLOCK];
    if (m[FAILED] == 1 && !failed)
        return end_call(c, spsi_fail(ctx, SPS_EPEER, "process %d of %d failed; "
                                     "its own error says why", (int)m[WHO],
                                     c->size));
    if (m[FAILED] > 0 && !failed)
        return end_call(c, spsi_fail(ctx, SPS_EPEER, "%d of %d processes "
                                     "failed; their own errors say why",
                                     (int)m[FAILED], c->size));
    if (failed) return end_call(c, SPS_EPEER);
    if (!(spread <= 0.25))
        return end_call(c, spsi_fail(ctx, SPS_EBUG, "the processes disagree "
                                     "at sum %llu: they sum different "
                                     "quantities, or the caller's function "
                                     "does not sum",
                                     (unsigned long long)c->sums));
    return SPS_OK;
}

/* Calls the caller's function for `count` values. */
static sps_status sum(sps_context *ctx, double *values, int count)
{
    sps_comm *c = ctx->opt.comm;
    const int code = c->size > 1 ? c->calls.sum(values, count, c->data) : 0;

    if (code == 0) return SPS_OK;
    return end_call(c, spsi_fail(ctx, SPS_EUSER, "the function that sums over "
                                 "processes failed: it returned %d", code));
}

/* Sums the message of a sum of `count` numbers, the first of which are in
 * c->message, over the processes, and reads the control numbers.  If st is a
 * failure of this process, the message tells the others, and st is returned
 * with its text. */
static sps_status message(sps_context *ctx, int count, sps_status st)
{
    sps_comm *c = ctx->opt.comm;
    const bool failed = st != SPS_OK;
    sps_status sent;

    if (failed) memcpy(c->text, ctx->error, sizeof c->text);
    fill_head(ctx, c->message, count, failed);
    sent = sum(ctx, c->message, HEAD + FIRST);
    if (sent == SPS_OK) sent = read_head(ctx, c->message, failed);
    return failed ? spsi_fail(ctx, st, "%s", c->text) : sent;
}

/* Returns the failure that spsi_comm_defer has kept, if any, otherwise st. */
static sps_status deferred(sps_context *ctx, sps_status st)
{
    sps_comm *c = ctx->opt.comm;
    const sps_status fault = c->fault;

    c->fault = SPS_OK;
    return fault == SPS_OK ? st : spsi_fail(ctx, fault, "%s", c->text);
}

sps_status spsi_reduce(sps_context *ctx, double *values, int count)
{
    sps_comm *c = ctx->opt.comm;
    const int first = count < FIRST ? count : FIRST;
    const size_t bytes = (size_t)first * sizeof *values;
    sps_status st;

    if (!spsi_comm_many(ctx) || count == 0) return SPS_OK;
    if (c->over) return c->why;
    memset(c->message, 0, sizeof c->message);
    memcpy(c->message + HEAD, values, bytes);
    SPS_TRY(message(ctx, count, deferred(ctx, SPS_OK)));
    memcpy(values, c->message + HEAD, bytes);
    if (count > first) SPS_TRY(sum(ctx, values + first, count - first));
fail:
    return st;
}

sps_status spsi_reduce_long(sps_context *ctx, double *values, int64_t count)
{
    sps_status st = SPS_OK;

    for (int64_t i = 0; st == SPS_OK && i < count; i += LONGEST)
        st = spsi_reduce(ctx, values + i,
                         (int)(count - i < LONGEST ? count - i : LONGEST));
    return st;
}

sps_status spsi_comm_any(sps_context *ctx, bool mine, bool *any)
{
    double sum = mine;
    const sps_status st = spsi_reduce(ctx, &sum, 1);

    *any = sum > 0;
    return st;
}

sps_status spsi_comm_rows(sps_context *ctx, int64_t n, bool matrix,
                          int64_t *whole)
{
    double sums[3] = { (double)n, n == 0, matrix };
    sps_status st = SPS_OK;

    *whole = n;
    if (!spsi_comm_many(ctx)) return SPS_OK;
    SPS_TRY(spsi_reduce(ctx, sums, 3));
    SPS_REQUIRE(ctx, sums[2] == 0, SPS_EUNFIT, "over several processes the "
                "matrix must be the caller's function (sps_operator_user): a "
                "csr has the rows of its process only");
    SPS_REQUIRE(ctx, sums[1] == 0, SPS_EUNFIT, "%.0f of %d processes have no "
                "rows; each must have one at least", sums[1],
                ctx->opt.comm->size);
    *whole = (int64_t)sums[0];
fail:
    return st;
}

sps_status spsi_comm_gather(sps_context *ctx, double mine, double *all)
{
    const sps_comm *c = ctx->opt.comm;

    memset(all, 0, (size_t)spsi_comm_size(ctx) * sizeof *all);
    all[spsi_comm_rank(ctx)] = mine;
    return c ? spsi_reduce(ctx, all, c->size) : SPS_OK;
}

sps_status spsi_comm_first(sps_context *ctx, double *value)
{
    if (spsi_comm_rank(ctx) != 0) *value = 0;
    return spsi_reduce(ctx, value, 1);
}

sps_status spsi_comm_largest(sps_context *ctx, double *value)
{
    const int size = spsi_comm_size(ctx);
    double *all = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, size, &all));
    SPS_TRY(spsi_comm_gather(ctx, *value, all));
    for (int r = 0; r < size; r++) *value = fmax(*value, all[r]);
fail:
    spsi_free(ctx, all);
    return st;
}

sps_status spsi_comm_box(sps_context *ctx, int d, double *low, double *high)
{
    sps_status st = SPS_OK;

    for (int a = 0; a < d; a++) {
        low[a] = -low[a];
        SPS_TRY(spsi_comm_largest(ctx, &low[a]));
        SPS_TRY(spsi_comm_largest(ctx, &high[a]));
        low[a] = -low[a];
    }
fail:
    return st;
}

sps_status spsi_comm_same(sps_context *ctx, double mine, bool *same)
{
    double first = mine, differs;
    sps_status st;

    SPS_TRY(spsi_comm_first(ctx, &first));
    differs = first != mine;
    SPS_TRY(spsi_reduce(ctx, &differs, 1));
    *same = differs == 0;
fail:
    return st;
}

/* ----------------------------------------------------------------- messages */

bool spsi_comm_steady(sps_context *ctx, bool steady)
{
    const bool before = spsi_comm_many(ctx) && ctx->opt.comm->steady;

    /* A GPU may fail at any time, so that each exchange needs its sum. */
    if (spsi_comm_many(ctx))
        ctx->opt.comm->steady = steady && !spsi_wire(ctx);
    return before;
}

static sps_status failed_exchange(sps_context *ctx, int code)
{
    if (code == 0) return SPS_OK;
    return end_call(ctx->opt.comm, spsi_fail(ctx, SPS_EUSER, "the function "
                                             "that exchanges messages between "
                                             "processes failed: it returned "
                                             "%d", code));
}

sps_status spsi_comm_exchange(sps_context *ctx, const sps_message *send,
                              int sends, const sps_message *receive,
                              int receives)
{
    sps_status st;

    SPS_TRY(spsi_comm_start(ctx, send, sends, receive, receives));
    SPS_TRY(spsi_comm_finish(ctx));
fail:
    return st;
}

sps_status spsi_comm_start(sps_context *ctx, const sps_message *send, int sends,
                           const sps_message *receive, int receives)
{
    sps_comm *c = ctx->opt.comm;
    sps_status st;

    if (spsi_comm_size(ctx) == 1) return SPS_OK;
    if (c->over) return c->why;
    SPS_REQUIRE(ctx, c->calls.exchange || c->calls.start, SPS_EUNFIT,
                "rows of a matrix over several processes need messages, and "
                "sps_comm_calls has neither exchange nor start; set one of "
                "them");
    if (!c->steady) SPS_TRY(message(ctx, 0, deferred(ctx, SPS_OK)));
    SPS_TRY(failed_exchange(ctx, start_exchange(c, send, sends, receive,
                                                receives)));
fail:
    return st;
}

sps_status spsi_comm_finish(sps_context *ctx)
{
    const sps_comm *c = ctx->opt.comm;

    if (spsi_comm_size(ctx) == 1 || !c->calls.start) return SPS_OK;
    return failed_exchange(ctx, c->calls.finish(c->data));
}

/* --------------------------------------------------------- collective calls */

sps_status spsi_comm_begin(sps_context *ctx)
{
    sps_comm *c = ctx->opt.comm;
    sps_status st;

    if (!spsi_comm_many(ctx) || c->depth++ > 0) return SPS_OK;
    c->asking = false;
    st = message(ctx, 0, SPS_OK);
    if (st == SPS_OK) return st;
    c->depth = 0;
    c->over = false;
    return st;
}

sps_status spsi_comm_end(sps_context *ctx, sps_status st)
{
    sps_comm *c = ctx->opt.comm;

    if (!spsi_comm_many(ctx) || --c->depth > 0) return st;
    if (!c->over) st = message(ctx, 0, deferred(ctx, st));
    else if (st == SPS_OK) st = c->why;
    c->over = false;
    return st;
}

sps_comm *spsi_comm_apart(sps_context *ctx)
{
    sps_comm *of = ctx->opt.comm;

    if (!of) return NULL;
    of->shift = spsi_now() - spsi_agreed_now(ctx);
    if (ctx->deadline > 0) ctx->deadline += of->shift;
    ctx->opt.comm = NULL;
    return of;
}

void spsi_comm_back(sps_context *ctx, sps_comm *of)
{
    if (of && !ctx->opt.comm && ctx->deadline > 0) ctx->deadline -= of->shift;
    ctx->opt.comm = of;
}

sps_status spsi_comm_defer(sps_context *ctx, sps_status st)
{
    sps_comm *c = ctx->opt.comm;

    if (!spsi_comm_many(ctx) || c->depth == 0 || c->over) return st;
    if (c->fault == SPS_OK) memcpy(c->text, ctx->error, sizeof c->text);
    if (c->fault == SPS_OK) c->fault = st;
    return SPS_OK;
}

/* --------------------------------------------------------------- agreements */

double spsi_agreed_now(const sps_context *ctx)
{
    return spsi_comm_many(ctx) ? ctx->opt.comm->now : spsi_now();
}

void spsi_comm_pass(sps_context *ctx, double seconds)
{
    if (spsi_comm_many(ctx) && ctx->opt.comm->now < seconds)
        ctx->opt.comm->now = seconds;
}

bool spsi_agreed_cancel(const sps_context *ctx)
{
    return spsi_comm_many(ctx) ? ctx->opt.comm->cancelled
                               : spsi_cancelled(ctx);
}

bool spsi_agreed_monitor(sps_context *ctx, sps_monitor_fn monitor, void *data,
                         const sps_progress *p)
{
    const bool go = !monitor || monitor(p, data);

    if (!spsi_comm_many(ctx)) return go;
    if (!go) ctx->opt.comm->asking = true;
    return !ctx->opt.comm->asked;
}
