/* SPDX-License-Identifier: BSD-3-Clause */
/* module.c - finds, loads and checks spsolve_cuda.so; nothing else here calls
 * dlopen, and nothing in this library links CUDA.
 *
 * Where it looks:
 *   1. SPSOLVE_MODULE_PATH, the file or its folder.  An explicit wish is not
 *      replaced by another find: when it is set, it alone is tried.  Not read
 *      in setuid programs;
 *   2. beside this library: its folder + "/spsolve" (installed), then the
 *      folder itself (a build tree keeps both libraries in .libs);
 *   3. the folder of installation, SPS_MODULE_DIR, known at compile time.
 *
 * The outcome is the library's only state of the process: found once, under
 * pthread_once, then read alone.  The module is never unloaded, because a
 * CUDA runtime cannot be taken out of a process safely. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "registry.h"

#define FILE_NAME "spsolve_cuda.so"
#define SYMBOL "spsi_cuda_catalogue"
#define PATH_SIZE 4096

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const sps_module *module;
static char tried[SPS_ERROR_SIZE]; /* why there is none, or where it was */
static bool expected;              /* wished for, or a file was there */

static void SPS_PRINTF(1, 2) say(const char *format, ...)
{
    size_t used = strlen(tried);
    va_list args;

    va_start(args, format);
    (void)vsnprintf(tried + used, sizeof tried - used, format, args);
    va_end(args);
}

/* NULL when the catalogue is one that this library can use. */
static const char *refusal(const sps_module *m, char *text, size_t size)
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

static bool try_file(const char *path)
{
    char text[96];
    const char *no;
    const sps_module *m;
    struct stat st;
    void *handle;

    if (stat(path, &st) != 0) {
        say("%s%s (absent)", *tried ? "; " : "", path);
        return false;
    }
    expected = true;
    handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        say("%s%s (%s)", *tried ? "; " : "", path, dlerror());
        return false;
    }
    m = dlsym(handle, SYMBOL);
    no = m ? refusal(m, text, sizeof text) : "no symbol " SYMBOL;
    if (no) {
        say("%s%s (%s)", *tried ? "; " : "", path, no);
        return false;
    }
    (void)snprintf(tried, sizeof tried, "%s (%s)", path, m->architectures);
    module = m;
    return true;
}

/* dir/sub/spsolve_cuda.so; paths too long for a file name are not tried. */
static bool try_folder(const char *dir, size_t length, const char *sub)
{
    char path[PATH_SIZE];
    int n = snprintf(path, sizeof path, "%.*s%s/" FILE_NAME, (int)length, dir,
                     sub);

    return n > 0 && (size_t)n < sizeof path && try_file(path);
}

static bool try_wish(const char *wish)
{
    struct stat st;

    if (stat(wish, &st) == 0 && S_ISDIR(st.st_mode))
        return try_folder(wish, strlen(wish), "");
    return try_file(wish);
}

static bool try_beside_library(void)
{
    Dl_info info;
    const char *slash;
    size_t length;

    if (!dladdr((void *)&once, &info) || !info.dli_fname) return false;
    slash = strrchr(info.dli_fname, '/');
    if (!slash) return false; /* a static program found through PATH */
    length = (size_t)(slash - info.dli_fname);
    return try_folder(info.dli_fname, length, "/spsolve") ||
           try_folder(info.dli_fname, length, "");
}

static void find(void)
{
    const char *wish = secure_getenv("SPSOLVE_MODULE_PATH");

    if (wish && *wish) {
        expected = true;
        try_wish(wish);
        return;
    }
    if (try_beside_library()) return;
#ifdef SPS_MODULE_DIR
    try_folder(SPS_MODULE_DIR, strlen(SPS_MODULE_DIR), "");
#endif
}

const sps_module *spsi_module_load(char *why, size_t size)
{
    pthread_once(&once, find);
    (void)snprintf(why, size, "%s", tried);
    return module;
}

bool spsi_module_expected(void)
{
    return expected;
}
