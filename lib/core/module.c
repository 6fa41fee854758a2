/* SPDX-License-Identifier: BSD-3-Clause */
/* module.c - finds, loads and checks spsolve_cuda.so, spsolve_factor.so and the
 * modules of MPI, and loads libraries for decompression when a compressed file
 * is read.  No other file of lib calls dlopen, and libspsolve is linked with
 * none of these libraries.
 *
 * The CUDA module and the libraries it links need about 250 MB and 0.1 to 0.4 s
 * to load, so the driver, a few hundred kilobytes, is first asked whether there
 * is a GPU (spsi_module_device): cuInit and cuDeviceGetCount, which the CUDA
 * runtime calls as well.
 *
 * The search stops at the first of these that is found.  First,
 * SPSOLVE_MODULE_PATH, a file or its folder: if it is set, nothing else is
 * tried; programs that run setuid ignore it.  Second, the folder "spsolve"
 * beside this library (an installation), then the folder of the library itself
 * (a build tree keeps both in .libs).  Third, the installation folder
 * SPS_MODULE_DIR, known at compile time.
 *
 * The result is state of the process: found once, under a lock, then only
 * read.  Modules are never unloaded, because a CUDA runtime cannot be removed
 * from a process safely.
 *
 * MUMPS without MPI defines dummies of mpi_init_ and others.  RTLD_LOCAL hides
 * them from the process, and RTLD_DEEPBIND hides the MPI of the process from
 * MUMPS. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/module.h"

#define PATH_SIZE 4096

/* How the catalogue of every module begins. */
typedef struct catalogue {
    int abi;
    const char *version;         /* sps_version() when it was built */
    const char *contents;        /* name, or architectures */
} catalogue;

#define BEGINS(type, text)                                                     \
    _Static_assert(offsetof(type, version) == offsetof(catalogue, version) &&  \
                   offsetof(type, text) == offsetof(catalogue, contents), "")
BEGINS(sps_module, architectures);
BEGINS(sps_factor_library, name);
BEGINS(sps_engine, name);

/* A module, and what the search for it found. */
typedef struct finder {
    const char *file, *symbol;
    int flags;                   /* flags for dlopen */
    int abi;                     /* the one this library needs */
    bool searched;
    const catalogue *catalogue;
    char tried[SPS_ERROR_SIZE];  /* path of the module, or why none was found */
} finder;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t asked = PTHREAD_ONCE_INIT;
static char no_device[128];        /* why there is no GPU; empty if there is
                                      one */

static void SPS_PRINTF(2, 3) append(finder *f, const char *format, ...)
{
    size_t used = strlen(f->tried);
    va_list args;

    va_start(args, format);
    (void)vsnprintf(f->tried + used, sizeof f->tried - used, format, args);
    va_end(args);
}

/* Writes to text what the module contains and returns true, or returns false
 * and writes why this library cannot use it. */
static bool fits(const finder *f, const catalogue *m, char *text, size_t size)
{
    if (m->abi != f->abi)
        (void)snprintf(text, size, "it has interface %d, but this library "
                       "needs %d", m->abi, f->abi);
    else if (strcmp(m->version, sps_version()) != 0)
        (void)snprintf(text, size, "version %.20s, this library is %s",
                       m->version, sps_version());
    else {
        (void)snprintf(text, size, "%s", m->contents);
        return true;
    }
    return false;
}

static finder cuda = {
    .file = "spsolve_cuda.so", .symbol = "spsi_cuda_catalogue",
    .flags = RTLD_NOW | RTLD_LOCAL, .abi = SPS_MODULE_ABI,
};
static finder factor = {
    .file = "spsolve_factor.so", .symbol = "spsi_factor_catalogue",
    .flags = RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND, .abi = SPS_FACTOR_ABI,
};
static finder engine[SPS_ENGINES] = {
    { .file = "spsolve_mpi-openmpi.so", .symbol = "spsi_engine_catalogue",
      .flags = RTLD_NOW | RTLD_LOCAL, .abi = SPS_ENGINE_ABI },
    { .file = "spsolve_mpi-mpich.so", .symbol = "spsi_engine_catalogue",
      .flags = RTLD_NOW | RTLD_LOCAL, .abi = SPS_ENGINE_ABI },
};

/* Called for each path where the module may be, in the order of the search,
 * until it returns true. */
typedef bool (*visit)(finder *f, const char *path);

static bool is_there(finder *f, const char *path)
{
    struct stat st;

    (void)f;
    return stat(path, &st) == 0;
}

static bool load(finder *f, const char *path)
{
    char text[96];
    const catalogue *m;
    void *handle;

    if (!is_there(f, path)) {
        append(f, "%s%s (absent)", *f->tried ? "; " : "", path);
        return false;
    }
    handle = dlopen(path, f->flags);
    if (!handle) {
        append(f, "%s%s (%s)", *f->tried ? "; " : "", path, dlerror());
        return false;
    }
    m = dlsym(handle, f->symbol);
    if (!m) (void)snprintf(text, sizeof text, "no symbol %s", f->symbol);
    if (!m || !fits(f, m, text, sizeof text)) {
        append(f, "%s%s (%s)", *f->tried ? "; " : "", path, text);
        return false;
    }
    (void)snprintf(f->tried, sizeof f->tried, "%s (%s)", path, text);
    f->catalogue = m;
    return true;
}

