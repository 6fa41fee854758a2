/* SPDX-License-Identifier: BSD-3-Clause */
/* options_text.c - options by name and as text, and allocated options for
 * callers that do not know the layout of the struct. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/abi.h"
#include "io/number/number.h"
#include "core/options.h"
#include "core/options_table.h"

enum { LONGEST = SPS_ERROR_SIZE * 4 };
/* Size of the options of 0.1, which include blocks and monitor, and with all
 * blocks. */
enum {
    BLOCKS = offsetof(sps_options, monitor_data) + sizeof(void *),
    ALL_BLOCKS = offsetof(sps_options, near_null_basis) + sizeof(void *)
};

/* ------------------------------------------------------------- stored texts */

/* The stored texts are a list: a pointer to the previous text precedes each;
 * ctx->strings is the last one.  Equal texts are stored once. */
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

/* ------------------------------------------------------------ text to value */

/* Accepts finite numbers, and numbers beyond the range of doubles, which become
 * infinite and are rejected by the range check. */
static bool read_number(const char *text, double *value)
{
    char copy[64] = ""; /* the parser reads up to 8 bytes past the number */
    size_t length = strlen(text);
    spsi_number kind;
    const char *end;

    if (length + 9 > sizeof copy) return false;
    memcpy(copy, text, length);
    end = spsi_number_double(copy, value, &kind);
    return end != copy && !*end && kind != SPSI_NUMBER_NOT_FINITE &&
           kind != SPSI_NUMBER_NONE;
}

static bool read_boolean(const char *text, bool *value)
{
    static const char *const words = "false true no yes off on 0 1";
    char word[8];

    for (int i = 0; spsi_option_word(words, i, word, sizeof word); i++)
        if (strcmp(word, text) == 0) {
            *value = i % 2 == 1;
            return true;
        }
    return false;
}

static sps_status set_number(sps_context *ctx, const spsi_option *row, void *p,
                             const char *text)
{
    const char *name = row->info.name;
    double value;
    sps_status st;

    SPS_REQUIRE(ctx, read_number(text, &value), SPS_EINVAL,
                "%s=%.60s: a number is expected", name, text);
    SPS_TRY(spsi_option_check_number(ctx, row, value));
    if (row->info.type == SPS_OPTION_REAL) {
        *(double *)p = value;
    } else {
        SPS_REQUIRE(ctx, value == floor(value), SPS_EINVAL,
                    "%s=%.60s: a whole number is expected", name, text);
        if (row->info.type == SPS_OPTION_INTEGER) *(int *)p = (int)value;
        else *(uint64_t *)p = (uint64_t)value;
    }
    return SPS_OK;
fail:
    return st;
}

/* Stores a text.  An empty one, as in "wisdom=", restores the default; an empty
 * default is stored as NULL. */
static sps_status set_text(sps_context *ctx, const spsi_option *row,
                           const char **p, const char *text)
{
    const char *preset = row->info.default_value;
    sps_status st;

    if (!*text || !ctx) {
        *p = *preset ? preset : NULL;
        return SPS_OK;
    }
    SPS_TRY(spsi_option_check_text(ctx, row, text));
    SPS_TRY(keep(ctx, text, p));
    return SPS_OK;
fail:
    return st;
}

static sps_status set_word_number(sps_context *ctx, const spsi_option *row,
                                  sps_norm *p, const char *text)
{
    char word[32];

    for (int i = 0; spsi_option_word(row->info.words, i, word, sizeof word);
         i++)
        if (strcmp(word, text) == 0) {
            *p = (sps_norm)i;
            return SPS_OK;
        }
    return spsi_option_check_text(ctx, row, text);
}

sps_status spsi_option_set(sps_context *ctx, const spsi_option *row, void *opt,
                           const char *text)
{
    void *p = spsi_option_member(row, opt);

    if (row->numbered) return set_word_number(ctx, row, p, text);
    if (spsi_option_is_text(row)) return set_text(ctx, row, p, text);
    if (row->info.type != SPS_OPTION_BOOLEAN)
        return set_number(ctx, row, p, text);
    if (read_boolean(text, p)) return SPS_OK;
    return spsi_fail(ctx, SPS_EINVAL, "%s=%.60s: true or false is expected",
                     row->info.name, text);
}

/* Translates basis and precond_precision of 0.1, each auto, double or single,
 * to the equivalent value of precision.  Both single is mixed. */
static sps_status set_before_0_2(sps_context *ctx, sps_options *opt,
                                 const char *name, const char *text)
{
    static const char *const words[] = {"double", "single_basis",
                                        "single_precond", "mixed"};
    const int bit = spsi_option_before_0_2(name);
    const bool single = !strcmp(text, "single");
    int now = 0;
    sps_status st = SPS_OK;

    SPS_REQUIRE(ctx, single || !strcmp(text, "double") || !strcmp(text, "auto"),
                SPS_EINVAL, "%s=%.60s: unknown name (known: auto, double, "
                "single); use the option precision instead", name, text);
    if (!strcmp(text, "auto")) return SPS_OK;
    for (int i = 0; i < 4; i++)
        if (!strcmp(opt->precision, words[i])) now = i;
    opt->precision = words[single ? now | bit : now & ~bit];
fail:
    return st;
}

