/* SPDX-License-Identifier: BSD-3-Clause */
/* main.c - the command: parses the options, runs the steps of job.c, and writes
 * X and the reports; if a step fails, the reports contain what is known by
 * then. */
#include "tools/command/job.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

/* Makes malloc return freed memory to the system at once, so that the peak is
 * the memory that the library used and not what malloc kept. */
static void tame_heap(void)
{
#if defined(__GLIBC__) && defined(M_MMAP_THRESHOLD)
    mallopt(M_MMAP_THRESHOLD, 128 * 1024);
#endif
}

/* Sets the threads of OpenBLAS to one for the whole run, so that the library
 * need not change the number at each call (lib/core/blas.c).  Other BLAS
 * libraries do not have this function. */
static void tame_blas(void)
{
    void (*set_threads)(int);

    *(void **)&set_threads = dlsym(RTLD_DEFAULT, "openblas_set_num_threads");
    if (set_threads) set_threads(1);
}

/* Returns the peak memory of this program in bytes.  ru_maxrss would include
 * the pages of the parent if the program was started by vfork. */
static size_t peak(void)
{
    struct rusage use;
    size_t bytes = job_memory("VmHWM:");

    if (bytes == 0 && getrusage(RUSAGE_SELF, &use) == 0)
        bytes = (size_t)use.ru_maxrss * 1024;
    return bytes;
}

/* Returns the predicted peak of memory of a dry run.  A solve allocates all
 * memory at set-up, so the peak will be the one that the library has counted
 * once the writer has run, too (X is zero, so that is quick).  The rest of the
 * process grows with the driver of the GPU: the larger of the values before and
 * after set-up counts.  Pages of code that only an eigensolver reads, mostly of
 * LAPACK, become resident in the solve: 1.2 to 1.5 MB of them were seen. */
static size_t predicted(job *j)
{
    const size_t code = j->opt.eigs ? (size_t)3 << 19 : 0;
    size_t now;

    job_warm_up(j);
    now = job_memory("VmRSS:");
    if (j->X && j->opt.file.out && j->end.exit_code == 0)
        (void)sps_block_write(j->X, "/dev/null", j->system.complex);
    sps_context_information(j->ctx, &j->info);
    if (now > j->bytes.base + j->info.host_bytes)
        j->bytes.base = now - j->info.host_bytes;
    return j->bytes.base + j->info.host_peak + code;
}

static void measure_memory(job *j)
{
    if (!j->ctx) return;
    j->bytes.host = j->opt.dry_run ? predicted(j) : peak();
    sps_context_information(j->ctx, &j->info);
}

/* A failed output replaces the exit codes of convergence and of no convergence,
 * but not the exit code of an earlier failure or of a signal. */
static void output_failed(job *j, const char *text)
{
    fprintf(stderr, CLI_PROGRAM ": %s\n", text);
    if (j->end.exit_code != EXIT_CONVERGED &&
        j->end.exit_code != EXIT_NOT_CONVERGED && j->end.exit_code < 128)
        return;
    j->end.exit_code = EXIT_OUTPUT;
    snprintf(j->end.message, sizeof j->end.message, "%s", text);
}

/* Closes the -monitor table and removes the file if it is empty because of a
 * write error. */
static void close_table(job *j)
{
    output *table = &j->progress.table;
    char text[1200], target[PATH_MAX];
    struct stat s;

    if (table->f == stderr || output_close(table, text, sizeof text)) return;
    output_failed(j, text);
    if (spsi_replace_target(j->opt.monitor, target) && stat(target, &s) == 0 &&
        S_ISREG(s.st_mode) && s.st_size == 0)
        (void)unlink(target);
}

static void write_results(job *j)
{
    char text[1200];

    if (j->done.attempted && j->opt.file.out) {
        progress_say(&j->progress, true, "writing %s", j->opt.file.out);
        if (j->many.on)
            j->done.wrote = processes_write(j, text, sizeof text);
        else if (!(j->done.wrote = sps_block_write(j->X, j->opt.file.out,
                                              j->system.complex) == SPS_OK))
            snprintf(text, sizeof text, "%s", sps_context_error(j->ctx));
        if (!j->done.wrote && j->many.rank == 0) output_failed(j, text);
        progress_clear(&j->progress);
    }
    if (j->done.solved && j->opt.plot &&
        plot_write(j, j->opt.plot, text, sizeof text))
        output_failed(j, text);
    if (j->progress.table.f) close_table(j);
}

