/* SPDX-License-Identifier: BSD-3-Clause */
/* spbench.c - measures kernels, block operations and whole solves on a
 * generated system or one from a file, and checks the results.  Started by
 * mpirun, processes solve together, each with its own rows. */
#include "tools/bench/bench.h"
#include "tools/generator/gen.h"
#include "tools/generator/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif

enum { WRONG = 1, USAGE = 2, INPUT = 3, MEMORY = 5, GPU = 6, OUTPUT = 7,
       BUG = 70 };

typedef struct job {
    bench b;
    gen_spec spec;
    bool generated, solve, blocks, cliff;
    bool apart;                   /* processes of one launcher are separate
                                     runs */
    bool peer;                    /* failed because another process has */
    const char *op, *precision;   /* operation and precision of the only run, if
                                     there is no -run */
    const char *widths;
    const char *file, *command;
    sps_place place;
    int ordinal, threads;
    sps_context_info info;        /* has the name of the device */
} job;

static void help(void)
{
    printf("usage: spbench SYSTEM|-A FILE [options]\n"
           "       spbench -blocks [options]\n"
           "Times every kernel that fits, or whole solves, and checks the "
           "results.\n\n%s\n"
           "  -A FILE         a Matrix Market file in place of SYSTEM; "
           "-perturb changes its\n"
           "                  values, too\n"
           "  -solve          time whole solves instead of kernels\n"
           "  -blocks         time block operations instead, without a system\n"
           "  -n N            rows for -blocks (4000000 on a GPU, 400000)\n"
           "  -k LIST         widths, as 1,4,16 (1,4,8,16,32,64; -solve 16)\n"
           "  -op spmm|sddmm  the operation of the kernels (spmm)\n"
           "  -precision double|single   of matrix and blocks (double)\n"
           "  -run OP:PRECISION:LIST     sets these three; can be repeated\n"
           "  -kernel NAME    only this kernel\n"
           "  -low            also kernels that round values to fewer bits\n"
           "  -all            also kernels that expect no gain for this "
           "matrix\n"
           "  -replay         capture runs and replay them (CUDA graphs)\n"
           "  -cliff          check time(n + 1) / time(n) for n = 4 .. 64\n"
           "  -tsv FILE       append a line to FILE for each row\n"
           "  -solver LIST    methods (block_cg,cg); NAME:mixed or "
           "NAME:double chooses\n"
           "                  the precision\n"
           "  -precond NAME   preconditioner (jacobi)\n"
           "  -degree N       degree of chebyshev (as in spsolve)\n"
           "  -rtol X         tolerance (1e-8)\n"
           "  -max-iterations N   limit of iterations (20000; -maxit)\n"
           "  -max-seconds S  limit of each solve (no limit; -maxtime)\n"
           "  -seconds S      seconds of sampling per measurement (0.2)\n"
           "  -cold           measure also with the caches flushed\n"
           "  -once           one run of each measurement, for a profiler\n"
           "  -device auto|cpu|cuda[:N]\n"
           "  -threads N      threads of the host\n"
           "  -mpi none       processes started by mpirun are separate runs\n"
           "  -version -help\n\n"
           "floor%%: time for the bytes that must be moved (A with int32 "
           "columns, X and Y once)\nat the copy bandwidth of the same run, as "
           "a part of the measured time; ratio: best\ntime of cuSPARSE, also "
           "with column-major blocks, or of MKL if libmkl_rt can be loaded,\n"
           "divided by that of the kernel; runs: time of the plan, in runs of "
           "the kernel; auto: the\nkernel that operators choose by default; "
           "named: a kernel that is chosen by name only.\n"
           "Exit codes: 0 all right, 1 a wrong result, no convergence, or a "
           "cliff, 2 usage,\n3 input, 5 memory, 6 GPU, 7 output, 70 internal."
           "\n",
           gen_help());
}

/* ---------------------------------------------------------------- options */

