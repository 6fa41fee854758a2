/* SPDX-License-Identifier: BSD-3-Clause */
/* options.c - options as one table: defaults, ranges, and the text form.  A
 * row is the only place that knows a name; parsing, printing and the list of
 * names walk the rows. */
#include <ctype.h>
#include <float.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "registry.h"

typedef enum kind { WORD, REAL, INT, BOOL, NORM } kind;

typedef struct row {
    const char *name;
    kind kind;
    size_t offset;
    double low, high;        /* of numbers, both allowed */
    const char *words;       /* of WORD: blank-separated, or NULL: any */
    const char *list;        /* of WORD: further names, kinds of sps_list */
} row;

#define ROW(member, kind, low, high, words, list)                              \
    {#member, kind, offsetof(sps_options, member), low, high, words, list}

static const row rows[] = {
    ROW(solver, WORD, 0, 0, "auto", "solver eigensolver"),
    ROW(precond, WORD, 0, 0, "auto", "precond"),
    ROW(kernel, WORD, 0, 0, NULL, NULL),
    ROW(nullspace, WORD, 0, 0, "auto none constant components", NULL),
    ROW(wisdom, WORD, 0, 0, NULL, NULL),
    ROW(rtol, REAL, 0, 1, NULL, NULL),
    ROW(atol, REAL, 0, HUGE_VAL, NULL, NULL),
    ROW(norm, NORM, 0, 3, "rhs backward start absolute", NULL),
    ROW(max_iterations, INT, 0, INT_MAX, NULL, NULL),
    ROW(max_seconds, REAL, 0, HUGE_VAL, NULL, NULL),
    ROW(block_size, INT, 0, 64, NULL, NULL),
    ROW(scale, WORD, 0, 0, "auto none equilibrate match", NULL),
    ROW(reorder, WORD, 0, 0, "none rcm morton auto", NULL),
    ROW(order, WORD, 0, 0, "auto none rcm degree", NULL),
    ROW(dense, WORD, 0, 0, "auto never", NULL),
    ROW(power, INT, 1, 8, NULL, NULL),
    ROW(droptol, REAL, 0, 1, NULL, NULL),
    ROW(fill, REAL, 0, 1e6, NULL, NULL),
    ROW(degree, INT, 0, 100, NULL, NULL),
    ROW(restart, INT, 1, 1000, NULL, NULL),
    ROW(flexible, BOOL, 0, 1, NULL, NULL),
    ROW(recycle, INT, 0, 256, NULL, NULL),
    ROW(bicgstab_l, INT, 1, 8, NULL, NULL),
    ROW(idr_s, INT, 1, 16, NULL, NULL),
    ROW(rank_tolerance, REAL, 0, 1, NULL, NULL),
    ROW(true_residual_every, INT, 1, INT_MAX, NULL, NULL),
    ROW(full_precision, BOOL, 0, 1, NULL, NULL),
    ROW(strict_nonfinite, BOOL, 0, 1, NULL, NULL),
    ROW(precision, WORD, 0, 0, "auto double mixed", NULL),
    ROW(basis, WORD, 0, 0, "auto double single", NULL),
    ROW(precond_precision, WORD, 0, 0, "auto double single", NULL),
    ROW(check_every, INT, 1, 16, NULL, NULL),
    ROW(replay, BOOL, 0, 1, NULL, NULL),
    ROW(which, WORD, 0, 0, "smallest largest nearest", NULL),
    ROW(sigma, REAL, -DBL_MAX, DBL_MAX, NULL, NULL),
    ROW(block, INT, 0, 256, NULL, NULL),
    ROW(verify_count, BOOL, 0, 1, NULL, NULL),
};
enum { ROWS = sizeof rows / sizeof *rows };

void sps_options_default(sps_options *opt)
{
    if (!opt) return;
    *opt = (sps_options){
        .struct_size = sizeof *opt,
        .solver = "auto",
        .precond = "auto",
        .kernel = "auto",
        .nullspace = "auto",
        .rtol = 1e-8,
        .norm = SPS_NORM_RHS,
        .max_iterations = 10000,
        .scale = "auto",
        .reorder = "none",
        .order = "auto",
        .dense = "auto",
        .power = 1,
        .droptol = 1e-3,
        .fill = 10,
        .restart = 50,
        .bicgstab_l = 2,
        .idr_s = 4,
        .rank_tolerance = 1e-10,
        .true_residual_every = 50,
        .full_precision = true,
        .precision = "auto",
        .basis = "auto",
        .precond_precision = "auto",
        .check_every = 10,
        .replay = true,
        .which = "smallest",
    };
}

const char *spsi_options_name(int i)
{
    return i >= 0 && i < ROWS ? rows[i].name : NULL;
}

static void *member(const row *r, const sps_options *opt)
{
    return (char *)opt + r->offset;
}

/* ------------------------------------------------------------------ ranges */

/* Word number i of a blank-separated list, into word. */
static bool nth_word(const char *words, int i, char *word, size_t size)
{
    size_t length = 0;

    for (; words && *words; words += length + (words[length] == ' ')) {
        length = strcspn(words, " ");
        if (i-- > 0) continue;
        (void)snprintf(word, size, "%.*s", (int)length, words);
        return true;
    }
    return false;
}

static int find_word(const char *words, const char *text)
{
    char word[32];

    for (int i = 0; nth_word(words, i, word, sizeof word); i++)
        if (strcmp(word, text) == 0) return i;
    return -1;
}

/* Whether text is a name of one of the kinds, else *near the nearest name of
 * them, or NULL. */
static bool listed(const sps_context *ctx, const char *kinds, const char *text,
                   const char **near)
{
    char kind[32];
    const char *name;

    *near = NULL;
    for (int l = 0; nth_word(kinds, l, kind, sizeof kind); l++) {
        for (int i = 0; (name = sps_list(ctx, kind, i)); i++)
            if (strcmp(name, text) == 0) return true;
        if (!*near) *near = spsi_nearest(ctx, kind, text);
    }
    return false;
}

static sps_status check_word(sps_context *ctx, const row *r, const char *text)
{
    const char *near;

    near = NULL;
    if (!text || (!r->words && !r->list) || find_word(r->words, text) >= 0 ||
        listed(ctx, r->list, text, &near))
        return SPS_OK;
    if (near)
        return spsi_fail(ctx, SPS_EINVAL,
                         "%s=%.60s: no such name; did you mean %s?", r->name,
                         text, near);
    return spsi_fail(ctx, SPS_EINVAL, "%s=%.60s: no such name; known are %s%s",
                     r->name, text, r->words,
                     r->list ? " and those of sps_list" : "");
}

static sps_status check_number(sps_context *ctx, const row *r, double value)
{
    if (value >= r->low && value <= r->high && value < HUGE_VAL)
        return SPS_OK; /* NaN fails both */
    if (r->high >= INT_MAX)
        return spsi_fail(ctx, SPS_EINVAL,
                         "%s=%g: it must be at least %g and finite", r->name,
                         value, r->low);
    return spsi_fail(ctx, SPS_EINVAL, "%s=%g: it must lie in %g to %g",
                     r->name, value, r->low, r->high);
}

static sps_status check_member(sps_context *ctx, const row *r,
                               const sps_options *opt)
{
    const void *p = member(r, opt);

    switch (r->kind) {
    case WORD: return check_word(ctx, r, *(const char *const *)p);
    case REAL: return check_number(ctx, r, *(const double *)p);
    case INT: return check_number(ctx, r, *(const int *)p);
    case NORM: return check_number(ctx, r, (double)*(const sps_norm *)p);
    case BOOL: break;
    }
    return SPS_OK;
}

sps_status spsi_options_take(sps_context *ctx, const sps_options *opt,
                             sps_options *out)
{
    sps_options defaults;
    sps_status st;

    sps_options_default(&defaults);
    if (!opt) opt = &defaults;
    SPS_REQUIRE(ctx, opt->struct_size == sizeof *opt, SPS_EINVAL,
                "sps_options.struct_size is %zu, this library knows %zu: call "
                "sps_options_default first", opt->struct_size, sizeof *opt);
    for (int i = 0; i < ROWS; i++) SPS_TRY(check_member(ctx, &rows[i], opt));
    *out = *opt;
    for (int i = 0; i < ROWS; i++)
        if (rows[i].kind == WORD && !*(char **)member(&rows[i], out))
            *(char **)member(&rows[i], out) =
                *(char **)member(&rows[i], &defaults);
    return SPS_OK;
fail:
    return st;
}

bool spsi_options_single(const sps_options *opt, const char *word)
{
    return !strcmp(word, "single") ||
           (!strcmp(word, "auto") && !strcmp(opt->precision, "mixed"));
}

/* -------------------------------------------------------------- kept texts */

/* Each text kept lies behind a pointer to the one before; ctx->strings is the
 * newest.  The same text is kept once. */
static char **link_of(char *kept)
{
    return (char **)(void *)kept - 1;
}

static sps_status keep(sps_context *ctx, const char *text, const char **kept_p)
{
    size_t bytes = strlen(text) + 1;
    void *p = NULL;
    sps_status st;

    for (char *s = ctx->strings; s; s = *link_of(s))
        if (strcmp(s, text) == 0) {
            *kept_p = s;
            return SPS_OK;
        }
    SPS_TRY(spsi_new_raw(ctx, sizeof(char *) + bytes, &p));
    *(char **)p = ctx->strings;
    ctx->strings = memcpy((char **)p + 1, text, bytes);
    *kept_p = ctx->strings;
    return SPS_OK;
fail:
    return st;
}

void spsi_options_forget(sps_context *ctx)
{
    char *before;

    for (char *s = ctx->strings; s; s = before) {
        before = *link_of(s);
        spsi_free(ctx, link_of(s));
    }
    ctx->strings = NULL;
}

/* -------------------------------------------------------------------- text */

/* strtod reads the decimal point of the caller's locale; ours is a point. */
static bool parse_number(const char *text, double *value)
{
    char copy[64], *end, *point;

    if (!isdigit((unsigned char)*text) && !strchr("+-.", *text)) return false;
    (void)snprintf(copy, sizeof copy, "%s", text);
    point = strchr(copy, '.');
    if (point) *point = *localeconv()->decimal_point;
    *value = strtod(copy, &end);
    return end != copy && !*end && strlen(text) < sizeof copy;
}

static bool parse_bool(const char *text, bool *value)
{
    static const char *const words = "false true no yes off on 0 1";
    int i = find_word(words, text);

    *value = i % 2 == 1;
    return i >= 0;
}

static sps_status set_number(sps_context *ctx, const row *r, void *p,
                             const char *text)
{
    double value;
    sps_status st = SPS_OK;

    SPS_REQUIRE(ctx, parse_number(text, &value), SPS_EINVAL,
                "%s=%.60s: a number is wanted", r->name, text);
    SPS_TRY(check_number(ctx, r, value));
    if (r->kind == REAL) {
        *(double *)p = value;
    } else {
        SPS_REQUIRE(ctx, value == floor(value), SPS_EINVAL,
                    "%s=%.60s: a whole number is wanted", r->name, text);
        *(int *)p = (int)value;
    }
fail:
    return st;
}

static sps_status set_norm(sps_context *ctx, const row *r, void *p,
                           const char *text)
{
    int i = find_word(r->words, text);

    if (i < 0) return check_word(ctx, r, text);
    *(sps_norm *)p = (sps_norm)i;
    return SPS_OK;
}

static sps_status set(sps_context *ctx, const row *r, sps_options *opt,
                      const char *text)
{
    void *p = member(r, opt);
    sps_status st = SPS_OK;

    switch (r->kind) {
    case WORD:
        if (!*text) { /* "wisdom=" takes the default back */
            sps_options defaults;

            sps_options_default(&defaults);
            memcpy(p, member(r, &defaults), sizeof(char *));
            break;
        }
        SPS_TRY(check_word(ctx, r, text));
        SPS_TRY(keep(ctx, text, (const char **)p));
        break;
    case BOOL:
        SPS_REQUIRE(ctx, parse_bool(text, (bool *)p), SPS_EINVAL,
                    "%s=%.60s: true or false is wanted", r->name, text);
        break;
    case NORM: return set_norm(ctx, r, p, text);
    case REAL:
    case INT: return set_number(ctx, r, p, text);
    }
fail:
    return st;
}

static sps_status set_named(sps_context *ctx, sps_options *opt, char *word)
{
    char *equals = strchr(word, '=');
    const char *near;
    sps_status st = SPS_OK;

    SPS_REQUIRE(ctx, equals, SPS_EINVAL, "\"%.60s\" is not name=value", word);
    *equals = '\0';
    for (int i = 0; i < ROWS; i++)
        if (strcmp(rows[i].name, word) == 0)
            return set(ctx, &rows[i], opt, equals + 1);
    near = spsi_nearest(ctx, "option", word);
    SPS_REQUIRE(ctx, !near, SPS_EINVAL,
                "no option \"%.60s\"; did you mean %s?", word, near);
    st = spsi_fail(ctx, SPS_EINVAL, "no option \"%.60s\"; sps_list(ctx, "
                   "\"option\", i) names them", word);
fail:
    return st;
}

/* The whole text is applied, or nothing of it. */
sps_status sps_options_parse(sps_context *ctx, sps_options *opt,
                             const char *text)
{
    static const char *const gaps = " \t\r\n,";
    char word[SPS_ERROR_SIZE * 4];
    sps_options now;
    size_t length;
    sps_status st;

    if (!ctx) return SPS_EINVAL;
    SPS_REQUIRE(ctx, opt, SPS_EINVAL, "opt is NULL");
    SPS_REQUIRE(ctx, text, SPS_EINVAL, "the text of options is NULL");
    SPS_TRY(spsi_options_take(ctx, opt, &now));
    for (;; text += length) {
        text += strspn(text, gaps);
        if (*text == '#') {
            length = strcspn(text, "\n");
            continue;
        }
        length = strcspn(text, " \t\r\n,#");
        if (length == 0) break;
        SPS_REQUIRE(ctx, length < sizeof word, SPS_EINVAL,
                    "an option of %zu letters; at most %zu", length,
                    sizeof word - 1);
        memcpy(word, text, length);
        word[length] = '\0';
        SPS_TRY(set_named(ctx, &now, word));
    }
    *opt = now;
    return SPS_OK;
fail:
    return st;
}

/* The fewest digits that read back as the same number. */
static void print_number(double value, char *text, size_t size)
{
    char point = *localeconv()->decimal_point, *p;

    for (int digits = 1; digits <= 17; digits++) {
        (void)snprintf(text, size, "%.*g", digits, value);
        if (strtod(text, NULL) == value) break;
    }
    p = strchr(text, point);
    if (p) *p = '.';
}

static void print_member(const row *r, const sps_options *opt, char *text,
                         size_t size)
{
    const void *p = member(r, opt);
    const char *word;

    *text = '\0';
    switch (r->kind) {
    case WORD:
        word = *(const char *const *)p;
        (void)snprintf(text, size, "%s", word ? word : "");
        break;
    case REAL: print_number(*(const double *)p, text, size); break;
    case INT: (void)snprintf(text, size, "%d", *(const int *)p); break;
    case BOOL:
        (void)snprintf(text, size, "%s", *(const bool *)p ? "true" : "false");
        break;
    case NORM:
        (void)nth_word(r->words, (int)*(const sps_norm *)p, text, size);
    }
}

size_t sps_options_print(const sps_options *opt, char *text, size_t size)
{
    char value[SPS_ERROR_SIZE * 4];
    size_t whole = 0;

    if (text && size) *text = '\0';
    if (!opt) return 0;
    for (int i = 0; i < ROWS; i++) {
        bool room = text && whole < size;
        int n;

        print_member(&rows[i], opt, value, sizeof value);
        n = snprintf(room ? text + whole : NULL, room ? size - whole : 0,
                     "%s=%s\n", rows[i].name, value);
        whole += (size_t)n;
    }
    return whole;
}