static bool takes_stdout(const char *path)
{
    return path && strcmp(path, "-") == 0;
}

static void reports(job *j)
{
    const cli_values *v = &j->opt;
    bool taken = takes_stdout(v->file.out) || takes_stdout(v->json) ||
                 takes_stdout(v->plot) || takes_stdout(v->monitor);
    char text[1200];

    j->seconds.total = job_now() - j->seconds.start;
    if (j->many.rank > 0) return;
    if (!j->done.solved && j->end.exit_code != 0)
        fprintf(stderr, CLI_PROGRAM ": %s\n", j->end.message);
    else if (!v->quiet)
        report_print(j, taken ? stderr : stdout);
    else if (j->end.exit_code != 0 && j->end.exit_code != EXIT_OUTPUT)
        fprintf(stderr, CLI_PROGRAM ": %s; %d of %d %s converged\n",
                j->end.message, j->result.columns_converged, j->k,
                v->eigs ? "pairs" : "columns");
    if (!taken && (fflush(stdout) != 0 || ferror(stdout)) &&
        signals_caught() != SIGHUP) {        /* after SIGHUP the terminal is
                                                closed */
        snprintf(text, sizeof text, "standard output: %s", strerror(errno));
        output_failed(j, text);
    }
    if (v->json && json_write(j, v->json, text, sizeof text))
        output_failed(j, text);
}

/* Returns whether the name fits an SVG file: it ends in .svg or has no
 * extension. */
static bool drawn_as_svg(const char *path)
{
    const char *name = strrchr(path, '/'), *dot;

    name = name ? name + 1 : path;
    dot = strrchr(name, '.');
    return !dot || dot == name || strcasecmp(dot, ".svg") == 0;
}

static int open_outputs(job *j)
{
    const cli_values *v = &j->opt;
    const char *path[] = {v->file.out, v->json, v->plot, v->monitor,
                          v->file.convert};
    char text[1200];

    for (int i = 0; i < 5; i++) {
        if (!path[i] || !*path[i] || j->many.rank > 0) continue;
        if (output_possible(path[i], text, sizeof text)) continue;
        /* This failure is reported once. */
        if (path[i] == v->json) j->opt.json = NULL;
        return job_fail(j, EXIT_OUTPUT, "output_failed", "%s", text);
    }
    if (v->plot && !drawn_as_svg(v->plot))
        return job_fail(j, EXIT_USAGE, "usage", "-plot %s: only SVG is "
                        "supported; use a name that ends in .svg", v->plot);
    j->progress.keep = v->plot != NULL;
    j->progress.each = v->eigs > 0;
    if (!v->monitor) return 0;
    if (!*v->monitor) {
        j->progress.table.f = stderr;
        j->progress.terminal = NULL;
        return 0;
    }
    if (output_open_growing(&j->progress.table, v->monitor, text, sizeof text))
        return 0;
    return job_fail(j, signals_caught() ? 128 + signals_caught() : EXIT_OUTPUT,
                    signals_caught() ? "interrupted" : "output_failed", "%s",
                    text);
}

/* Performs the steps before the solve; after each, several processes agree on
 * its success. */
static int prepare(job *j)
{
    int code = processes_divided(&j->opt) ? processes_open(j) : 0;

    if (code == 0) code = open_outputs(j);
    code = processes_agree(j, code);
    if (code != 0) return code;
    code = job_context(j);
    if (j->many.on) {
        code = processes_agree(j, code);
        if (code == 0) code = processes_agree(j, processes_context(j));
    }
    if (code != 0) return code;
    code = job_read(j);
    if (!j->many.told) code = processes_agree(j, code);
    if (code == 0) code = processes_agree(j, job_set_up(j));
    return code;
}

static void run(job *j)
{
    int code;

    if (j->opt.file.convert && !processes_many(&j->opt)) {
        if (open_outputs(j) == 0) convert_run(j);
        else fprintf(stderr, CLI_PROGRAM ": %s\n", j->end.message);
        return;
    }
    code = prepare(j);
    if (code == 0 && j->opt.dry_run) j->end.status = "dry_run";
    else if (code == 0) (void)processes_agree(j, job_solve(j));
    progress_clear(&j->progress);
    snprintf(j->end.advice, sizeof j->end.advice, "%s", job_advice(j));
    write_results(j);
    measure_memory(j);
    reports(j);
    processes_end(j);
}