static bool widths(const char *text, int k[BENCH_WIDTHS], int *count)
{
    char *end;

    *count = 0;
    do {
        long width = strtol(text, &end, 10);

        if (end == text || width < 1 || width > 1024 ||
            *count == BENCH_WIDTHS)
            return false;
        k[(*count)++] = (int)width;
        text = end + 1;
    } while (*end == ',');
    return !*end;
}

/* Adds one run of kernels, given by words; NULL selects the default. */
static bool add_run(bench *b, const char *op, const char *precision,
                    const char *list)
{
    bench_run *run = &b->run[b->runs];

    if (b->runs == BENCH_RUNS ||
        (op && strcmp(op, "spmm") && strcmp(op, "sddmm")) ||
        (precision && strcmp(precision, "double") &&
         strcmp(precision, "single")))
        return false;
    run->sddmm = op && !strcmp(op, "sddmm");
    run->single = precision && !strcmp(precision, "single");
    b->runs++;
    return widths(list ? list : "1,4,8,16,32,64", run->k, &run->widths);
}

/* Reads OP:PRECISION:LIST and adds that run. */
static bool read_run(bench *b, const char *text)
{
    char word[200], *precision, *list;

    snprintf(word, sizeof word, "%s", text);
    precision = strchr(word, ':');
    list = precision ? strchr(precision + 1, ':') : NULL;
    if (!list)
        return false;
    *precision = *list = 0;
    return add_run(b, word, precision + 1, list + 1);
}

static bool device(const char *text, job *j)
{
    char *end;

    if (!strcmp(text, "auto") || !strcmp(text, "cpu")) {
        j->place = *text == 'a' ? SPS_AUTO : SPS_HOST;
        return true;
    }
    if (strncmp(text, "cuda", 4) || (text[4] && text[4] != ':'))
        return false;
    j->place = SPS_CUDA;
    j->ordinal = text[4] ? (int)strtol(text + 5, &end, 10) : -1;
    return !text[4] || (end != text + 5 && !*end && j->ordinal >= 0);
}

static bool real(const char *text, double low, double *p)
{
    char *end;

    *p = strtod(text, &end);
    return end != text && !*end && *p >= low && *p <= 1e18;
}

/* Reads an option with a value.  Returns 2, the number of words used, 0 if the
 * option is unknown, -1 if it is invalid. */
static int value_option(job *j, const char *name, const char *value)
{
    bench *b = &j->b;
    const struct { const char *name; const char **p; } texts[] = {
        {"-A", &j->file},           {"-op", &j->op},
        {"-kernel", &b->kernel},    {"-solver", &b->method.solver},
        {"-k", &j->widths},         {"-precond", &b->method.precond},
        {"-tsv", &b->tsv},          {"-precision", &j->precision},
    };
    const struct { const char *name; double least; } numbers[] = {
        {"-n", 1}, {"-rtol", 0}, {"-max-iterations", 1}, {"-seconds", 0},
        {"-threads", 1}, {"-max-seconds", 0}, {"-degree", 1},
    };
    double x;

    if (!strcmp(name, "-maxit"))
        name = "-max-iterations";
    if (!strcmp(name, "-maxtime"))
        name = "-max-seconds";
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!strcmp(name, texts[i].name))
            return value ? (*texts[i].p = value, 2) : -1;
    if (!strcmp(name, "-run"))
        return value && read_run(b, value) ? 2 : -1;
    if (!strcmp(name, "-mpi")) {
        j->apart = value && !strcmp(value, "none");
        return j->apart ? 2 : -1;
    }
    if (!strcmp(name, "-device"))
        return value && device(value, j) ? 2 : -1;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (strcmp(name, numbers[i].name))
            continue;
        if (!value || !real(value, numbers[i].least, &x))
            return -1;
        switch (i) {
        case 0: b->n = (int64_t)x; break;
        case 1: b->method.rtol = x; break;
        case 2: b->method.maxit = x < 1e9 ? (int)x : 1000000000; break;
        case 3: b->seconds = x; break;
        case 4: j->threads = x < 1024 ? (int)x : 1024; break;
        case 5: b->method.maxtime = x; break;
        default: b->method.degree = x < 1e6 ? (int)x : 1000000; break;
        }
        return 2;
    }
    return 0;
}

