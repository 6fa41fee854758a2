/* SPDX-License-Identifier: BSD-3-Clause */
/* mtx_header.c - banner and size line of a Matrix Market file.
 *
 *   %%MatrixMarket matrix|vector coordinate|array FIELD SYMMETRY
 *   % comments, blank lines
 *   rows [columns] [entries]
 *
 * All of it is checked before memory for entries is allocated. */
#include <string.h>
#include <strings.h>

#include "io/mtx.h"
#include "io/number/number.h"

/* The largest number of rows or columns: column indices have 32 bits. */
#define LARGEST INT32_MAX

typedef struct word {
    const char *p;
    size_t length;
} word;

static word next_word(const char **at, const char *end)
{
    const char *p = *at;
    word w;

    while (p < end && (*p == ' ' || *p == '\t')) p++;
    w.p = p;
    while (p < end && *p != ' ' && *p != '\t') p++;
    w.length = (size_t)(p - w.p);
    *at = p;
    return w;
}

static bool is(word w, const char *text)
{
    return w.length == strlen(text) && strncasecmp(w.p, text, w.length) == 0;
}

/* Copies the word in printable characters, at most 40, for messages. */
static const char *show(word w, char text[48])
{
    size_t n = w.length < 40 ? w.length : 40;

    for (size_t i = 0; i < n; i++)
        text[i] = w.p[i] > ' ' && w.p[i] < 127 ? w.p[i] : '?';
    text[n] = '\0';
    return text;
}

const char *spsi_mtx_field_name(spsi_mtx_field field)
{
    static const char *const name[] = {"real", "integer", "integer",
                                       "pattern", "complex"};
    return name[field];
}

const char *spsi_mtx_symmetry_name(spsi_mtx_symmetry symmetry)
{
    static const char *const name[] = {"general", "symmetric",
                                       "skew-symmetric", "hermitian"};
    return name[symmetry];
}

static sps_status read_field(spsi_mtx *m, word w)
{
    static const struct {
        const char *text;
        spsi_mtx_field field;
    } list[] = {{"real", SPSI_MTX_REAL},
                {"double", SPSI_MTX_REAL},
                {"integer", SPSI_MTX_INTEGER},
                {"unsigned-integer", SPSI_MTX_UNSIGNED},
                {"pattern", SPSI_MTX_PATTERN},
                {"complex", SPSI_MTX_COMPLEX}};
    char text[48];

    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (is(w, list[i].text)) {
            m->header.field = list[i].field;
            return SPS_OK;
        }
    return spsi_fail(m->ctx, SPS_EPARSE, "%s:%lld: unknown field \"%s\" in "
                     "the banner (known: real, integer, unsigned-integer, "
                     "pattern, complex)", m->name, (long long)m->line,
                     show(w, text));
}

static sps_status read_symmetry(spsi_mtx *m, word w)
{
    spsi_mtx_header *h = &m->header;
    char text[48];
    sps_status st = SPS_OK;
    int i = SPSI_MTX_GENERAL;

    while (i <= SPSI_MTX_HERMITIAN &&
           !is(w, spsi_mtx_symmetry_name((spsi_mtx_symmetry)i)))
        i++;
    SPS_REQUIRE(m->ctx, i <= SPSI_MTX_HERMITIAN, SPS_EPARSE, "%s:%lld: "
                "unknown symmetry \"%s\" in the banner (known: general, "
                "symmetric, skew-symmetric, hermitian)", m->name,
                (long long)m->line, show(w, text));
    h->symmetry = (spsi_mtx_symmetry)i;
    SPS_REQUIRE(m->ctx, h->field != SPSI_MTX_PATTERN ||
                h->symmetry != SPSI_MTX_SKEW, SPS_EPARSE, "%s:%lld: a "
                "pattern has no signs, so it cannot be skew-symmetric",
                m->name, (long long)m->line);
    SPS_REQUIRE(m->ctx, h->field != SPSI_MTX_PATTERN || !h->array, SPS_EPARSE,
                "%s:%lld: an array file has nothing but values, so its field "
                "cannot be pattern", m->name, (long long)m->line);
    SPS_REQUIRE(m->ctx, !h->vector || i == SPSI_MTX_GENERAL, SPS_EPARSE,
                "%s:%lld: a vector must be general, not %s", m->name,
                (long long)m->line, show(w, text));
fail:
    return st;
}

