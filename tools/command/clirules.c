/* SPDX-License-Identifier: BSD-3-Clause */
/* clirules.c - rejects options that exclude each other, and computes the values
 * that the command derives from its options. */
#include "io/number/nearest.h"
#include "io/stream/unwritten.h"
#include "tools/command/cli.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { WORD = 64 };

static int bad_choice(const cli_option *o, const char *text, char *error,
                      size_t size)
{
    char word[WORD], near[WORD] = "", all[1024] = "";
    int limit = INT_MAX;

    for (int i = 0; cli_choice(o, i, word, WORD); i++) {
        const size_t used = strlen(all);

        snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "", word);
        if (spsi_nearer(text, word, &limit)) strcpy(near, word);
    }
    if (*near)
        return cli_fail(error, size, "-%s: unknown name '%s'; did you mean %s?",
                    o->name, text, near);
    return cli_fail(error, size, "-%s: unknown name '%s' (known: %s)",
                    o->name, text, all);
}

/* Reads -device: "auto", "cpu", "cuda" or "cuda:N".  Without N the library
 * chooses the GPU, for each of several processes another one. */
int cli_device(cli_values *v, char *error, size_t size)
{
    const char *d = v->device;
    char *end;

    v->on.ordinal = -1;
    if (strcmp(d, "auto") == 0) return v->on.place = SPS_AUTO, 0;
    if (strcmp(d, "cpu") == 0) return v->on.place = SPS_HOST, 0;
    v->on.place = SPS_CUDA;
    if (strcmp(d, "cuda") == 0) return 0;
    if (strncmp(d, "cuda:", 5) == 0 && isdigit((unsigned char)d[5])) {
        long n = strtol(d + 5, &end, 10);
        if (*end == 0 && n < 1024) return v->on.ordinal = (int)n, 0;
    }
    if (strncasecmp(d, "gpu", 3) == 0 || strncmp(d, "cuda:", 5) == 0)
        return cli_fail(error, size, "-device: unknown name '%s' (known: "
                                     "auto, cpu, cuda, cuda:N)", d);
    return bad_choice(cli_find("device", strlen("device")), d, error, size);
}

