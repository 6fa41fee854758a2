/* SPDX-License-Identifier: BSD-3-Clause */
/* cli.c - reads the command line by the table of cli_table.c.  An option begins
 * with one dash or two; its value follows '=' or is the next argument.  Names
 * must be exact (abbreviations would turn -n 4 into -nrhs 4); the error text
 * for an unknown name suggests the nearest one.  Values of the library's
 * options are read and checked by the library. */
#include "io/number/nearest.h"
#include "tools/command/cli.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORD = 64 };

/* Text of the -config file, and the context with which the library reads its
 * options.  That context owns the texts of the options, which the context of
 * the solve uses. */
static char *config_text;
static sps_context *reader;

int cli_fail(char *error, size_t size, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    vsnprintf(error, size, format, list);
    va_end(list);
    return EXIT_USAGE;
}

/* Returns the name of o as it is typed, with dashes; valid until the next
 * call. */
static const char *typed(const cli_option *o)
{
    static char text[WORD];

    return cli_dashed(o->name, text, sizeof text);
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

/* Returns the option whose name or alias is nearest to the word, or NULL. */
static const char *nearest(const char *word)
{
    const char *near = NULL;
    const cli_option *o;
    char alias[WORD];
    int limit = INT_MAX, used;

    for (int i = 0; (o = cli_row(i)); i++) {
        if (spsi_nearer(word, o->name, &limit)) near = o->name;
        for (const char *a = o->aliases ? o->aliases : "";
             sscanf(a, "%63s%n", alias, &used) == 1; a += used)
            if (spsi_nearer(word, alias, &limit)) near = o->name;
    }
    return near;
}

/* Fails with "unknown option X" and, if there is one, the nearest known
 * name. */
static int unknown(const char *word, const char *what, char *error,
                   size_t size)
{
    char plain[WORD], dashed[WORD];
    const char *near;

    word += strspn(word, "-");
    snprintf(plain, sizeof plain, "%.*s", (int)strcspn(word, "="), word);
    for (char *p = plain; *p; p++)
        if (*p == '-') *p = '_';
    near = cli_alias(plain);
    if (!near) near = nearest(plain);
    if (near)
        return cli_fail(error, size, "unknown option %s; did you mean %s?",
                        what, cli_dashed(near, dashed, sizeof dashed));
    return cli_fail(error, size, "unknown option %s; '" CLI_PROGRAM
                                 " -help' lists all", what);
}

static int set_whole(const cli_option *o, const char *text, int *member,
                     char *error, size_t size)
{
    char *end;
    long long x;

    errno = 0;
    x = strtoll(text, &end, 10);
    if (end == text || *end)
        return cli_fail(error, size, "%s: '%s' is not a whole number",
                        typed(o), text);
    if (errno || (double)x < o->min || (double)x > o->max)
        return cli_fail(error, size, "%s: %s is outside %.0f .. %.0f",
                        typed(o), text, o->min, o->max);
    *member = (int)x;
    return 0;
}

static int set_real(const cli_option *o, const char *text, double *member,
                    char *error, size_t size)
{
    char *end;
    const double x = strtod(text, &end);

    if (end == text || *end || !(x >= o->min && x <= o->max) || !isfinite(x))
        return cli_fail(error, size, "%s: '%s' is not a number in %g .. %g",
                        typed(o), text, o->min, o->max);
    *member = x;
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
        return cli_fail(error, size, "%s: '%s' is not a %s", typed(o), text,
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
    return cli_fail(error, size, "%s: '%s' is neither yes nor no",
                    typed(o), text);
}

/* Returns where the name of a file is stored that may be given in place of a
 * word; NULL for other options. */
static const char **file_instead(const cli_option *o, cli_values *v)
{
    if (strcmp(o->name, "nullspace") == 0) return &v->file.nullspace_basis;
    if (strcmp(o->name, "near_null") == 0) return &v->file.near_null_basis;
    return NULL;
}

/* Sets an option of the library by sps_options_set, under the name that was
 * typed, since an old name may have a meaning of its own.  The texts of
 * -nullspace and -near-null may also be names of files. */
static int set_library(const cli_option *o, const char *said, const char *text,
                       cli_values *v, char *error, size_t size)
{
    const char **file = file_instead(o, v);
    char name[WORD];

    said += strspn(said, "-");
    snprintf(name, sizeof name, "%.*s", (int)strcspn(said, "="), said);
    if (o->kind == CLI_FLAG && !*text) text = "true";
    if (sps_options_set(reader, &v->settings, name, text) == SPS_OK) {
        if (file) *file = NULL;
        return 0;
    }
    if (file && (strcmp(text, "-") == 0 || access(text, R_OK) == 0))
        return *file = text, 0;
    return cli_fail(error, size, "%s%s", sps_context_error(reader),
                    file ? " (nor is there such a file)" : "");
}

static int set_own(const cli_option *o, const char *text, cli_values *v,
                   char *error, size_t size)
{
    void *member = (char *)v + o->offset;

    switch (o->kind) {
    case CLI_FLAG: return set_flag(o, text, member, error, size);
    case CLI_INT: return set_whole(o, text, member, error, size);
    case CLI_REAL: return set_real(o, text, member, error, size);
    case CLI_SIZE:
    case CLI_NATURAL: return set_natural(o, text, member, error, size);
    case CLI_FILE:
        if (!*text)
            return cli_fail(error, size, "%s: the name is empty", typed(o));
        break;
    case CLI_CHOICE:
    case CLI_TEXT:
    case CLI_OPTIONAL: break;
    }
    *(const char **)member = text;
    return 0;
}

static int set(const cli_option *o, const char *said, const char *text,
               cli_values *v, char *error, size_t size)
{
    v->given[o->number] = true;
    return o->library ? set_library(o, said, text, v, error, size)
                      : set_own(o, text, v, error, size);
}

static void defaults(cli_values *v)
{
    const cli_option *o;
    char none[1];

    memset(v, 0, sizeof *v);
    sps_options_default(&v->settings);
    sps_context_options_default(&v->machine);
    for (int i = 0; (o = cli_row(i)); i++)
        if (o->standard && !o->library)
            (void)set_own(o, o->standard, v, none, sizeof none);
}

bool cli_given(const cli_values *v, const char *name)
{
    const cli_option *o = cli_find(name, strlen(name));

    return o && v->given[o->number];
}

/* Returns the option that a word with one or two dashes names; *value is the
 * text after '=', or NULL. */
static const cli_option *named(const char *word, const char **value)
{
    const char *name = word + (word[0] == '-') + (word[0] == '-' &&
                                                  word[1] == '-');
    size_t length = strcspn(name, "=");

    *value = name[length] == '=' ? name + length + 1 : NULL;
    return name > word && length > 0 ? cli_find(name, length) : NULL;
}

/* Reads one argument and, if the option needs a value, the next one; *used is
 * the number of arguments read. */
static int argument(char **arg, cli_values *v, int *used, char *error,
                    size_t size)
{
    const char *value, *unused, *next = arg[1];
    const cli_option *o = named(arg[0], &value);

    *used = 1;
    if (arg[0][0] != '-' || arg[0][1] == 0)
        return cli_fail(error, size,
                    "'%s' is not an option; the matrix is given by -A FILE",
                    arg[0]);
    if (!o) return unknown(arg[0], arg[0], error, size);
    if (!value && o->kind != CLI_FLAG && o->kind != CLI_OPTIONAL) {
        if (!next || named(next, &unused))
            return cli_fail(error, size, "%s needs a value: %s %s", typed(o),
                            typed(o), o->arg);
        value = next;
        *used = 2;
    }
    return set(o, arg[0], value ? value : "", v, error, size);
}

static int arguments(int argc, char **argv, cli_values *v, char *error,
                     size_t size)
{
    int used = 0, code = 0;

    for (int i = 1; i < argc && code == 0; i += used)
        code = argument(argv + i, v, &used, error, size);
    return code;
}

/* Returns the whole file as a string, or NULL if it cannot be read. */
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

/* Reads one line: "name = value", "name value" or "name"; '#' begins a
 * comment. */
static int config_line(char *line, const char *where, cli_values *v,
                       char *error, size_t size)
{
    char text[1024];
    int code;

    line[strcspn(line, "#")] = 0;
    line = trim(line);
    line += strspn(line, "-");
    if (!*line) return 0;
    size_t length = strcspn(line, "= \t");
    char *value = line + length;
    while (*value == ' ' || *value == '\t') value++;
    if (*value == '=') value++;
    value = trim(value);
    const cli_option *o = cli_find(line, length);
    line[length] = 0;
    if (o && strcmp(o->name, "config") == 0)
        code = cli_fail(text, sizeof text, "-config inside a configuration "
                                           "file is not supported");
    else if (!o)
        code = unknown(line, line, text, sizeof text);
    else if (o->kind != CLI_FLAG && o->kind != CLI_OPTIONAL && !*value)
        code = cli_fail(text, sizeof text, "%s needs a value", o->name);
    else
        code = set(o, line, value, v, text, sizeof text);
    return code ? cli_fail(error, size, "%s: %s", where, text) : 0;
}

static int configuration(const char *path, cli_values *v, char *error,
                         size_t size)
{
    char where[512], *next;
    int number = 0, code = 0;

    free(config_text);
    config_text = slurp(path);
    if (!config_text) {
        (void)cli_fail(error, size, "%s: %s", path, strerror(errno));
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

int cli_parse(int argc, char **argv, cli_values *v, char *error, size_t size)
{
    sps_context_options on_host;
    const char *why = "";
    int code;

    sps_context_options_default(&on_host);
    on_host.place = SPS_HOST;
    if (!reader && sps_context_create(&on_host, &reader, &why) != SPS_OK)
        return cli_fail(error, size, "%s", why), EXIT_MEMORY;
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
        if (!*v->help || strcmp(v->help, "man") == 0 ||
            strcmp(v->help, "completion") == 0)
            return 0;
        return cli_fail(error, size,
                        "-help=%s: unknown (known: man, completion)", v->help);
    }
    return 0;
}

void cli_free(void)
{
    free(config_text);
    config_text = NULL;
    sps_context_destroy(&reader);
}

const char *cli_text(const cli_option *o, const cli_values *v, char *text,
                     size_t size)
{
    const void *member = (const char *)v + o->offset;

    if (o->library) {
        if (sps_options_get(reader, &v->settings, o->name, text, size))
            return NULL;
        return *text ? text : NULL;
    }
    switch (o->kind) {
    case CLI_FLAG: return *(const bool *)member ? "true" : "false";
    case CLI_INT: snprintf(text, size, "%d", *(const int *)member); return text;
    case CLI_REAL:
        snprintf(text, size, "%.17g", *(const double *)member);
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
