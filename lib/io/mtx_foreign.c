/* SPDX-License-Identifier: BSD-3-Clause */
/* mtx_foreign.c - recognises files of other kinds by their first bytes, and
 * says how to convert them to Matrix Market files. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "io/files/plain.h"
#include "io/mtx.h"

#define PYTHON "python3 -c \"import numpy as n, scipy.io as i, "               \
               "scipy.sparse as s; "
#define TO_A "i.mmwrite('A.mtx', "
#define DENSE(how) "such files are read only as right-hand sides (-B); if "    \
                   "it is a dense matrix: python3 -c \"import numpy as n; "     \
                   "n.save('A.npy', n.genfromtxt('$'" how "))\""

/* Formats with a magic number of `length` bytes at offset `at`: `what` is the
 * kind of file, and `how` the way to convert it, where $ stands for the name of
 * the file.  Longer magic numbers come first. */
static const struct {
    int at, length;
    const char *magic, *what, *how;
} known[] = {
    {0, 19, "MATLAB 7.3 MAT-file", "a MATLAB file of version 7.3 (HDF5)",
     "save it in MATLAB with -v7, or, for its variable A: python3 -c \"import "
     "h5py, scipy.io as i, scipy.sparse as s; g=h5py.File('$')['A']; " TO_A
     "s.csc_matrix((g['data'][:], g['ir'][:], g['jc'][:])))\""},
    {0, 8, "\x89HDF\r\n\x1a\n", "an HDF5 file",
     "for a group A of data, indices, indptr: python3 -c \"import h5py, "
     "scipy.io as i, scipy.sparse as s; g=h5py.File('$')['A']; " TO_A
     "s.csr_matrix((g['data'][:], g['indices'][:], g['indptr'][:])))\" (h5ls "
     "-r $ lists what there is)"},
    {0, 3, "BZh", "compressed by bzip2", "bzip2 -dc $ | spsolve -A -"},
    {0, 4, "\x04\x22\x4d\x18", "compressed by lz4", "lz4 -dc $ | spsolve -A -"},
    {0, 2, "\x1f\x9d", "compressed by compress", "gzip -dc $ | spsolve -A -"},
    {0, 4, "7z\xbc\xaf", "a 7-Zip archive", "unpack it (7z x $) and use the "
     ".mtx file in it"},
    {257, 5, "ustar", "a tar archive", "unpack it (tar -xf $) and use the "
     ".mtx file in it"},
    {0, 2, "\xff\xfe", "text in UTF-16", "iconv -f UTF-16 -t UTF-8 $ | "
     "spsolve -A -"},
    {0, 2, "\xfe\xff", "text in UTF-16", "iconv -f UTF-16 -t UTF-8 $ | "
     "spsolve -A -"},
    {0, 24, "version https://git-lfs.", "a pointer of Git LFS, not the data",
     "git lfs pull fetches those"},
    {0, 4, "%PDF", "a PDF document", "give the matrix itself"},
};

typedef struct foreign {
    const char *what, *how;
} foreign;

static const foreign none;

/* ------------------------------------------------------------------- text */

static const char *skip_blanks(const char *p, const char *end)
{
    while (p < end && strchr(" \t\r\n", *p) && *p) p++;
    return p;
}

static bool begins(const char *p, const char *end, const char *word)
{
    size_t n = strlen(word);

    return (size_t)(end - p) >= n && strncasecmp(p, word, n) == 0;
}

static foreign markup(const char *p, const char *end)
{
    if (begins(p, end, "<!doctype html") || begins(p, end, "<html"))
        return (foreign){"a page of HTML, not data (the error page of a "
                         "download?)", "read it in a browser, and fetch the "
                         "file again"};
    if (*p == '<') return (foreign){"a file of XML", "write its matrix with "
                                    "scipy.io.mmwrite('A.mtx', A)"};
    if (*p == '{' || *p == '[')
        return (foreign){"a file of JSON", "make the matrix of it in Python "
                         "and write it with scipy.io.mmwrite('A.mtx', A)"};
    return none;
}

/* ---------------------------------------------------------------- columns */

static foreign table(spsi_plain c)
{
    if (c.count == 3 && c.whole && c.separator == ' ')
        return (foreign){"lines of three numbers", "if they are row, column "
                         "and value, counted from 1: " PYTHON
                         "a=n.loadtxt('$'); r=a[:,:2].T.astype(int)-1; " TO_A
                         "s.coo_matrix((a[:,2], tuple(r))))\" (from 0: without "
                         "the -1; if the first line holds the sizes: put "
                         "%%MatrixMarket matrix coordinate real general before "
                         "it)"};
    if (c.count == 2 && c.whole && c.separator == ' ')
        return (foreign){"lines of two whole numbers", "if they are the edges "
                         "of a graph, counted from 0: " PYTHON
                         "r=n.loadtxt('$',int).T; " TO_A
                         "s.coo_matrix((0*r[0]+1., tuple(r)), "
                         "[r.max()+1]*2))\" (from 1: r=...T-1)"};
    if (c.separator == ',')
        return (foreign){"numbers separated by commas (CSV)",
                         DENSE(",delimiter=','")};
    if (c.separator == ';')
        return (foreign){"numbers separated by semicolons (CSV)",
                         DENSE(",delimiter=';'")};
    return (foreign){"plain columns of numbers", DENSE("")};
}

