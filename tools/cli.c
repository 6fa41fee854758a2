/* SPDX-License-Identifier: BSD-3-Clause */
/* cli.c - reads the command line by the table of options.c.  Names are exact:
 * no abbreviations (they turn -n 4 into -nrhs 4), no double dash, and an
 * unknown name is an error with the nearest known one. */
#include "cli.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { WORD = 64 };

/* Texts of the -config file live as long as the program. */
static char *config_text;

CLI_PRINTF(3, 4)
static int fail(char *error, size_t size, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    vsnprintf(error, size, format, list);
    va_end(list);
    return EXIT_USAGE;
}

const char *cli_choice(const cli_option *o, int i, char *word, size_t size)
{
    const char *p = o->choices ? o->choices : "";

    for (;;) {
        p += strspn(p, " ");
        size_t length = strcspn(p, " ");
        if (length == 0) return NULL;
        snprintf(word, size, "%.*s", (int)length, p);
        if (word[0] == '@') {
            char kind[WORD];
            const char *name;
            snprintf(kind, sizeof kind, "%s", word + 1);
            for (int j = 0; (name = sps_list(NULL, kind, j)) != NULL; j++) {
                if (strcmp(name, "auto") == 0) continue;
                if (i-- == 0) return snprintf(word, size, "%s", name), word;
            }
        } else if (i-- == 0) {
            return word;
        }
        p += length;
    }
}

static int table_size(void)
{
    int n = 0;

    while (cli_options[n].name) n++;
    return n;
}

static const cli_option *find(const char *name, size_t length)
{
    for (const cli_option *o = cli_options; o->name; o++)
        if (strlen(o->name) == length && strncmp(o->name, name, length) == 0)
            return o;
    return NULL;
}

/* "unknown option X", with the nearest known one when there is one. */
static int unknown(const char *word, const char *what, const char *dash,
                   char *error, size_t size)
{
    const char *names[WORD * 2], *near = NULL;
    char plain[WORD];
    int n = table_size();

    word += strspn(word, "-");
    snprintf(plain, sizeof plain, "%.*s", (int)strcspn(word, "="), word);
    for (int i = 0; i < n; i++) names[i] = cli_options[i].name;
    if (find(plain, strlen(plain))) near = find(plain, strlen(plain))->name;
    if (!near) near = cli_alias(plain);
    if (!near) near = cli_nearest(plain, names, n);
    if (near)
        return fail(error, size, "unknown option %s; did you mean %s%s?",
                    what, dash, near);
    return fail(error, size, "unknown option %s; 'solve -help' lists all",
                what);
}

static int bad_choice(const cli_option *o, const char *text, char *error,
                      size_t size)
{
    char words[WORD][WORD], all[1024] = "";
    const char *names[WORD];
    int n = 0;

    while (n < WORD && cli_choice(o, n, words[n], WORD)) {
        names[n] = words[n];
        size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, "%s%s", n ? ", " : "",
                 words[n]);
        n++;
    }
    const char *near = cli_nearest(text, names, n);
    if (near)
        return fail(error, size, "-%s: unknown name '%s'; did you mean %s?",
                    o->name, text, near);
    return fail(error, size, "-%s: unknown name '%s'; known are %s", o->name,
                text, all);
}

static int set_number(const cli_option *o, const char *text, void *member,
                      char *error, size_t size)
{
    char *end;

    errno = 0;
    if (o->kind == CLI_INT) {
        long long x = strtoll(text, &end, 10);
        if (end == text || *end)
            return fail(error, size, "-%s: '%s' is not a whole number",
                        o->name, text);
        if (errno || (double)x < o->min || (double)x > o->max)
            return fail(error, size, "-%s: %s is outside %.0f .. %.0f",
                        o->name, text, o->min, o->max);
        *(int *)member = (int)x;
        return 0;
    }
    double x = strtod(text, &end);
    if (end == text || *end || !isfinite(x))
        return fail(error, size, "-%s: '%s' is not a number", o->name, text);
    if (x < o->min || x > o->max)
        return fail(error, size, "-%s: %s is outside %g .. %g", o->name, text,
                    o->min, o->max);
    *(double *)member = x;
    return 0;
}

