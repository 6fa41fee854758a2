/* SPDX-License-Identifier: BSD-3-Clause */
/* mtx.h - Matrix Market files inside the library.
 *
 *   mtx_read.c    text, batch by batch, to entries in the order of the file
 *   mtx_header.c  banner and size line
 *   mtx_foreign.c recognises files of other kinds
 *   mtx_line.c    lines to entries; pieces of a batch are parsed in parallel
 *   mtx_error.c   texts of errors
 *   mtx_store.c   memory of the entries between file and result
 *   mtx_csr.c     entries to a csr
 *   mtx_ranks.c   the rows of each of several processes
 *   mtx_block.c   entries to a block
 *   mtx_block_ranks.c  own rows of a block, for each of several processes
 *   mtx_write.c   csr and block to text
 *
 * Entries are stored in the order of the file, 0-based, in segments: one for
 * each batch of text.  A segment consists of pieces: consecutive lines that one
 * thread parses.
 *
 *   segment  row [ piece 0 | piece 1 .. | piece 2 ... ]     int32
 *            col [                                    ]     int32
 *            val [ 1 or 2 doubles an entry, none for pattern ]
 */
#ifndef SPS_MTX_H
#define SPS_MTX_H

#include "io/stream/format.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum spsi_mtx_field {
    SPSI_MTX_REAL,
    SPSI_MTX_INTEGER,
    SPSI_MTX_UNSIGNED,
    SPSI_MTX_PATTERN,
    SPSI_MTX_COMPLEX
} spsi_mtx_field;

typedef enum spsi_mtx_symmetry {
    SPSI_MTX_GENERAL,
    SPSI_MTX_SYMMETRIC,
    SPSI_MTX_SKEW,
    SPSI_MTX_HERMITIAN
} spsi_mtx_symmetry;

typedef struct spsi_mtx_header {
    bool array, vector;
    spsi_mtx_field field;
    spsi_mtx_symmetry symmetry;
    int64_t nrow, ncol;
    int64_t count;             /* entries that the file must hold */
} spsi_mtx_header;

/* What can be wrong with a line; mtx_error.c has the texts. */
typedef enum spsi_mtx_error {
    SPSI_MTX_FINE,
    SPSI_MTX_ROW, SPSI_MTX_COLUMN,               /* not a number */
    SPSI_MTX_ROW_ZERO, SPSI_MTX_COLUMN_ZERO,
    SPSI_MTX_ROW_RANGE, SPSI_MTX_COLUMN_RANGE,
    SPSI_MTX_NO_COLUMN, SPSI_MTX_NO_VALUE, SPSI_MTX_NO_IMAGINARY,
    SPSI_MTX_VALUE, SPSI_MTX_INTEGER_VALUE, SPSI_MTX_UNSIGNED_VALUE,
    SPSI_MTX_HUGE_VALUE, SPSI_MTX_NOT_FINITE,
    SPSI_MTX_EXTRA, SPSI_MTX_EXTRA_PATTERN, SPSI_MTX_CARRIAGE,
    SPSI_MTX_LONG, SPSI_MTX_SKEW_DIAGONAL, SPSI_MTX_REAL_DIAGONAL,
    SPSI_MTX_TOO_MANY
} spsi_mtx_error;

typedef struct spsi_mtx_piece {
    const char *begin, *end;   /* text of whole lines, in the batch */
    int64_t first_line;        /* number of the first line, from 1 */
    int64_t lines;
    int64_t at, count;         /* offset of its entries in the segment; their
                                  number */
    int32_t row_low, row_high, col_low, col_high;  /* ranges of indices */
    int64_t diagonal;          /* entries on the diagonal */
    int64_t lower, upper;      /* in files with a symmetry: line of the first
                                  entry below and above the diagonal, or 0 */
    int64_t rounded, tiny;     /* integers rounded, values below the normal
                                  range */
    spsi_mtx_error error;
    const char *where;         /* position of the error in the text */
    int64_t error_line;
    int32_t *line;             /* line of each entry, minus first_line; NULL
                                  if every line has an entry, or no error
                                  message can need the number later */
} spsi_mtx_piece;

typedef struct spsi_mtx_segment {
    int64_t capacity, pieces;
    spsi_mtx_piece *piece;
    int32_t *row, *col;        /* NULL for array files */
    double *val;               /* NULL for pattern files */
} spsi_mtx_segment;

typedef struct spsi_mtx {
    sps_context *ctx;
    spsi_text *text;           /* that of the spsi_file, not owned */
    sps_read_options options;
    const char *name;
    spsi_mtx_header header;
    int words;                 /* doubles of an entry: 0, 1 or 2 */
    int64_t line;              /* number of lines read; while the header is
                                  read, number of the present line */
    int64_t stored;            /* entries read */
    int64_t diagonal, rounded, tiny;
    int64_t lower, upper;      /* line of the first entry below, above the
                                  diagonal; 0 if there is none */
    int64_t segments, room;
    spsi_mtx_segment *segment;
} spsi_mtx;

/* Reads the whole file, or only its header if f->peek.  The size of the result,
 * a block or a csr, is checked before memory is allocated for entries. */