/* Returns what to do with a table of numbers, possibly with names of columns in
 * its first line, given as a matrix.  As right-hand sides such tables are read
 * (plain.c). */
static foreign numbers(const char *p, const char *end)
{
    spsi_plain c;

    p = spsi_plain_first(p, end);
    c = spsi_plain_look(p, end);
    if (c.count > 0) return table(c);
    c = spsi_plain_look(spsi_plain_next(p, end), end);
    if (c.count < 2 || c.separator == ' ') return none;
    return (foreign){"a table with names of columns (CSV)",
                     DENSE(",delimiter=',',skip_header=1")};
}

/* ------------------------------------------------------------------ which */

static foreign archive(const char *p, const char *end)
{
    if (end - p < 4 || memcmp(p, "PK\3\4", 4)) return none;
    return (foreign){"a zip archive", "unzip -p $ | spsolve -A -"};
}

static bool binary(const char *p, const char *end)
{
    if (end - p > 512) end = p + 512;
    return memchr(p, '\0', (size_t)(end - p)) != NULL;
}

/* Returns whether the bytes are the header of a MATLAB file of level 4 in this
 * byte order: type, rows, columns, complex or not, length of the name. */
static bool matlab_4(const char *p, const char *end)
{
    int32_t h[5];

    if (end - p < (ptrdiff_t)sizeof h + 2) return false;
    memcpy(h, p, sizeof h);
    return h[0] >= 0 && h[0] < 100 && h[0] % 10 <= 2 && h[1] >= 0 &&
           h[2] >= 0 && (h[3] == 0 || h[3] == 1) && h[4] > 1 && h[4] <= 64 &&
           p[sizeof h] > ' ';
}

static foreign recognise(const char *text, size_t length)
{
    const char *end = text + length, *p = skip_blanks(text, end);
    foreign f = archive(text, end);

    for (size_t i = 0; i < sizeof known / sizeof *known && !f.what; i++)
        if (length >= (size_t)(known[i].at + known[i].length) &&
            memcmp(text + known[i].at, known[i].magic,
                   (size_t)known[i].length) == 0)
            f = (foreign){known[i].what, known[i].how};
    if (!f.what && matlab_4(text, end))
        f = (foreign){"a MATLAB file of level 4", "save it in MATLAB with -v7, "
                      "or by scipy.io.savemat"};
    if (!f.what && binary(text, end))
        f = (foreign){"a binary file of a kind that is not known here",
                      "write the matrix with scipy.io.mmwrite('A.mtx', A)"};
    if (!f.what && p < end) f = markup(p, end);
    if (!f.what) f = numbers(p, end);
    return f;
}

/* Copies `how` to `text` with `name` in place of each $, or with FILE if a
 * shell would need quotes for the name. */
static void fill_in(const char *how, const char *name, char *text, size_t size)
{
    size_t at = 0, length = strlen(name);
    const bool plain = length < 160 && *name != '-' && !strchr(name, ' ') &&
                       strspn(name, "abcdefghijklmnopqrstuvwxyz"
                              "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                              "+-._/") == length;

    if (!plain) name = "FILE";
    for (; *how && at + 1 < size; how++) {
        if (*how != '$') {
            text[at++] = *how;
        } else {
            snprintf(text + at, size - at, "%s", name);
            at += strlen(text + at);
        }
    }
    text[at] = '\0';
}

sps_status spsi_mtx_foreign(const spsi_mtx *m, const char *text, size_t length)
{
    char how[SPS_ERROR_SIZE];
    foreign f = none;

    /* A byte order mark and blanks may precede the banner. */
    if (length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        text += 3, length -= 3;
    const char *p = skip_blanks(text, text + length);
    if (p == text + length || (*p == '%' && !begins(p, text + length, "%PDF")))
        return SPS_OK;
    f = recognise(text, length);
    if (!f.what) return SPS_OK;      /* mtx_header.c reports the error */
    fill_in(f.how, m->name, how, sizeof how);
    return spsi_fail(m->ctx, SPS_EPARSE, "%s:1: this is not a Matrix Market "
                     "file but %s; %s", m->name, f.what, how);
}