static int flag(job *j, const char *name)
{
    const struct { const char *name; bool *p; } flags[] = {
        {"-solve", &j->solve},   {"-blocks", &j->blocks},
        {"-cliff", &j->cliff},   {"-cold", &j->b.cold},
        {"-low", &j->b.low},     {"-replay", &j->b.replay},
        {"-all", &j->b.all},     {"-once", &j->b.once},
    };

    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (!strcmp(name, flags[i].name))
            return *flags[i].p = true, 1;
    return 0;
}

/* Reads the command line.  Returns 0, or -1 with a text in error. */
static int read_words(job *j, int argc, char **argv, char error[160])
{
    for (int i = 1, taken; i < argc; i += taken) {
        *error = 0;
        taken = gen_parse(&j->spec, argc - i, argv + i, error);
        j->generated |= taken > 0;
        if (!taken)
            taken = gen_option(&j->spec, argc - i, argv + i, error);
        if (!taken)
            taken = flag(j, argv[i]);
        if (!taken)
            taken = value_option(j, argv[i], i + 1 < argc ? argv[i + 1]
                                                          : NULL);
        if (taken > 0)
            continue;
        if (!*error && taken < 0)
            snprintf(error, 160, "no valid value for %.60s", argv[i]);
        else if (!*error)
            gen_unknown(argv[i], error);
        return -1;
    }
    if (j->blocks + j->generated + (j->file != NULL) != 1) {
        snprintf(error, 160, "name one system, or -A FILE, or -blocks");
        return -1;
    }
    if ((j->blocks || j->solve) &&
        (j->b.tsv || (j->precision && strcmp(j->precision, "double")))) {
        snprintf(error, 160, "-tsv and -precision single need kernels, not "
                 "-solve or -blocks");
        return -1;
    }
    if (!j->b.runs && !add_run(&j->b, j->op, j->precision, j->widths)) {
        snprintf(error, 160, "-op must be spmm or sddmm, -precision double or "
                 "single, -k a list of widths of 1 to 1024");
        return -1;
    }
    widths(j->widths ? j->widths : j->solve && !j->blocks ? "16" :
           "1,4,8,16,32,64", j->b.k, &j->b.widths);
    return 0;
}

/* ----------------------------------------------------------------- system */

static int code_of(sps_status st)
{
    switch (st) {
    case SPS_OK: return 0;
    case SPS_EINVAL: case SPS_EUNFIT: return USAGE;
    case SPS_EPARSE: case SPS_EIO: case SPS_EMATRIX: return INPUT;
    case SPS_ENOMEM: case SPS_EDEVMEM: return MEMORY;
    case SPS_EDEVICE: case SPS_EABSENT: return GPU;
    default: return BUG;
    }
}

/* Keeps the text of a failure in the context; returns the exit code. */
static int failed(job *j, sps_status st)
{
    const char *text = sps_context_error(j->b.ctx);

    j->peer = st == SPS_EPEER;
    return words_fail(code_of(st), *text ? text : sps_status_string(st), "");
}

static sps_status fill_all(job *j, const gen *g)
{
    sps_status st = sps_csr_create(j->b.ctx, g->rows, g->columns, g->nnz,
                                   SPS_F64, &j->b.A);

    if (st == SPS_OK)
        gen_fill(g, j->b.A->rowptr, j->b.A->col, j->b.A->val);
    return st;
}

