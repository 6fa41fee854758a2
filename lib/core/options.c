/* SPDX-License-Identifier: BSD-3-Clause */
/* options.c - defaults and ranges of options, from their table. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/abi.h"
#include "core/options.h"
#include "core/options_table.h"
#include "io/number/nearest.h"

static void set_default(const spsi_option *row, void *opt)
{
    (void)spsi_option_set(NULL, row, opt, row->info.default_value);
}

void sps_context_options_init(sps_context_options *options, size_t size)
{
    sps_context_options defaults = {.struct_size = sizeof defaults};
    const spsi_option *row;

    for (int i = 0; (row = spsi_context_option_row(i)); i++)
        set_default(row, &defaults);
    spsi_abi_defaults(&defaults, options, size);
}

void sps_options_init(sps_options *opt, size_t size)
{
    sps_options defaults = {.struct_size = sizeof defaults};
    const spsi_option *row;

    for (int i = 0; (row = spsi_option_row(i)); i++)
        set_default(row, &defaults);
    spsi_abi_defaults(&defaults, opt, size);
}

const char *spsi_name(const char *kind, int i)
{
    static const struct { const char *kind; const char *const *names; } lists[]
        = { {"solver", spsi_solver_names},
            {"eigensolver", spsi_eigensolver_names},
            {"precond", spsi_precond_names},
            {"kernel.cpu", spsi_kernel_names_host} };
    const char *const *name = NULL;
    const spsi_option *row = !strcmp(kind, "option") ? spsi_option_row(i)
        : !strcmp(kind, "context_option") ? spsi_context_option_row(i) : NULL;

    if (row) return row->info.name;
    for (size_t l = 0; l < sizeof lists / sizeof *lists; l++)
        if (!strcmp(kind, lists[l].kind)) name = lists[l].names;
    for (; name && *name && i > 0; i--) name++;
    return name ? *name : NULL;
}

/* Returns name i of a list of words, in which "@kind" stands for all names of
 * spsi_name("kind", .). */
static const char *name_of(const char *words, int i, char word[32])
{
    for (int w = 0; spsi_option_word(words, w, word, 32); w++) {
        const char *name;

        if (*word != '@') {
            if (i-- == 0) return word;
            continue;
        }
        for (int k = 0; (name = spsi_name(word + 1, k)); k++)
            if (i-- == 0) return name;
    }
    return NULL;
}

static bool is_known(const char *words, const char *text)
{
    const char *name;
    char word[32];

    for (int i = 0; (name = name_of(words, i, word)); i++)
        if (strcmp(name, text) == 0) return true;
    return false;
}

sps_status spsi_option_check_text(sps_context *ctx, const spsi_option *row,
                                  const char *text)
{
    const char *words = row->info.words, *name;
    char word[32], near[32] = "", all[SPS_ERROR_SIZE / 2] = "";
    int limit = INT_MAX;
    size_t n = 0;

    if (row->info.type != SPS_OPTION_WORD || is_known(words, text))
        return SPS_OK;
    for (int i = 0; (name = name_of(words, i, word)); i++) {
        if (spsi_nearer(text, name, &limit))
            (void)snprintf(near, sizeof near, "%s", name);
        if (n < sizeof all)
            n += (size_t)snprintf(all + n, sizeof all - n, "%s%s",
                                  i ? ", " : "", name);
    }
    if (*near)
        return spsi_fail(ctx, SPS_EINVAL,
                         "%s=%.60s: unknown name; did you mean %s?",
                         row->info.name, text, near);
    return spsi_fail(ctx, SPS_EINVAL, "%s=%.60s: unknown name (known: %s)",
                     row->info.name, text, all);
}

sps_status spsi_option_check_number(sps_context *ctx, const spsi_option *row,
                                    double value)
{
    const sps_option_info *info = &row->info;

    if (value >= info->low && value <= info->high && fabs(value) < HUGE_VAL)
        return SPS_OK; /* NaN fails both */
    if (info->low > -HUGE_VAL && info->high < HUGE_VAL)
        return spsi_fail(ctx, SPS_EINVAL, "%s=%.10g: it must lie in %.10g to "
                         "%.10g", info->name, value, info->low, info->high);
    if (info->low > -HUGE_VAL)
        return spsi_fail(ctx, SPS_EINVAL, "%s=%g: it must be at least %g and "
                         "finite", info->name, value, info->low);
    return spsi_fail(ctx, SPS_EINVAL, "%s=%g: it must be finite", info->name,
                     value);
}