sps_status spsi_mtx_load(const spsi_file *f, spsi_mtx **m_p);
void spsi_mtx_free(spsi_mtx **m_p);
/* A part of a file: about bytes / parts of it, cut at line ends. */
typedef struct spsi_mtx_part {
    int part, parts;           /* input: part 0 .. parts - 1 */
    bool block;                /* input: a real array is wanted, otherwise a
                                  square matrix in coordinates */
    uint64_t bytes, body;      /* length of the part; of all after the header */
    int64_t header_lines;
} spsi_mtx_part;
/* Reads the header and the entries of part p->part of a seekable file; m->line
 * counts the lines of both.  Whether all parts have the number of entries of
 * the header, and one triangle, is for the caller to check.  EUNFIT for files
 * of other contents. */
sps_status spsi_mtx_load_part(const spsi_file *f, spsi_mtx_part *p,
                              spsi_mtx **m_p);
/* mtx_csr.c: creates a csr of rows low .. high - 1 of a coordinate file, with
 * global columns, and each row's entries in the order of the file: neither
 * sorted nor with duplicates summed; its members first and whole are not set.
 *  Entries of other rows are
 * ignored.  The caller destroys *A_p, also after a failure. */
sps_status spsi_mtx_rows(spsi_mtx *m, int64_t low, int64_t high,
                         sps_csr **A_p);
/* Returns the number of entries of the file that were summed into others.
 * kept: number of entries of the csr; diagonal: how many of them are on the
 * diagonal (for a complex file both count 2 x 2 blocks). */
int64_t spsi_mtx_summed(const spsi_mtx *m, int64_t kept, int64_t diagonal);
struct spsi_share;
/* mtx_ranks.c: for several processes, collective.  Each reads a part of the
 * file, and gets the rows that it wants (own_rows.h).  *done is false, on all
 * processes, if the file must be read as a whole by each: it is of another kind
 * or shape, or something is wrong with it. */
sps_status spsi_mtx_read_ranks(sps_context *ctx, const char *path,
                               const sps_read_options *ro, sps_read_info *info,
                               const struct spsi_share *wanted, sps_csr **A_p,
                               bool *done);
/* Frees the entries; header and counts remain. */
void spsi_mtx_drop(spsi_mtx *m);
/* mtx_foreign.c: returns EPARSE if the text begins like a file of another known
 * kind; the message names the kind and says how to convert it. */
sps_status spsi_mtx_foreign(const spsi_mtx *m, const char *text,
                            size_t length);
/* Returns the line of entry number `entry` of the file, counted from 0. */
int64_t spsi_mtx_line(const spsi_mtx *m, int64_t entry);
/* Fills in *info; `summed` is the number of entries that were summed into
 * others. */
void spsi_mtx_info(const spsi_mtx *m, int64_t summed, sps_read_info *info);
/* Adds notes where the matrix differs from the text: pattern taken as ones,
 * complex as interleaved, upper triangle mirrored, values rounded. */
void spsi_mtx_notes(const spsi_mtx *m);
/* Computes the rows and columns of the entries of an array file, and drops
 * zeros. */
sps_status spsi_mtx_expand(spsi_mtx *m);
/* spsi_mtx_add_segment appends a segment of `pieces` pieces, without memory for
 * entries; the other function allocates memory for `capacity` entries: values
 * and, with indices, rows and columns. */
sps_status spsi_mtx_add_segment(spsi_mtx *m, int64_t pieces,
                                spsi_mtx_segment **s_p);
sps_status spsi_mtx_give_room(spsi_mtx *m, spsi_mtx_segment *s,
                              int64_t capacity, bool indices);
/* Returns whether the file has a symmetry: it stores one triangle, and the
 * other one is its mirror image. */
static inline bool spsi_mtx_mirrors(const spsi_mtx *m)
{
    return m->header.symmetry != SPSI_MTX_GENERAL;
}
/* Returns the value of entry p of s; *im is its imaginary part, 0 unless the
 * file is complex. */
static inline double spsi_mtx_value(const spsi_mtx *m,
                                    const spsi_mtx_segment *s, int64_t p,
                                    double *im)
{
    *im = m->words == 2 ? s->val[2 * p + 1] : 0;
    return m->words == 0 ? 1 : s->val[m->words * p];
}

/* mtx_header.c: reads the banner and the size line from the whole lines in
 * [begin, end), and counts lines in m->line.  *banner: whether the banner has
 * been read (false at the first call).  *ready: whether the size line has been
 * read as well, and then *next points to the text that follows; otherwise *next
 * is end, and the next call continues with the lines that follow. */
sps_status spsi_mtx_header_read(spsi_mtx *m, const char *begin,
                                const char *end, bool *banner,
                                const char **next, bool *ready);
const char *spsi_mtx_field_name(spsi_mtx_field field);
const char *spsi_mtx_symmetry_name(spsi_mtx_symmetry symmetry);

/* mtx_line.c: sets piece->lines; then parses the piece into its part of the
 * segment, up to the first error, which is stored in the piece. */
void spsi_mtx_count_lines(spsi_mtx_piece *piece);
void spsi_mtx_parse(const spsi_mtx *m, const spsi_mtx_segment *s,
                    spsi_mtx_piece *piece);
/* line[p] = line of entry p of the piece, from 0, for p = 0 .. count - 1. */
void spsi_mtx_find_lines(const spsi_mtx_piece *piece, int64_t count,
                         int32_t *line);
/* Returns the smallest number of bytes of a line with an entry. */
int64_t spsi_mtx_least(const spsi_mtx_header *h);
/* mtx_error.c: returns EPARSE with the text of the error in this line; `where`
 * is the position in the text of the word that it quotes. */
sps_status spsi_mtx_complain(const spsi_mtx *m, spsi_mtx_error error,
                             const char *where, int64_t line);

#ifdef __cplusplus
}
#endif
#endif