static int set_natural(const cli_option *o, const char *text, uint64_t *member,
                       char *error, size_t size)
{
    char *end = NULL;
    unsigned long long x = 0;
    int shift = 0;

    errno = 0;
    if (isdigit((unsigned char)text[0])) x = strtoull(text, &end, 10);
    if (end && *end && o->kind == CLI_SIZE) {
        const char *unit = strchr("KMGT", toupper((unsigned char)*end));
        if (unit) shift = 10 * (1 + (int)(unit - "KMGT")), end++;
    }
    if (!end || *end || errno || (shift && x >> (64 - shift)))
        return fail(error, size, "-%s: '%s' is not a %s", o->name, text,
                    o->kind == CLI_SIZE ? "number of bytes"
                                        : "whole number of at most 64 bits");
    *member = (uint64_t)x << shift;
    return 0;
}

static int set_flag(const cli_option *o, const char *text, bool *member,
                    char *error, size_t size)
{
    static const char *const yes[] = {"", "yes", "true", "on", "1"};
    static const char *const no[] = {"no", "false", "off", "0"};

    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        if (strcmp(text, yes[i]) == 0) return *member = true, 0;
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        if (strcmp(text, no[i]) == 0) return *member = false, 0;
    return fail(error, size, "-%s: '%s' is neither yes nor no", o->name, text);
}

static int set(const cli_option *o, const char *text, cli_values *v,
               char *error, size_t size)
{
    void *member = (char *)v + o->offset;
    char word[WORD];
    const char *known;

    switch (o->kind) {
    case CLI_FLAG: return set_flag(o, text, member, error, size);
    case CLI_INT:
    case CLI_REAL: return set_number(o, text, member, error, size);
    case CLI_SIZE:
    case CLI_NATURAL: return set_natural(o, text, member, error, size);
    case CLI_CHOICE:
        for (int i = 0; (known = cli_choice(o, i, word, sizeof word)); i++)
            if (strcmp(known, text) == 0) break;
        if (!known) return bad_choice(o, text, error, size);
        break;
    case CLI_FILE:
        if (!*text)
            return fail(error, size, "-%s: the name is empty", o->name);
        break;
    case CLI_TEXT:
    case CLI_OPTIONAL: break;
    }
    *(const char **)member = text;
    return 0;
}

static void defaults(cli_values *v)
{
    char none[1];

    memset(v, 0, sizeof *v);
    for (const cli_option *o = cli_options; o->name; o++)
        if (o->standard) set(o, o->standard, v, none, sizeof none);
}

/* One argument, with the next when the option takes a value; *used says how
 * many were read. */
static int argument(char **arg, cli_values *v, int *used, char *error,
                    size_t size)
{
    const char *name = arg[0] + 1, *equals = strchr(arg[0], '=');
    size_t length = equals ? (size_t)(equals - name) : strlen(name);
    const cli_option *o = arg[0][0] == '-' ? find(name, length) : NULL;
    const char *value = equals ? equals + 1 : "";

    *used = 1;
    if (arg[0][0] != '-' || arg[0][1] == 0)
        return fail(error, size,
                    "'%s' is not an option; the matrix is given by -A FILE",
                    arg[0]);
    if (!o) return unknown(name, arg[0], "-", error, size);
    if (o->kind == CLI_FLAG && equals)
        return fail(error, size, "-%s takes no value", o->name);
    if (o->kind != CLI_FLAG && o->kind != CLI_OPTIONAL && !equals) {
        const char *next = arg[1];
        if (!next || (next[0] == '-' && find(next + 1, strlen(next + 1))))
            return fail(error, size, "-%s needs a value: -%s %s", o->name,
                        o->name, o->arg);
        value = next;
        *used = 2;
    }
    if (o->offset == offsetof(cli_values, nrhs)) v->given_nrhs = true;
    if (o->offset == offsetof(cli_values, sigma)) v->given_sigma = true;
    return set(o, value, v, error, size);
}

static int arguments(int argc, char **argv, cli_values *v, char *error,
                     size_t size)
{
    int used = 0, code = 0;

    for (int i = 1; i < argc && code == 0; i += used)
        code = argument(argv + i, v, &used, error, size);
    return code;
}

