/* SPDX-License-Identifier: BSD-3-Clause */
/* module.c - finds, loads and checks spsolve_cuda.so, and loads other libraries
 * that are wanted for some files alone; nothing else in lib calls dlopen, and
 * nothing in this library links CUDA.
 *
 * The module and the libraries it links take some 250 MB and 0.1 to 0.4 s to
 * load, so the driver, a few hundred kilobytes, is first asked whether there is
 * a GPU (spsi_module_device): cuInit and cuDeviceGetCount, which the CUDA
 * runtime calls as well.
 *
 * Search order:
 *   1. SPSOLVE_MODULE_PATH, the file or its folder.  If it is set, nothing else
 *      is tried.  Not read in setuid programs;
 *   2. beside this library: its folder + "/spsolve" (installed), then the
 *      folder itself (a build tree keeps both libraries in .libs);
 *   3. the installation folder, SPS_MODULE_DIR, known at compile time.
 *
 * The result is state of the process: found once, under pthread_once, then only
 * read.  The module is never unloaded, because a CUDA runtime cannot be removed
 * from a process safely. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/module.h"

#define FILE_NAME "spsolve_cuda.so"
#define SYMBOL "spsi_cuda_catalogue"
#define PATH_SIZE 4096

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const sps_module *module;
static char tried[SPS_ERROR_SIZE]; /* why there is no module, or its path */

static pthread_once_t asked = PTHREAD_ONCE_INIT;
static char no_device[128];        /* why there is no GPU; "": there is one */

static void SPS_PRINTF(1, 2) append(const char *format, ...)
{
    size_t used = strlen(tried);
    va_list args;

    va_start(args, format);
    (void)vsnprintf(tried + used, sizeof tried - used, format, args);
    va_end(args);
}

/* Why the library cannot use this catalogue; NULL if it can. */
static const char *incompatibility(const sps_module *m, char *text, size_t size)
{
    if (m->abi != SPS_MODULE_ABI)
        (void)snprintf(text, size, "interface %d, needed is %d", m->abi,
                       SPS_MODULE_ABI);
    else if (strcmp(m->version, sps_version()) != 0)
        (void)snprintf(text, size, "version %.20s, this library is %s",
                       m->version, sps_version());
    else
        return NULL;
    return text;
}

/* Called for each path where the module may be, in the order of the search,
 * until it returns true. */
typedef bool (*visit)(const char *path);

static bool is_there(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0;
}

static bool load(const char *path)
{
    char text[96];
    const char *no;
    const sps_module *m;
    void *handle;

    if (!is_there(path)) {
        append("%s%s (absent)", *tried ? "; " : "", path);
        return false;
    }
    handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        append("%s%s (%s)", *tried ? "; " : "", path, dlerror());
        return false;
    }
    m = dlsym(handle, SYMBOL);
    no = m ? incompatibility(m, text, sizeof text) : "no symbol " SYMBOL;
    if (no) {
        append("%s%s (%s)", *tried ? "; " : "", path, no);
        return false;
    }
    (void)snprintf(tried, sizeof tried, "%s (%s)", path, m->architectures);
    module = m;
    return true;
}

/* Visits dir/sub/spsolve_cuda.so; paths that are too long are skipped. */
static bool in_folder(visit v, const char *dir, size_t length, const char *sub)
{
    char path[PATH_SIZE];
    int n = snprintf(path, sizeof path, "%.*s%s/" FILE_NAME, (int)length, dir,
                     sub);

    return n > 0 && (size_t)n < sizeof path && v(path);
}

static bool visit_requested(visit v, const char *request)
{
    struct stat st;

    if (stat(request, &st) == 0 && S_ISDIR(st.st_mode))
        return in_folder(v, request, strlen(request), "");
    return v(request);
}

static bool beside_library(visit v)
{
    Dl_info info;
    const char *slash;
    size_t length;

    if (!dladdr((void *)&once, &info) || !info.dli_fname) return false;
    slash = strrchr(info.dli_fname, '/');
    if (!slash) return false; /* a static program called without a path */
    length = (size_t)(slash - info.dli_fname);
    return in_folder(v, info.dli_fname, length, "/spsolve") ||
           in_folder(v, info.dli_fname, length, "");
}

static const char *requested(void)
{
    const char *request = secure_getenv("SPSOLVE_MODULE_PATH");

    return request && *request ? request : NULL;
}

static bool search(visit v)
{
    const char *request = requested();

    if (request) return visit_requested(v, request);
    if (beside_library(v)) return true;
#ifdef SPS_MODULE_DIR
    return in_folder(v, SPS_MODULE_DIR, strlen(SPS_MODULE_DIR), "");
#else
    return false;
#endif
}

static void find(void)
{
    search(load);
}

const sps_module *spsi_module_load(char *why, size_t size)
{
    pthread_once(&once, find);
    (void)snprintf(why, size, "%s", tried);
    return module;
}

bool spsi_module_installed(void)
{
    return search(is_there);
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
                 "(CUDA_VISIBLE_DEVICES?)");
    else if (code != DRIVER_OK)
        snprintf(no_device, sizeof no_device, "the NVIDIA driver failed with "
                 "error %d (nvidia-smi may append more)", code);
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