static bool same(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

/* Returns whether both names refer to the same file. */
static bool same_file(const char *a, const char *b)
{
    struct stat s, t;

    if (!a || !b || !*a || same(a, "-") || strncmp(a, "/dev/", 5) == 0)
        return false;
    return same(a, b) ||
           (stat(a, &s) == 0 && stat(b, &t) == 0 && S_ISREG(s.st_mode) &&
            s.st_dev == t.st_dev && s.st_ino == t.st_ino);
}

/* Returns whether one file may be both: X may replace the right-hand sides or
 * the guess. */
static bool may_replace(const cli_option *o, const cli_option *other)
{
    return same(o->name, "o") && (same(other->name, "B") ||
                                  same(other->name, "x0"));
}

/* Checks that each output has a file of its own that is not read by the run. */
static int outputs_apart(const cli_values *v, char *error, size_t size)
{
    char path[PATH_MAX], text[PATH_MAX], name[WORD], other[WORD];
    const cli_option *o, *p;

    for (int i = 0; (o = cli_row(i)); i++) {
        const char *out = o->stream == CLI_OUTPUT
                          ? cli_text(o, v, path, sizeof path) : NULL;

        for (int k = 0; out && (p = cli_row(k)); k++) {
            if (p->kind != CLI_FILE && p->kind != CLI_OPTIONAL) continue;
            if (p->stream == CLI_OUTPUT && k <= i) continue;
            if (may_replace(o, p) ||
                !same_file(out, cli_text(p, v, text, sizeof text))) continue;
            return cli_fail(error, size, "%s and %s name the same file, %s",
                            cli_dashed(o->name, name, sizeof name),
                            cli_dashed(p->name, other, sizeof other), out);
        }
    }
    return 0;
}

/* Rejects names of files that the library does not write, before the work
 * instead of after it. */
static int writable(const char *path, const char *option, char *error,
                    size_t size)
{
    char why[SPSI_WHY_UNWRITTEN];

    if (!path || !spsi_unwritten(path, why)) return 0;
    return cli_fail(error, size, "%s %s: %s", option, path, why);
}

static bool listed(const char *kind, const char *name)
{
    const char *s;

    for (int i = 0; (s = sps_list(NULL, kind, i)); i++)
        if (!strcmp(s, name)) return true;
    return false;
}

/* Returns the name of an option that was set and that applies to eigenproblems
 * only, or NULL. */
static const char *of_eigenvalues(const cli_values *v)
{
    const cli_option *eigs = cli_find("eigs", strlen("eigs")), *o;

    for (int i = 0; (o = cli_row(i)); i++)
        if (o != eigs && v->given[i] && same(o->section, eigs->section))
            return o->name;
    return NULL;
}

/* Rejects options for A X = B with -eigs, and those for eigenvalues without
 * it. */
static int problems_apart(const cli_values *v, char *error, size_t size)
{
    const sps_options *o = &v->settings;
    const char *other = v->eigs ? "solver" : "eigensolver";
    const char *name = v->eigs ? NULL : of_eigenvalues(v);
    char dashed[WORD];

    if (v->eigs && (v->file.B || cli_given(v, "nrhs")))
        return cli_fail(error, size, "-eigs computes eigenvalues, without "
                                     "right-hand sides: omit -B and -nrhs");
    if (v->eigs && !same(o->reorder, "none") && !same(o->reorder, "auto"))
        return cli_fail(error, size, "-reorder %s applies to A X = B only: "
                                     "omit it with -eigs",
                        o->reorder);
    if (name)
        return cli_fail(error, size, "%s applies to eigenvalues only: add "
                                     "-eigs K",
                        cli_dashed(name, dashed, sizeof dashed));
    if (cli_given(v, "sigma") && same(o->which, "largest"))
        return cli_fail(error, size, "-sigma finds the eigenvalues nearest to "
                                     "it: omit -which largest");
    if (same(o->solver, "auto") || !listed(other, o->solver)) return 0;
    return cli_fail(error, size, "-solver %s is for %s", o->solver, v->eigs
                    ? "A X = B; lobpcg finds eigenvalues (-eigs)"
                    : "eigenvalues: add -eigs K");
}

/* Rejects several options that use the same standard stream ("-"). */
static int one_stream(const cli_values *v, cli_stream stream, const char *name,
                      char *error, size_t size)
{
    char all[256] = "", dashed[WORD], value[WORD];
    const cli_option *o;
    int uses = 0;

    for (int i = 0; (o = cli_row(i)); i++) {
        const size_t used = strlen(all);

        if (o->stream != stream) continue;
        uses += same(cli_text(o, v, value, sizeof value), "-");
        snprintf(all + used, sizeof all - used, "%s%s", used ? ", " : "",
                 cli_dashed(o->name, dashed, sizeof dashed));
    }
    return uses < 2 ? 0 : cli_fail(error, size, "standard %s can be used by "
                                   "only one of %s", name, all);
}

/* Checks that -convert is the only task: it reads one file, on the host, and
 * solves nothing. */
static int convert_alone(cli_values *v, char *error, size_t size)
{
    static const char *const others[] = {
        "eigs", "o", "x0", "json", "monitor", "plot", "explain", "dry_run",
        "coords", "rigid_body", "nullspace_basis", "near_null_basis", "M", "Y"};
    char dashed[WORD];

    if (!v->file.A == !v->file.B)
        return cli_fail(error, size, v->file.A
                        ? "-convert: give either -A or -B, not both"
                        : "-convert: name the file to be converted, a matrix "
                          "by -A or a block by -B");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (cli_given(v, others[i]))
            return cli_fail(error, size, "-convert solves nothing: omit %s",
                            cli_dashed(others[i], dashed, sizeof dashed));
    if (v->file.B && v->laplacian)
        return cli_fail(error, size, "-laplacian needs a matrix (-A)");
    if (writable(v->file.convert, "-convert", error, size) ||
        outputs_apart(v, error, size))
        return EXIT_USAGE;
    v->on.place = SPS_HOST;
    return 0;
}

/* Returns whether processes get other rows than those of their part of the
 * file. */
static bool moves_rows(const cli_values *v)
{
    return same(v->partition, "morton") || same(v->partition, "metis");
}

int cli_rules(cli_values *v, char *error, size_t size)
{
    const sps_options *o = &v->settings;

    if (v->help) return 0;
    if (v->version || v->list) return cli_device(v, error, size);
    if (v->file.convert) return convert_alone(v, error, size);
    if (!v->file.A)
        return cli_fail(error, size, "no matrix: add -A FILE ('" CLI_PROGRAM
                                     " -help' lists all options)");
    if (same(o->reorder, "morton") && !v->file.coords)
        return cli_fail(error, size, "-reorder morton needs the coordinates of "
                                     "the nodes: add -coords FILE");
    if (same(v->partition, "morton") && !v->file.coords)
        return cli_fail(error, size, "-partition morton needs the coordinates "
                                     "of the nodes: add -coords FILE");
    if (moves_rows(v) && v->eigs)
        return cli_fail(error, size, "-partition %s applies to A X = B only: "
                                     "omit it", v->partition);
    if (moves_rows(v) && !same(o->reorder, "none") && !same(o->reorder, "auto"))
        return cli_fail(error, size, "-partition %s and -reorder %s both "
                                     "number the rows: omit one of them",
                        v->partition, o->reorder);
    if (v->file.rigid_body &&
        (v->file.nullspace_basis || !same(o->nullspace, "auto")))
        return cli_fail(error, size, "-rigid-body sets the null space: omit "
                                     "-nullspace %s", v->file.nullspace_basis
                        ? v->file.nullspace_basis : o->nullspace);
    if (o->norm == SPS_NORM_ABSOLUTE && o->atol <= 0)
        return cli_fail(error, size, "-norm absolute needs -atol X above 0");
    if (o->rtol <= 0 && o->atol <= 0)
        return cli_fail(error, size, "-rtol or -atol must be above 0");
    if (one_stream(v, CLI_INPUT, "input", error, size) ||
        one_stream(v, CLI_OUTPUT, "output", error, size) ||
        writable(v->file.out, "-o", error, size) ||
        outputs_apart(v, error, size) || problems_apart(v, error, size))
        return EXIT_USAGE;
    return cli_device(v, error, size);
}