/* Returns where the banner's words begin, or NULL if there is no banner.  A
 * byte order mark, blanks and a single percent sign are accepted with a
 * note. */
static const char *find_banner(const spsi_mtx *m, const char *p,
                               const char *end)
{
    static const char name[] = "MatrixMarket";
    const char *begin = p;
    size_t percents = 0;

    if (end - p >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0) p += 3;
    while (p < end && (*p == ' ' || *p == '\t')) p++;
    if (p > begin)
        spsi_note(m->ctx, "%s: the banner follows a byte order mark or blanks",
                  m->name);
    for (; p < end && *p == '%' && percents < 2; p++) percents++;
    if (percents == 0 || (size_t)(end - p) < sizeof name - 1 ||
        strncasecmp(p, name, sizeof name - 1) != 0)
        return NULL;
    p += sizeof name - 1;
    if (p < end && *p != ' ' && *p != '\t') return NULL;
    if (percents == 1)
        spsi_note(m->ctx, "%s: the banner begins with one percent sign, not "
                  "two", m->name);
    return p;
}

static sps_status read_banner(spsi_mtx *m, const char *p, const char *end)
{
    spsi_mtx_header *h = &m->header;
    long long line = m->line;
    sps_status st = SPS_OK;
    char text[48];
    word w[5];

    p = find_banner(m, p, end);
    SPS_REQUIRE(m->ctx, p != NULL, SPS_EPARSE, "%s:%lld: this is not a "
                "Matrix Market file: its first line must begin with "
                "%%%%MatrixMarket", m->name, line);
    for (int i = 0; i < 5; i++) w[i] = next_word(&p, end);
    SPS_REQUIRE(m->ctx, w[3].length > 0, SPS_EPARSE, "%s:%lld: the banner "
                "is cut off (%%%%MatrixMarket matrix coordinate real general "
                "is a complete one)", m->name, line);
    SPS_REQUIRE(m->ctx, w[4].length == 0, SPS_EPARSE, "%s:%lld: \"%s\" "
                "follows a complete banner", m->name, line, show(w[4], text));
    h->vector = is(w[0], "vector");
    SPS_REQUIRE(m->ctx, h->vector || is(w[0], "matrix"), SPS_EPARSE,
                "%s:%lld: unknown object \"%s\" in the banner (known: matrix, "
                "vector)", m->name, line, show(w[0], text));
    h->array = is(w[1], "array");
    SPS_REQUIRE(m->ctx, h->array || is(w[1], "coordinate"), SPS_EPARSE,
                "%s:%lld: unknown format \"%s\" in the banner (known: "
                "coordinate, array)", m->name, line, show(w[1], text));
    SPS_TRY(read_field(m, w[2]));
    SPS_TRY(read_symmetry(m, w[3]));
    m->words = h->field == SPSI_MTX_PATTERN ? 0
             : h->field == SPSI_MTX_COMPLEX ? 2 : 1;
fail:
    return st;
}

/* Reads the numbers of the size line, two or three by the format. */
static sps_status read_sizes(const spsi_mtx *m, const char *p, const char *end,
                             int64_t size[3])
{
    static const char *const what[] = {"rows", "columns", "entries"};
    const spsi_mtx_header *h = &m->header;
    const int part[] = {0, h->vector ? 2 : 1, 2};
    const int numbers = 1 + !h->vector + !h->array;
    sps_status st = SPS_OK;
    char text[48];

    size[1] = 1;
    for (int i = 0; i < numbers; i++) {
        word w = next_word(&p, end);
        const char *name = what[part[i]];
        const char *stop = spsi_number_integer(w.p, &size[part[i]]);

        SPS_REQUIRE(m->ctx, w.length > 0, SPS_EPARSE, "%s:%lld: the size "
                    "line lacks the number of %s", m->name,
                    (long long)m->line, name);
        SPS_REQUIRE(m->ctx, stop != w.p, SPS_EPARSE, "%s:%lld: \"%s\" is "
                    "not a number of %s (it must have only digits)", m->name,
                    (long long)m->line, show(w, text), name);
        SPS_REQUIRE(m->ctx, stop != NULL && (part[i] == 2 ||
                    size[part[i]] <= LARGEST), SPS_EPARSE, "%s:%lld: %s %s "
                    "are too many, at most %lld can be read", m->name,
                    (long long)m->line, show(w, text), name,
                    part[i] == 2 ? (long long)INT64_MAX : (long long)LARGEST);
        SPS_REQUIRE(m->ctx, stop == w.p + w.length, SPS_EPARSE, "%s:%lld: "
                    "\"%s\" is not a number of %s (it must have only digits)",
                     m->name,
                    (long long)m->line, show(w, text), name);
    }
    word more = next_word(&p, end);
    SPS_REQUIRE(m->ctx, more.length == 0, SPS_EPARSE, "%s:%lld: \"%s\" "
                "follows a complete size line", m->name, (long long)m->line,
                show(more, text));
fail:
    return st;
}