/* Sets one option in `all`, a struct of full length.  The caller's has only its
 * first `size` bytes: EINVAL if the option's member is not among them. */
static sps_status set_named(sps_context *ctx, sps_options *all, size_t size,
                            const char *name, const char *text)
{
    const spsi_option *row = spsi_option_find(ctx, name);
    sps_status st = SPS_OK;

    if (!row) return SPS_EINVAL;
    SPS_REQUIRE(ctx, row->info.offset < size, SPS_EINVAL,
                "sps_options of %zu bytes "
                "has no %s: the program was built against an older version",
                size, row->info.name);
    return spsi_option_before_0_2(name) ? set_before_0_2(ctx, all, name, text)
                                        : spsi_option_set(ctx, row, all, text);
fail:
    return st;
}

sps_status sps_options_set(sps_context *ctx, sps_options *opt,
                           const char *name, const char *text)
{
    sps_options now;
    sps_status st;

    SPS_HANDLE(ctx);
    SPS_REQUIRE(ctx, opt && name && text, SPS_EINVAL,
                "sps_options_set: NULL argument");
    SPS_TRY(spsi_options_take(ctx, opt, &now));
    SPS_TRY(set_named(ctx, &now, opt->struct_size, name, text));
    spsi_abi_copy(&now, opt);
fail:
    return st;
}

/* ------------------------------------------------------------------ parsing */

/* Skips blanks and tabs, but no newline. */
static const char *skip_blanks(const char *text)
{
    return text + strspn(text, " \t");
}

static const char *skip_gaps(const char *text)
{
    for (;;) {
        text += strspn(text, " \t\r\n,");
        if (*text != '#') return text;
        text += strcspn(text, "\n");
    }
}

/* *begin is the value after '=', which blanks may precede; returns its length.
 * If the word after the blanks is itself followed by '=', as in "wisdom=
 * rtol=1", that word is the next name, and the value is empty. */
static size_t value_length(const char *text, const char **begin)
{
    const char *value = skip_blanks(text);
    size_t length = strcspn(value, " \t\r\n,#");

    *begin = value;
    if (value == text) return length;
    if (memchr(value, '=', length) || *skip_blanks(value + length) == '=') {
        *begin = text;
        return 0;
    }
    return length;
}

/* Splits the first "name = value" off the text. */
static sps_status split(sps_context *ctx, const char **text_p, char *name,
                        char *value)
{
    const char *text = *text_p, *equals, *begin;
    size_t length = strcspn(text, " \t\r\n,#="), behind;
    sps_status st;

    equals = skip_blanks(text + length);
    SPS_REQUIRE(ctx, *equals == '=', SPS_EINVAL,
                "\"%.*s\" is not name=value",
                (int)(length < 60 ? length : 60), text);
    behind = value_length(equals + 1, &begin);
    SPS_REQUIRE(ctx, length < LONGEST && behind < LONGEST, SPS_EINVAL,
                "an option of %zu letters; at most %d", length + behind,
                LONGEST - 1);
    memcpy(name, text, length);
    name[length] = '\0';
    memcpy(value, begin, behind);
    value[behind] = '\0';
    *text_p = begin + behind;
    return SPS_OK;
fail:
    return st;
}

/* Applies all options of the text, or none of them. */
sps_status sps_options_parse(sps_context *ctx, sps_options *opt,
                             const char *text)
{
    char name[LONGEST], value[LONGEST];
    sps_options now;
    sps_status st;

    SPS_HANDLE(ctx);
    SPS_REQUIRE(ctx, opt, SPS_EINVAL, "opt is NULL");
    SPS_REQUIRE(ctx, text, SPS_EINVAL, "the text of options is NULL");
    SPS_TRY(spsi_options_take(ctx, opt, &now));
    for (text = skip_gaps(text); *text; text = skip_gaps(text)) {
        SPS_TRY(split(ctx, &text, name, value));
        SPS_TRY(set_named(ctx, &now, opt->struct_size, name, value));
    }
    spsi_abi_copy(&now, opt);
fail:
    return st;
}

/* ----------------------------------------------------------------- printing */