/* Generates the own rows. */
static sps_status fill_own(job *j, const gen *g)
{
    const launch *of = &j->b.of;
    const int64_t first = gen_share(g, of->rank, of->size);
    const int64_t count = gen_share(g, of->rank + 1, of->size) - first;
    int64_t *rowptr = malloc((size_t)(count + 1) * sizeof *rowptr);
    const int64_t nnz = rowptr ? gen_count_rows(g, first, count, rowptr) : 0;
    int64_t *col = malloc((size_t)(nnz + 1) * sizeof *col);
    double *val = malloc((size_t)(nnz + 1) * sizeof *val);
    sps_status st = SPS_ENOMEM;

    if (rowptr && col && val &&
        gen_fill_rows(g, first, count, rowptr, col, val))
        st = sps_csr_wrap_rows(j->b.ctx, first, count, g->rows, nnz, rowptr,
                               col, val, SPS_F64, SPS_ADOPT, &j->b.A);
    if (st == SPS_OK) return st;
    free(rowptr);
    free(col);
    free(val);
    return st;
}

static int generate(job *j)
{
    char error[160];
    gen g;
    sps_status st;

    if (!gen_open(&j->spec, &g, error))
        return words_fail(strncmp(error, "out of memory", 13) ? USAGE : MEMORY,
                          error, "");
    st = j->b.of.size > 1 ? fill_own(j, &g) : fill_all(j, &g);
    if (st == SPS_OK) {
        j->b.A->props = SPS_SORTED;
        if (g.symmetric)
            j->b.A->props |= SPS_SYMMETRIC;
    }
    gen_close(&g);
    return st == SPS_OK ? 0 : failed(j, st);
}

/* Multiplies the values of a file by random factors in [3/4, 5/4), the same for
 * (i, j) and (j, i), so that files without values have different ones. */
static void perturb(uint64_t seed, sps_csr *A)
{
    double *val = A->val;

#pragma omp parallel for schedule(dynamic, 1024)
    for (int64_t i = 0; i < A->nrow; i++)
        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
            const int64_t r = A->first + i;
            const int64_t c = A->global ? A->global[p] : A->col[p];
            const int64_t low = r < c ? r : c, high = r < c ? c : r;

            val[p] *= 1 + gen_uniform(seed, (uint64_t)low << 32 |
                                      (uint64_t)high, 0) / 4;
        }
}

static int open_system(job *j)
{
    sps_status st;

    if (j->generated)
        return generate(j);
    st = sps_csr_read(j->b.ctx, j->file, NULL, NULL, &j->b.A);
    /* Processes have no other rows than those that the call above checks. */
    if (st == SPS_OK && j->b.of.size < 2)
        st = sps_csr_check(j->b.ctx, j->b.A);
    if (st == SPS_OK && j->spec.perturb)
        perturb(j->spec.perturb_seed, j->b.A);
    return st == SPS_OK ? 0 : failed(j, st);
}

static int measure(job *j)
{
    int wrong = 0;
    sps_status st = bench_open(&j->b);

    if (st == SPS_OK)
        st = j->blocks ? bench_blocks(&j->b, &wrong)
             : j->solve ? bench_solves(&j->b, &wrong)
             : j->cliff ? bench_cliffs(&j->b, &wrong)
                        : bench_kernels(&j->b, &wrong);
    bench_close(&j->b);
    if (st != SPS_OK) return failed(j, st);
    return wrong ? WRONG : 0;
}

/* Checks whether the kernel named by -kernel exists. */
static int find_kernel(const job *j)
{
    const bool gpu = j->b.place == SPS_CUDA;
    const char *name;

    if (!j->b.kernel)
        return 0;
    for (int i = 0; (name = sps_list(j->b.ctx, gpu ? "kernel.cuda" :
                                     "kernel.cpu", i)); i++)
        if (!strcmp(name, j->b.kernel))
            return 0;
    for (int i = 0; (name = sps_list(NULL, gpu ? "kernel.cpu" :
                                     "kernel.cuda", i)); i++)
        if (!strcmp(name, j->b.kernel))
            return words_fail(USAGE, j->b.kernel, gpu ? ": runs on the host"
                                                      : ": runs on a GPU");
    return words_fail(USAGE, j->b.kernel, ": no kernel of that name");
}

/* Checks whether the file of -tsv can be opened for appending. */
static int try_tsv(const char *name)
{
    FILE *f = name ? fopen(name, "a") : NULL;

    if (name && !f)
        return words_fail(OUTPUT, name, " cannot be written");
    if (f)
        fclose(f);
    return 0;
}