/* Whole file as a string; NULL when it cannot be read. */
static char *slurp(const char *path)
{
    FILE *f = fopen(path, "rb");
    size_t size = 0, room = 4096;
    char *text = f ? malloc(room) : NULL;

    while (text) {
        size += fread(text + size, 1, room - size - 1, f);
        if (size + 1 < room) break;
        char *more = room < (1u << 24) ? realloc(text, room *= 2) : NULL;
        if (!more) free(text);
        text = more;
    }
    if (text && ferror(f)) {
        free(text);
        text = NULL;
    }
    if (text) text[size] = 0;
    if (f) fclose(f);
    return text;
}

static char *trim(char *s)
{
    char *end;

    while (isspace((unsigned char)*s)) s++;
    end = s + strlen(s);
    while (end > s && isspace((unsigned char)end[-1])) *--end = 0;
    return s;
}

/* "name = value", "name value" or "name"; '#' begins a comment. */
static int config_line(char *line, const char *where, cli_values *v,
                       char *error, size_t size)
{
    char text[512];
    int code;

    line[strcspn(line, "#")] = 0;
    line = trim(line);
    if (!*line) return 0;
    size_t length = strcspn(line, "= \t");
    char *value = line + length;
    while (*value == ' ' || *value == '\t') value++;
    if (*value == '=') value++;
    value = trim(value);
    const char *name = line + (line[0] == '-');
    const cli_option *o = find(name, (size_t)(line + length - name));
    line[length] = 0;
    if (o && o->offset == offsetof(cli_values, config))
        code = fail(text, sizeof text, "a configuration names no other one");
    else if (!o)
        code = unknown(name, name, "", text, sizeof text);
    else if (o->kind != CLI_FLAG && o->kind != CLI_OPTIONAL && !*value)
        code = fail(text, sizeof text, "%s needs a value", o->name);
    else
        code = set(o, value, v, text, sizeof text);
    if (o && o->offset == offsetof(cli_values, nrhs)) v->given_nrhs = true;
    if (o && o->offset == offsetof(cli_values, sigma)) v->given_sigma = true;
    return code ? fail(error, size, "%s: %s", where, text) : 0;
}

static int configuration(const char *path, cli_values *v, char *error,
                         size_t size)
{
    char where[512], *next;
    int number = 0, code = 0;

    free(config_text);
    config_text = slurp(path);
    if (!config_text) {
        fail(error, size, "%s: %s", path, strerror(errno));
        return EXIT_INPUT;
    }
    for (char *line = config_text; line && code == 0; line = next) {
        next = strchr(line, '\n');
        if (next) *next++ = 0;
        snprintf(where, sizeof where, "%s:%d", path, ++number);
        code = config_line(line, where, v, error, size);
    }
    return code;
}

/* "auto", "cpu", "cuda", "cuda:N". */
static int device(cli_values *v, char *error, size_t size)
{
    const char *d = v->device;
    char *end;

    v->ordinal = 0;
    if (strcmp(d, "auto") == 0) return v->place = SPS_AUTO, 0;
    if (strcmp(d, "cpu") == 0) return v->place = SPS_HOST, 0;
    v->place = SPS_CUDA;
    if (strcmp(d, "cuda") == 0) return 0;
    if (strncmp(d, "cuda:", 5) == 0 && isdigit((unsigned char)d[5])) {
        long n = strtol(d + 5, &end, 10);
        if (*end == 0 && n < 1024) return v->ordinal = (int)n, 0;
    }
    if (strncasecmp(d, "gpu", 3) == 0 || strncmp(d, "cuda:", 5) == 0)
        return fail(error, size, "-device: unknown name '%s'; known are auto, "
                                 "cpu, cuda, cuda:N", d);
    for (const cli_option *o = cli_options; o->name; o++)
        if (o->offset == offsetof(cli_values, device))
            return bad_choice(o, d, error, size);
    return EXIT_BUG;
}