/* Visits dir/sub/FILE; paths that are too long are skipped. */
static bool in_folder(finder *f, visit v, const char *dir, size_t length,
                      const char *sub)
{
    char path[PATH_SIZE];
    int n = snprintf(path, sizeof path, "%.*s%s/%s", (int)length, dir, sub,
                     f->file);

    return n > 0 && (size_t)n < sizeof path && v(f, path);
}

/* Returns whether the name of this path is that of a shared library, as in
 * x.so and x.so.6. */
static bool names_library(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *end = strstr(slash ? slash : path, ".so");

    return end && (end[3] == '\0' || end[3] == '.');
}

/* Visits the path that `request`, the value of SPSOLVE_MODULE_PATH, means.  It
 * names the file of the CUDA module, if it is a file or has the name of a shared
 * library, or a folder; in the first case the other modules are looked for in
 * the folder of that file. */
static bool visit_requested(finder *f, visit v, const char *request)
{
    struct stat st;
    const char *slash = strrchr(request, '/');
    const bool there = stat(request, &st) == 0;

    if (there ? S_ISDIR(st.st_mode) : !names_library(request))
        return in_folder(f, v, request, strlen(request), "");
    if (f != &cuda)
        return in_folder(f, v, slash ? request : ".",
                         slash ? (size_t)(slash - request) : 1, "");
    return v(f, request);
}

static bool beside_library(finder *f, visit v)
{
    Dl_info info;
    const char *slash;
    size_t length;

    if (!dladdr(&cuda, &info) || !info.dli_fname) return false;
    slash = strrchr(info.dli_fname, '/');
    if (!slash) return false; /* a static program called without a path */
    length = (size_t)(slash - info.dli_fname);
    return in_folder(f, v, info.dli_fname, length, "/spsolve") ||
           in_folder(f, v, info.dli_fname, length, "");
}

static const char *requested(void)
{
    const char *request = secure_getenv("SPSOLVE_MODULE_PATH");

    return request && *request ? request : NULL;
}

static bool search(finder *f, visit v)
{
    const char *request = requested();

    if (request) return visit_requested(f, v, request);
    if (beside_library(f, v)) return true;
#ifdef SPS_MODULE_DIR
    return in_folder(f, v, SPS_MODULE_DIR, strlen(SPS_MODULE_DIR), "");
#else
    return false;
#endif
}

static const void *found(finder *f, char *why, size_t size)
{
    pthread_mutex_lock(&lock);
    if (!f->searched) search(f, load);
    f->searched = true;
    pthread_mutex_unlock(&lock);
    (void)snprintf(why, size, "%s", f->tried);
    return f->catalogue;
}

const sps_module *spsi_module_load(char *why, size_t size)
{
    return found(&cuda, why, size);
}

const sps_factor_library *spsi_module_factor(char *why, size_t size)
{
    return found(&factor, why, size);
}

const char *spsi_module_factor_state(void)
{
    static char state[SPS_ERROR_SIZE + 16];
    char why[SPS_ERROR_SIZE];
    const bool there = spsi_module_factor(why, sizeof why) != NULL;

    pthread_mutex_lock(&lock);
    if (!*state)
        (void)snprintf(state, sizeof state, "%s%s", there ? "" : "absent: ",
                       why);
    pthread_mutex_unlock(&lock);
    return state;
}

const sps_engine *spsi_module_engine(int which, char *why, size_t size)
{
    return found(&engine[which], why, size);
}

bool spsi_module_installed(void)
{
    return search(&cuda, is_there);
}

bool spsi_module_expected(void)
{
    return requested() || spsi_module_installed();
}

/* ----------------------------------------------------------------- driver */

/* CUresult and its values are part of the driver's ABI. */
enum { DRIVER_OK = 0, DRIVER_NO_DEVICE = 100 };

static void ask_driver(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    int (*initialise)(unsigned) = NULL, (*count)(int *) = NULL;
    int code, devices = 0;

    if (driver) {
        *(void **)&initialise = dlsym(driver, "cuInit");
        *(void **)&count = dlsym(driver, "cuDeviceGetCount");
    }
    if (!initialise || !count) {
        snprintf(no_device, sizeof no_device, "there is no NVIDIA driver "
                 "(libcuda.so.1)");
        return;
    }
    code = initialise(0);
    if (code == DRIVER_OK) code = count(&devices);
    if (code == DRIVER_NO_DEVICE || (code == DRIVER_OK && devices == 0))
        snprintf(no_device, sizeof no_device, "the NVIDIA driver shows no GPU "
                 "(does CUDA_VISIBLE_DEVICES hide it?)");
    else if (code != DRIVER_OK)
        snprintf(no_device, sizeof no_device, "the NVIDIA driver failed with "
                 "error %d (nvidia-smi may tell more)", code);
}

bool spsi_module_device(char *why, size_t size)
{
    pthread_once(&asked, ask_driver);
    (void)snprintf(why, size, "%s", no_device);
    return !*no_device;
}

/* ------------------------------------------------------- other libraries */

bool spsi_module_symbols(const char *file, const spsi_symbol *symbols,
                         char *why, size_t size)
{
    void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    const char *text = handle ? NULL : dlerror();

    for (; handle && symbols->name && !text; symbols++) {
        *symbols->address = dlsym(handle, symbols->name);
        if (!*symbols->address) text = symbols->name;
    }
    (void)snprintf(why, size, "%s%s", handle && text ? "it has no " : "",
                   text ? text : "");
    return handle && !text;
}