static int open_context(job *j)
{
    const bool many = j->b.of.size > 1;
    sps_context_options where;
    const char *why = "";
    sps_status st;

    sps_context_options_default(&where);
    where.place = many && j->place == SPS_AUTO ? SPS_HOST : j->place;
    where.device = j->ordinal;
    where.threads = j->threads;
#ifdef _OPENMP
    if (many && !j->threads)
        where.threads = launch_threads(omp_get_max_threads());
#endif
    where.comm = j->b.of.comm;
    /* If only kernels are measured, the vendor may use all of its
     * algorithms. */
    where.reproducible = j->solve || j->blocks;
    st = sps_context_create(&where, &j->b.ctx, &why);
    if (st != SPS_OK) {
        j->peer = st == SPS_EPEER;
        return words_fail(code_of(st), why, "");
    }
    j->info.struct_size = sizeof j->info;
    sps_context_information(j->b.ctx, &j->info);
    j->b.place = j->info.place;
    j->b.device = j->info.device;
    return find_kernel(j);
}

/* The steps of a run, after each of which the processes agree. */
static int run(job *j, bool *tells)
{
    static int (*const step[])(job *) = {open_context, open_system, measure};
    int code = try_tsv(j->b.tsv);

    if (j->b.of.size > 1 && (!j->solve || j->spec.kind == GEN_LEAST))
        code = words_fail(USAGE, "several processes need -solve and a "
                          "square matrix", "; -mpi none makes each process a "
                          "separate run");
    for (int i = 0; i < 3; i++) {
        code = launch_agree(&j->b.of, code, j->peer, tells);
        if (!code && !(j->blocks && step[i] == open_system)) code = step[i](j);
    }
    code = launch_agree(&j->b.of, code, j->peer, tells);
    words_tell("spbench", code, tells);     /* mpirun ends the others when one
                                               has ended */
    sps_csr_destroy(j->b.ctx, &j->b.A);
    sps_context_destroy(&j->b.ctx);
    return code;
}

static int run_together(job *j, bool *tells)
{
    int code;

    if (!launch_open(&j->b.of, j->apart))
        return words_fail(USAGE, sps_context_error(NULL),
                          "; -mpi none makes each process a separate run");
    code = run(j, tells);
    launch_close(&j->b.of);
    return code;
}

/* Writes the arguments that define the system to `title`, for headings. */
static void make_title(const job *j, int argc, char **argv, char title[200])
{
    size_t at = 0;

    if (j->file)
        at = (size_t)snprintf(title, 200, "%.190s", j->file);
    for (int i = 1, taken; !j->file && i < argc; i += taken) {
        char error[160];
        gen_spec spec;

        taken = gen_parse(&spec, argc - i, argv + i, error);
        if (taken <= 0)
            taken = gen_option(&spec, argc - i, argv + i, error);
        for (int q = 0; q < taken && at < 190; q++)
            at += (size_t)snprintf(title + at, 200 - at, "%s%s",
                                   at ? " " : "", argv[i + q]);
        taken = taken > 0 ? taken : 1;
    }
}

static int serve(int argc, char **argv, bool *tells)
{
    job j = {.b = {.method = {.solver = "block_cg,cg", .precond = "jacobi",
                              .rtol = 1e-8, .maxit = 20000},
                   .seconds = 0.2}};
    char error[160] = "", title[200] = "";

    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "-help"))
            return help(), 0;
        if (!strcmp(argv[i], "-version"))
            return printf("spbench %s\n", sps_version()), 0;
    }
    gen_default(&j.spec);
    if (read_words(&j, argc, argv, error))
        return words_fail(USAGE, error, " (see spbench -help)");
    make_title(&j, argc, argv, title);
    j.b.title = title;
    return run_together(&j, tells);
}

int main(int argc, char **argv)
{
    return words_main("spbench", argc, argv, serve);
}