static bool same(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

/* Each output is a file of its own, and none of them is a matrix; the table
 * of -monitor is opened before anything is read.  X may replace B or x0. */
static int outputs_apart(const cli_values *v, char *error, size_t size)
{
    const char *const path[] = {v->out, v->json, v->plot, v->monitor, v->A,
                                v->mass, v->monitor ? v->B : NULL,
                                v->monitor ? v->x0 : NULL};
    static const char *const name[] = {"o", "json", "plot", "monitor", "A",
                                       "M", "B", "x0"};

    for (int i = 0; i < 4; i++)
        for (int k = i < 3 ? i + 1 : 4; k < (i < 3 ? 6 : 8); k++)
            if (same(path[i], path[k]) && strcmp(path[i], "-") != 0 &&
                strncmp(path[i], "/dev/", 5) != 0)
                return fail(error, size, "-%s and -%s name the same file, %s",
                            name[i], name[k], path[i]);
    return 0;
}

/* Rules between options. */
static int together(cli_values *v, char *error, size_t size)
{
    static const char *const norms[] = {"rhs", "backward", "start",
                                        "absolute"};
    int inputs = same(v->A, "-") + same(v->B, "-") + same(v->x0, "-") +
                 same(v->nullspace, "-") + same(v->mass, "-") +
                 same(v->constraints, "-") + same(v->rigid_body, "-") +
                 same(v->coords, "-");
    char text[160];
    int outputs = same(v->out, "-") + same(v->json, "-") +
                  same(v->plot, "-") + same(v->monitor, "-");

    for (int i = 0; i < 4; i++)
        if (same(v->norm, norms[i])) v->norm_kind = (sps_norm)i;
    if (!v->A)
        return fail(error, size, "no matrix: say -A FILE ('solve -help' "
                                 "lists all options)");
    if (inputs > 1)
        return fail(error, size, "standard input can serve only one of -A, "
                                 "-B, -M, -Y, -x0, -nullspace, "
                                 "-rigid-body and -coords");
    if (same(v->reorder, "morton") && !v->coords)
        return fail(error, size, "-reorder morton goes by the places of the "
                                 "nodes: say -coords FILE");
    if (cli_eigen_fault(v, text, sizeof text))
        return fail(error, size, "%s", text);
    if (v->rigid_body && !same(v->nullspace, "auto"))
        return fail(error, size, "-rigid-body is a null space: leave "
                                 "-nullspace %s away", v->nullspace);
    if (outputs > 1)
        return fail(error, size, "standard output can serve only one of -o, "
                                 "-json, -plot and -monitor");
    if (v->norm_kind == SPS_NORM_ABSOLUTE && v->atol <= 0)
        return fail(error, size, "-norm absolute needs -atol X above 0");
    if (v->rtol <= 0 && v->atol <= 0)
        return fail(error, size, "-rtol or -atol must be above 0");
    if (outputs_apart(v, error, size)) return EXIT_USAGE;
    return device(v, error, size);
}

int cli_parse(int argc, char **argv, cli_values *v, char *error, size_t size)
{
    int code;

    defaults(v);
    code = arguments(argc, argv, v, error, size);
    if (code) return code;
    if (v->config) {
        const char *path = v->config;
        defaults(v);
        code = configuration(path, v, error, size);
        if (code == 0) code = arguments(argc, argv, v, error, size);
        if (code) return code;
    }
    if (v->help) {
        if (!*v->help || same(v->help, "man") || same(v->help, "completion"))
            return 0;
        return fail(error, size, "-help=%s: known are man and completion",
                    v->help);
    }
    if (v->version || v->list) return device(v, error, size);
    return together(v, error, size);
}

void cli_free(void)
{
    free(config_text);
    config_text = NULL;
}

const char *cli_text(const cli_option *o, const cli_values *v, char *text,
                     size_t size)
{
    const void *member = (const char *)v + o->offset;

    switch (o->kind) {
    case CLI_FLAG:
        snprintf(text, size, "%s", *(const bool *)member ? "true" : "false");
        return text;
    case CLI_INT: snprintf(text, size, "%d", *(const int *)member); return text;
    case CLI_REAL:
        snprintf(text, size, "%.17g", *(const double *)member);
        for (int digits = 1; digits < 17; digits++) {
            char shorter[40];
            snprintf(shorter, sizeof shorter, "%.*g", digits,
                     *(const double *)member);
            if (strtod(shorter, NULL) == *(const double *)member)
                return snprintf(text, size, "%s", shorter), text;
        }
        return text;
    case CLI_SIZE:
    case CLI_NATURAL:
        snprintf(text, size, "%llu",
                 (unsigned long long)*(const uint64_t *)member);
        return text;
    case CLI_TEXT:
    case CLI_FILE:
    case CLI_CHOICE:
    case CLI_OPTIONAL: break;
    }
    return *(const char *const *)member;
}
