/* SPDX-License-Identifier: BSD-3-Clause */
/* mtx.h - Matrix Market files inside the library.
 *
 *   mtx_read.c    text, batch by batch, to entries in the order of the file
 *   mtx_header.c  banner and size line
 *   mtx_line.c    lines to entries, many pieces of a batch at once
 *   mtx_error.c   what messages say
 *   mtx_store.c   the entries between file and result
 *   mtx_csr.c     entries to a csr
 *   mtx_block.c   entries to a block
 *   mtx_write.c   csr and block to text
 *
 * Entries stay as the file has them (0-based) in segments, one for a batch;
 * a segment is made of pieces, the runs of lines that were parsed at once:
 *
 *   segment  row [ piece 0 | piece 1 .. | piece 2 ... ]     int32
 *            col [                                    ]     int32
 *            val [ 1 or 2 doubles an entry, none for pattern ]
 */
#ifndef SPS_MTX_H
#define SPS_MTX_H

#include "text.h"

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

/* What is wrong with a line; texts in mtx_error.c. */
typedef enum spsi_mtx_error {
    SPSI_MTX_FINE,
    SPSI_MTX_ROW, SPSI_MTX_COLUMN,               /* no index */
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
    const char *begin, *end;   /* whole lines; valid while the batch is */
    int64_t first_line;        /* number of the first, from 1 */
    int64_t lines;
    int64_t at, count;         /* entries in the segment */
    int32_t row_low, row_high, col_low, col_high;  /* of the entries */
    int64_t diagonal;          /* entries on the diagonal */
    int64_t lower, upper;      /* line of the first one there, 0: none */
    int64_t rounded, tiny;
    spsi_mtx_error error;
    const char *where;         /* of the error, in the text */
    int64_t error_line;
    int32_t *line;             /* of each entry - first_line, or NULL: every
                                  line is an entry, or nobody will ask */
} spsi_mtx_piece;

typedef struct spsi_mtx_segment {
    int64_t capacity, pieces;
    spsi_mtx_piece *piece;
    int32_t *row, *col;        /* NULL in array files */
    double *val;               /* NULL: pattern */
} spsi_mtx_segment;

typedef struct spsi_mtx {
    sps_context *ctx;
    spsi_text *text;
    sps_read_options options;
    const char *name;
    spsi_mtx_header header;
    int words;                 /* doubles an entry: 0, 1, 2 */
    int64_t line;              /* lines read; of the header: being read */
    int64_t stored;            /* entries read */
    int64_t diagonal, rounded, tiny;
    int64_t lower, upper;      /* first line below and above the diagonal */
    int64_t segments, room;
    spsi_mtx_segment *segment;
} spsi_mtx;

/* Reads the whole file.  block: what the size of the result depends on. */
sps_status spsi_mtx_load(sps_context *ctx, const char *path,
                         const sps_read_options *ro, bool block,
                         spsi_mtx **m_p);
void spsi_mtx_free(spsi_mtx **m_p);
/* Frees the entries, keeps header and counts. */
void spsi_mtx_drop(spsi_mtx *m);
/* Line of the entry with this number, counted from 0 in the file's order. */
int64_t spsi_mtx_line(const spsi_mtx *m, int64_t entry);
/* Fills what the reader knows; duplicates is for the caller. */
void spsi_mtx_info(const spsi_mtx *m, sps_read_info *info);
/* Notes about what was changed on the way in. */
void spsi_mtx_notes(const spsi_mtx *m);
/* Turns an array file into entries with row and column, zeros left out. */
sps_status spsi_mtx_expand(spsi_mtx *m);
/* A new last segment for that many entries in pieces pieces. */
sps_status spsi_mtx_add_segment(spsi_mtx *m, int64_t pieces,
                                spsi_mtx_segment **s_p);
sps_status spsi_mtx_give_room(spsi_mtx *m, spsi_mtx_segment *s,
                              int64_t capacity, bool indices);
/* One mirrored half is to be added. */
static inline bool spsi_mtx_mirrors(const spsi_mtx *m)
{
    return m->header.symmetry != SPSI_MTX_GENERAL;
}
/* Value of entry p of s: *im is 0 unless complex. */
static inline double spsi_mtx_value(const spsi_mtx *m,
                                    const spsi_mtx_segment *s, int64_t p,
                                    double *im)
{
    *im = m->words == 2 ? s->val[2 * p + 1] : 0;
    return m->words == 0 ? 1 : s->val[m->words * p];
}

/* mtx_header.c: looks at the lines in [begin, end), whole ones, counted in
 * m->line; *next is behind the size line when *ready. */
sps_status spsi_mtx_header_read(spsi_mtx *m, const char *begin,
                                const char *end, bool *banner,
                                const char **next, bool *ready);
const char *spsi_mtx_field_name(spsi_mtx_field field);
const char *spsi_mtx_symmetry_name(spsi_mtx_symmetry symmetry);

/* mtx_line.c: counts the lines of a piece; parses it into the segment. */
void spsi_mtx_count_lines(spsi_mtx_piece *piece);
void spsi_mtx_parse(const spsi_mtx *m, const spsi_mtx_segment *s,
                    spsi_mtx_piece *piece);
/* Line (from 0) of the entries 0 .. count - 1 of the piece into line[]. */
void spsi_mtx_find_lines(const spsi_mtx_piece *piece, int64_t count,
                         int32_t *line);
/* Smallest number of bytes of a line with an entry. */
int64_t spsi_mtx_least(const spsi_mtx_header *h);
/* mtx_error.c: writes the text of an error. */
sps_status spsi_mtx_complain(const spsi_mtx *m, spsi_mtx_error error,
                             const char *where, int64_t line);

#ifdef __cplusplus
}
#endif
#endif