static sps_status check_member(sps_context *ctx, const spsi_option *row,
                               const void *opt)
{
    const void *p = spsi_option_member(row, opt);
    char word[32];

    if (spsi_option_is_text(row))
        return spsi_option_check_text(ctx, row, *(const char *const *)p);
    if (row->numbered) {
        const int number = (int)*(const sps_norm *)p;

        if (number >= 0 &&
            spsi_option_word(row->info.words, number, word, sizeof word))
            return SPS_OK;
        return spsi_fail(ctx, SPS_EINVAL, "%s=%d is out of range: use the "
                         "position, counted from 0, of one of: %s",
                         row->info.name, number, row->info.words);
    }
    if (row->info.type == SPS_OPTION_REAL)
        return spsi_option_check_number(ctx, row, *(const double *)p);
    if (row->info.type == SPS_OPTION_INTEGER)
        return spsi_option_check_number(ctx, row, *(const int *)p);
    return SPS_OK;
}

sps_status spsi_context_options_check(sps_context *ctx,
                                      const sps_context_options *o)
{
    const spsi_option *row;
    sps_status st = SPS_OK;

    for (int i = 0; st == SPS_OK && (row = spsi_context_option_row(i)); i++)
        st = check_member(ctx, row, o);
    return st;
}

/* Rejects basis and precond_precision, set by a program built against 0.1. */
static sps_status check_before_0_2(sps_context *ctx, const sps_options *opt)
{
    static const char *const name[] = {"basis", "precond_precision"};
    sps_status st = SPS_OK;

    for (int i = 0; i < 2; i++) {
        const char *word = opt->before_0_2[i];

        SPS_REQUIRE(ctx, !word || !strcmp(word, "auto"), SPS_EINVAL,
                    "sps_options.%s=%.60s: since version 0.2 it is a word of "
                    "precision: double, mixed, single_basis, single_precond",
                    name[i], word);
    }
fail:
    return st;
}

/* A block of another context may be in other memory (host or device), and
 * another thread may free it.  The first member of a block is its context. */
static sps_status check_blocks(sps_context *ctx, const sps_options *opt)
{
    const struct { const char *name; const void *X; } blocks[] = {
        {"nullspace_basis", opt->nullspace_basis},
        {"coords", opt->coords},
        {"constraints", opt->constraints},
        {"near_null_basis", opt->near_null_basis},
    };
    sps_status st = SPS_OK;

    for (int i = 0; i < 4; i++)
        SPS_REQUIRE(ctx, !blocks[i].X ||
                    *(sps_context *const *)blocks[i].X == ctx, SPS_EINVAL,
                    "sps_options.%s is a block of another context: make it in "
                    "the one of the matrix", blocks[i].name);
fail:
    return st;
}

static bool is_missing(const spsi_option *row, const sps_options *opt,
                       size_t size)
{
    return row->info.offset >= size ||
           (spsi_option_is_text(row) &&
            !*(const char *const *)spsi_option_member(row, opt));
}

sps_status spsi_options_take(sps_context *ctx, const sps_options *opt,
                             sps_options *out)
{
    const spsi_option *row;
    sps_options taken = {.struct_size = sizeof taken};
    size_t size = 0;
    sps_status st = SPS_OK;

    if (opt) {
        SPS_TRY(SPS_ABI_CHECK(ctx, sps_options, opt));
        spsi_abi_copy(opt, &taken);
        size = opt->struct_size;
    }
    SPS_TRY(check_before_0_2(ctx, &taken));
    SPS_TRY(check_blocks(ctx, &taken));
    for (int i = 0; (row = spsi_option_row(i)); i++)
        if (is_missing(row, &taken, size)) set_default(row, &taken);
        else SPS_TRY(check_member(ctx, row, &taken));
    *out = taken;
fail:
    return st;
}

bool spsi_options_single(const sps_options *opt, const char *what)
{
    return !strcmp(opt->precision, what) || !strcmp(opt->precision, "mixed");
}