static int64_t array_count(const spsi_mtx_header *h)
{
    switch (h->symmetry) {
    case SPSI_MTX_GENERAL:
        return h->nrow * h->ncol;         /* below 2^62 */
    case SPSI_MTX_SKEW:
        return h->nrow > 0 ? h->nrow * (h->nrow - 1) / 2 : 0;
    default:
        return h->nrow * (h->nrow + 1) / 2;
    }
}

/* Returns EPARSE if the file has too few bytes for the number of entries in the
 * size line, or the matrix has entries but no rows or columns. */
static sps_status check_count(const spsi_mtx *m)
{
    const spsi_mtx_header *h = &m->header;
    uint64_t bound = spsi_text_bound(m->text);
    uint64_t least = (uint64_t)spsi_mtx_least(h);
    sps_status st = SPS_OK;

    SPS_REQUIRE(m->ctx, h->count == 0 || (h->nrow > 0 && h->ncol > 0),
                SPS_EPARSE, "%s:%lld: %lld entries in a matrix of %lld rows "
                "and %lld columns", m->name, (long long)m->line,
                (long long)h->count, (long long)h->nrow, (long long)h->ncol);
    SPS_REQUIRE(m->ctx, bound == UINT64_MAX ||
                (uint64_t)h->count <= bound / least + 1, SPS_EPARSE,
                "%s:%lld: %lld entries are announced, but the file has only "
                "%llu bytes (cut off?)", m->name, (long long)m->line,
                (long long)h->count,
                (unsigned long long)spsi_text_size(m->text));
fail:
    return st;
}

static sps_status read_size_line(spsi_mtx *m, const char *p, const char *end)
{
    spsi_mtx_header *h = &m->header;
    int64_t size[3] = {0, 0, 0};
    sps_status st;

    SPS_TRY(read_sizes(m, p, end, size));
    h->nrow = size[0];
    h->ncol = size[1];
    SPS_REQUIRE(m->ctx, h->symmetry == SPSI_MTX_GENERAL || h->nrow == h->ncol,
                SPS_EPARSE, "%s:%lld: the banner says %s, but %lld rows and "
                "%lld columns are not square", m->name, (long long)m->line,
                spsi_mtx_symmetry_name(h->symmetry), (long long)h->nrow,
                (long long)h->ncol);
    SPS_REQUIRE(m->ctx, h->field != SPSI_MTX_COMPLEX ||
                (h->nrow <= LARGEST / 2 && h->ncol <= LARGEST / 2), SPS_EPARSE,
                "%s:%lld: a complex matrix doubles in its real form; %lld "
                "rows and %lld columns are too many", m->name,
                (long long)m->line, (long long)h->nrow, (long long)h->ncol);
    h->count = h->array ? array_count(h) : size[2];
    SPS_TRY(check_count(m));
    spsi_text_limit(m->text, (uint64_t)h->count > UINT64_MAX / 1024
                    ? UINT64_MAX
                    : (uint64_t)h->count * 400 + (UINT64_C(16) << 20));
fail:
    return st;
}

sps_status spsi_mtx_header_read(spsi_mtx *m, const char *begin,
                                const char *end, bool *banner,
                                const char **next, bool *ready)
{
    sps_status st = SPS_OK;

    *ready = false;
    while (begin < end && !*ready) {
        const char *newline = memchr(begin, '\n', (size_t)(end - begin));
        const char *stop = newline, *p = begin;

        if (stop > begin && stop[-1] == '\r') stop--;
        m->line++;
        if (!*banner) {
            SPS_TRY(read_banner(m, begin, stop));
            *banner = true;
        } else {
            while (p < stop && (*p == ' ' || *p == '\t')) p++;
            *ready = p < stop && *p != '%';
            if (*ready) SPS_TRY(read_size_line(m, p, stop));
        }
        begin = newline + 1;
    }
    *next = begin;
fail:
    return st;
}