static void release(job *j)
{
    sps_solver_destroy(&j->solver);
    sps_operator_destroy(&j->mass_op);
    sps_operator_destroy(&j->op);
    sps_block_destroy(&j->basis);
    sps_block_destroy(&j->near_null);
    sps_block_destroy(&j->coords);
    sps_block_destroy(&j->Y);
    sps_block_destroy(&j->X);
    sps_block_destroy(&j->B);
    if (j->A) sps_csr_destroy(j->ctx, &j->A);
    if (j->M) sps_csr_destroy(j->ctx, &j->M);
    signals_context(NULL);
    if (j->ctx) sps_context_destroy(&j->ctx);
    sps_context_destroy(&j->many.reader);
    processes_close(j);
    progress_free(&j->progress);
    cli_free();
}

static void list_kind(job *j, const char *title, const char *kind)
{
    const char *name;

    printf("%s:", title);
    for (int i = 0; (name = sps_list(j->ctx, kind, i)) != NULL; i++)
        printf(" %s", name);
    printf("\n");
}

/* Performs -version and -list, which print facts about this build and this
 * machine. */
static int facts(job *j)
{
    int code = job_context(j);

    if (j->opt.version) printf(CLI_PROGRAM " (libspsolve) %s\n", sps_version());
    if (code) fprintf(stderr, CLI_PROGRAM ": %s\n", j->end.message);
    if (j->opt.version && code == 0)
        printf("device: %s\ncuda module: %s\n", j->info.device,
               j->info.module_state);
    if (code == 0)
        printf("factor module: %s\n", sps_list(j->ctx, "factor_module", 0));
    if (j->opt.list && code == 0) {
        list_kind(j, "solvers", "solver");
        list_kind(j, "eigensolvers", "eigensolver");
        list_kind(j, "preconditioners", "precond");
        list_kind(j, "kernels (cpu)", "kernel.cpu");
        if (j->info.place == SPS_CUDA)
            list_kind(j, "kernels (cuda)", "kernel.cuda");
    }
    return code;
}

/* Ends the process.  Where the address space is limited (ulimit -v), a thread
 * that OpenBLAS has started may request its memory again and again, and
 * OpenBLAS waits for it at exit: then the process ends without exit
 * handlers. */
static int end(int code)
{
    struct rlimit space;

    if (getrlimit(RLIMIT_AS, &space) != 0 || space.rlim_cur == RLIM_INFINITY)
        return code;
    fflush(NULL);
    _exit(code);
}

static int finish_stdout(int code)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) return code;
    fprintf(stderr, CLI_PROGRAM ": standard output: %s\n", strerror(errno));
    return EXIT_OUTPUT;
}

int main(int argc, char **argv)
{
    job j;
    char error[1024];
    int code;

    memset(&j, 0, sizeof j);
    j.seconds.start = job_now();
    j.end.status = "internal_error";
    tame_heap();
    tame_blas();
    code = cli_parse(argc, argv, &j.opt, error, sizeof error);
    if (!code) code = cli_rules(&j.opt, error, sizeof error);
    if (code) {
        if (processes_first(&j.opt))
            fprintf(stderr, CLI_PROGRAM ": %s\n", error);
        cli_free();
        return end(code);
    }
    if (j.opt.help) {
        if (strcmp(j.opt.help, "man") == 0) cli_man(stdout);
        else if (strcmp(j.opt.help, "completion") == 0) cli_completion(stdout);
        else cli_help(stdout, CLI_PROGRAM);
        code = finish_stdout(0);
    } else if (j.opt.version || j.opt.list) {
        j.opt.settings.kernel = "auto";
        code = finish_stdout(facts(&j));
    } else {
        signals_catch(&j.progress);
        if (!processes_first(&j.opt)) j.opt.quiet = true;
        progress_init(&j.progress, j.opt.quiet);
        run(&j);
        code = j.end.exit_code;
    }
    release(&j);
    return end(code);
}