/* Prints the value as text, truncated to `size`; returns its full length. */
static size_t print_value(const spsi_option *row, const sps_options *opt,
                          char *text, size_t size)
{
    const void *p = spsi_option_member(row, opt);
    char number[SPSI_NUMBER_WIDTH + 1] = "";
    const char *value = number;

    if (row->numbered)
        (void)spsi_option_word(row->info.words, (int)*(const sps_norm *)p,
                               number, sizeof number);
    else if (spsi_option_is_text(row))
        value = *(const char *const *)p;
    else if (row->info.type == SPS_OPTION_BOOLEAN)
        value = *(const bool *)p ? "true" : "false";
    else if (row->info.type == SPS_OPTION_REAL)
        number[spsi_number_print(*(const double *)p, number)] = '\0';
    else
        (void)snprintf(number, sizeof number, "%d", *(const int *)p);
    return (size_t)snprintf(text, size, "%s", value ? value : "");
}

size_t sps_options_print(const sps_options *opt, char *text, size_t size)
{
    const spsi_option *row;
    sps_options all; /* opt may be shorter */
    size_t whole = 0;

    if (text && size) *text = '\0';
    if (!opt || opt->struct_size < sizeof opt->struct_size) return 0;
    sps_options_default(&all);
    spsi_abi_copy(opt, &all);
    for (int i = 0; (row = spsi_option_row(i)); i++) {
        const char *pieces[] = {row->info.name, "=", NULL, "\n"};

        for (int k = 0; k < 4; k++) {
            bool room = text && whole < size;
            char *to = room ? text + whole : NULL;
            size_t left = room ? size - whole : 0;

            whole += pieces[k] ? (size_t)snprintf(to, left, "%s", pieces[k])
                               : print_value(row, &all, to, left);
        }
    }
    return whole;
}

sps_status sps_options_get(sps_context *ctx, const sps_options *opt,
                           const char *name, char *text, size_t size)
{
    const spsi_option *row;
    sps_options all;
    size_t length;
    sps_status st;

    SPS_HANDLE(ctx);
    SPS_REQUIRE(ctx, opt && name && (text || !size), SPS_EINVAL,
                "sps_options_get: NULL argument");
    SPS_TRY(spsi_options_take(ctx, opt, &all));
    row = spsi_option_find(ctx, name);
    if (!row) return SPS_EINVAL;
    length = print_value(row, &all, text, size);
    SPS_REQUIRE(ctx, length < size, SPS_EINVAL,
                "the value of %s needs %zu bytes, the buffer has %zu",
                row->info.name, length + 1, size);
    return SPS_OK;
fail:
    return st;
}

/* -------------------------------------------------------- allocated options */

sps_status sps_options_create(sps_context *ctx, sps_options **opt_p)
{
    sps_options *opt = NULL;
    sps_status st;

    SPS_HANDLE(ctx);
    SPS_REQUIRE(ctx, opt_p, SPS_EINVAL, "opt_p is NULL");
    SPS_TRY(SPS_NEW(ctx, 1, &opt));
    sps_options_default(opt);
    ctx->live++;
    *opt_p = opt;
    return SPS_OK;
fail:
    return st;
}

void sps_options_destroy(sps_context *ctx, sps_options **opt_p)
{
    if (!ctx || !opt_p || !*opt_p) return;
    spsi_free(ctx, *opt_p);
    *opt_p = NULL;
    ctx->live--;
}

sps_status sps_options_set_block(sps_context *ctx, sps_options *opt,
                                 const char *name, const sps_block *X)
{
    sps_status st;

    SPS_HANDLE(ctx);
    SPS_REQUIRE(ctx, opt && name, SPS_EINVAL,
                "sps_options_set_block: NULL argument");
    SPS_REQUIRE(ctx, opt->struct_size >=
                (strcmp(name, "near_null_basis") ? BLOCKS : ALL_BLOCKS),
                SPS_EINVAL, "struct_size "
                "of the options is %zu, too small for an array: call "
                "sps_options_default first", opt->struct_size);
    if (strcmp(name, "nullspace_basis") == 0)
        opt->nullspace_basis = X;
    else if (strcmp(name, "coords") == 0)
        opt->coords = X;
    else if (strcmp(name, "constraints") == 0)
        opt->constraints = X;
    else if (strcmp(name, "near_null_basis") == 0)
        opt->near_null_basis = X;
    else
        return spsi_fail(ctx, SPS_EINVAL, "no block \"%.60s\" among the "
                         "options; they are nullspace_basis, coords, "
                         "constraints and near_null_basis", name);
    return SPS_OK;
fail:
    return st;
}

sps_status sps_options_set_monitor(sps_context *ctx, sps_options *opt,
                                   sps_monitor_fn monitor, void *data)
{
    sps_status st;

    SPS_HANDLE(ctx);
    SPS_REQUIRE(ctx, opt, SPS_EINVAL, "opt is NULL");
    SPS_REQUIRE(ctx, opt->struct_size >= BLOCKS, SPS_EINVAL, "struct_size "
                "of the options is %zu, too small for a monitor: call "
                "sps_options_default first", opt->struct_size);
    opt->monitor = monitor;
    opt->monitor_data = data;
    return SPS_OK;
fail:
    return st;
}
