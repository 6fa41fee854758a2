/* SPDX-License-Identifier: BSD-3-Clause */
/* file_seeds.h - one matrix of integers in files of every kind, byte by byte as
 * the definitions of the kinds have it,
 *
 *       1  0  2  0
 *       0 -3  0  0
 *       4  0  5  6
 */
#ifndef SPS_TEST_FILE_SEEDS_H
#define SPS_TEST_FILE_SEEDS_H

#include "tests/problems/archive.h"
#include "tests/problems/matlab.h"

#define SEED_ROWS 3
#define SEED_COLUMNS 4
static const double seed_dense[SEED_ROWS][SEED_COLUMNS] = {
    {1, 0, 2, 0}, {0, -3, 0, 0}, {4, 0, 5, 6}};

#define SEED_RUA                                                               \
    "a title                                                                 " \
    "key\n"                                                                    \
    "             3             1             1             1             0\n" \
    "RUA                        3             4             6             0\n" \
    "(5I3)           (6I2)           (6F5.1)             \n"                  \
    "  1  3  4  6  7\n"                                                        \
    " 1 3 2 1 3 3\n"                                                           \
    "  1.0  4.0 -3.0  2.0  5.0  6.0\n"

typedef struct seed {
    const char *name;
    archive file;
} seed;

enum { SEEDS_MOST = 24 };

static const double seed_csr_data[] = {1, 2, -3, 4, 5, 6};
static const int32_t seed_csr_indptr[] = {0, 2, 3, 6};
static const int32_t seed_csr_indices[] = {0, 2, 1, 0, 2, 3};
static const int64_t seed_shape[] = {3, 4};

#define SEED_BYTES(a) a, sizeof a

static inline void seed_format(archive *a, int how, const char *format)
{
    const uint32_t wide[3] = {(unsigned char)format[0],
                              (unsigned char)format[1],
                              (unsigned char)format[2]};

    if (format[1] == 's')            /* both ways that NumPy has */
        archive_array(a, "format.npy", how, "<U3", false, "()",
                      SEED_BYTES(wide));
    else
        archive_array(a, "format.npy", how, "|S3", false, "()", format, 3);
    archive_array(a, "shape.npy", how, "<i8", false, "(2,)",
                  SEED_BYTES(seed_shape));
}

static inline archive seed_csr(int how)
{
    archive a = {0};

    archive_array(&a, "indices.npy", how, "<i4", false, "(6,)",
                  SEED_BYTES(seed_csr_indices));
    archive_array(&a, "indptr.npy", how, "<i4", false, "(4,)",
                  SEED_BYTES(seed_csr_indptr));
    seed_format(&a, how, "csr");
    archive_array(&a, "data.npy", how, "<f8", false, "(6,)",
                  SEED_BYTES(seed_csr_data));
    archive_array(&a, "_is_array.npy", how, "|b1", false, "()", "\1", 1);
    archive_end(&a);
    return a;
}

static inline archive seed_csc(int how)
{
    static const float data[] = {1, 4, -3, 2, 5, 6};
    static const int64_t indptr[] = {0, 2, 3, 5, 6};
    static const int64_t indices[] = {0, 2, 1, 0, 2, 2};
    archive a = {0};

    archive_array(&a, "indices.npy", how, "<i8", false, "(6,)",
                  SEED_BYTES(indices));
    archive_array(&a, "indptr.npy", how, "<i8", false, "(5,)",
                  SEED_BYTES(indptr));
    seed_format(&a, how, "csc");
    archive_array(&a, "data.npy", how, "<f4", false, "(6,)", SEED_BYTES(data));
    archive_end(&a);
    return a;
}

static inline archive seed_coo(int how)
{
    static const int16_t data[] = {6, 1, 2, -3, 4, 5};
    static const uint8_t row[] = {2, 0, 0, 1, 2, 2};
    static const int32_t col[] = {3, 0, 2, 1, 0, 2};
    archive a = {0};

    seed_format(&a, how, "coo");
    archive_array(&a, "row.npy", how, "|u1", false, "(6,)", SEED_BYTES(row));
    archive_array(&a, "col.npy", how, "<i4", false, "(6,)", SEED_BYTES(col));
    archive_array(&a, "data.npy", how, "<i2", false, "(6,)", SEED_BYTES(data));
    archive_end(&a);
    return a;
}

static inline archive seed_bsr(int how)
{
    static const int64_t data[] = {1, 0, 2, 0, 0, -3, 4, 0, 5, 6};
    static const int32_t indptr[] = {0, 2, 3, 5}, indices[] = {0, 1, 0, 0, 1};
    archive a = {0};

    archive_array(&a, "indices.npy", how, "<i4", false, "(5,)",
                  SEED_BYTES(indices));
    archive_array(&a, "indptr.npy", how, "<i4", false, "(4,)",
                  SEED_BYTES(indptr));
    seed_format(&a, how, "bsr");
    archive_array(&a, "data.npy", how, "<i8", false, "(5, 1, 2)",
                  SEED_BYTES(data));
    archive_end(&a);
    return a;
}

/* The data by columns, as a transposed array is saved. */
static inline archive seed_dia(int how)
{
    static const double data[4][4] = {{4, 1, 0, 0}, {0, -3, 0, 0},
                                      {0, 5, 0, 2}, {0, 0, 6, 0}};
    static const int32_t offsets[] = {-2, 0, 1, 2};
    archive a = {0};

    archive_array(&a, "offsets.npy", how, "<i4", false, "(4,)",
                  SEED_BYTES(offsets));
    seed_format(&a, how, "dia");
    archive_array(&a, "data.npy", how, "<f8", true, "(4, 4)",
                  SEED_BYTES(data));
    archive_end(&a);
    return a;
}

static inline archive seed_npy(void)
{
    archive a = {0};

    archive_npy(&a, 1, "<f8", false, "(3, 4)", SEED_BYTES(seed_dense));
    return a;
}

/* Big-endian, by columns, version 2. */
static inline archive seed_npy_swapped(void)
{
    static const unsigned char data[] = {0, 1, 0, 0, 0, 4, 0, 0, 0xff, 0xfd,
                                         0, 0, 0, 2, 0, 0, 0, 5, 0, 0, 0, 0,
                                         0, 6};
    archive a = {0};

    archive_npy(&a, 2, ">i2", true, "(3, 4)", SEED_BYTES(data));
    return a;
}

static inline archive seed_bytes(const void *bytes, size_t size)
{
    archive a = {0};

    archive_add(&a, bytes, size);
    return a;
}

/* The contents of the sparse matrix in a MATLAB file; its values are bytes, as
 * MATLAB stores small integers, and there are more rows than entries. */
static inline archive seed_mat5_sparse(bool big, const char *name)
{
    static const int32_t ir[] = {0, 2, 1, 0, 2, 2, 99}, jc[] = {0, 2, 3, 5, 6};
    static const int8_t pr[] = {1, 4, -3, 2, 5, 6};
    archive m = {0};

    mat5_head(&m, big, MAT5_SPARSE, 3, 4, name);
    mat5_element(&m, big, MAT5_INT32, ir, 7, 4);
    mat5_element(&m, big, MAT5_INT32, jc, 5, 4);
    mat5_element(&m, big, MAT5_INT8, pr, 6, 1);
    return m;
}

static inline archive seed_mat5(bool big, bool packed)
{
    archive a = mat5_begin(big), m = seed_mat5_sparse(big, "A");

    mat5_matrix(&a, big, &m);
    if (packed) mat5_compress(&a, big);
    return a;
}

static inline archive seed_mat5_full(void)
{
    static const int16_t x[] = {1, 0, 4, 0, -3, 0, 2, 0, 5, 0, 0, 6};
    archive a = mat5_begin(true), m = {0};

    mat5_head(&m, true, MAT5_FULL_INT16, 3, 4, "dense");
    mat5_element(&m, true, MAT5_INT16, x, 12, 2);
    mat5_matrix(&a, true, &m);
    return a;
}

/* A struct, as the SuiteSparse collection has it: a title, a number, A. */
static inline archive seed_mat5_struct(void)
{
    static const char fields[3][8] = {"title", "id", "A"};
    static const int32_t length = 8;
    static const double id = 7;
    archive a = mat5_begin(false), s = {0}, m = {0};

    mat5_head(&s, false, MAT5_STRUCT, 1, 1, "Problem");
    mat5_element(&s, false, MAT5_INT32, &length, 1, 4);
    mat5_element(&s, false, MAT5_INT8, fields, 24, 1);
    mat5_head(&m, false, MAT5_CHAR, 1, 3, "");
    mat5_element(&m, false, MAT5_UINT8, "abc", 3, 1);
    mat5_matrix(&s, false, &m);
    mat5_full(&s, false, "", 1, 1, &id);
    m = seed_mat5_sparse(false, "");
    mat5_matrix(&s, false, &m);
    mat5_matrix(&a, false, &s);
    mat5_compress(&a, false);
    return a;
}

#define SEED_PETSC                                                             \
    "\0\x12\x7b\x50\0\0\0\3\0\0\0\4\0\0\0\6"                                   \
    "\0\0\0\2\0\0\0\1\0\0\0\3"                                                 \
    "\0\0\0\0\0\0\0\2\0\0\0\1\0\0\0\0\0\0\0\2\0\0\0\3"                         \
    "\x3f\xf0\0\0\0\0\0\0\x40\0\0\0\0\0\0\0\xc0\x08\0\0\0\0\0\0"               \
    "\x40\x10\0\0\0\0\0\0\x40\x14\0\0\0\0\0\0\x40\x18\0\0\0\0\0\0"
#define SEED_PETSC_64                                                          \
    "\0\0\0\0\0\x12\x7b\x50\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0\1"   \
    "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\0"                         \
    "\0\0\0\0\0\0\0\1\xc0\x08\0\0\0\0\0\0"
/* Vec of 2, Vec of 2: (1, 2), (3, 4). */
#define SEED_PETSC_VECTORS                                                     \
    "\0\x12\x7b\x4e\0\0\0\2\x3f\xf0\0\0\0\0\0\0\x40\0\0\0\0\0\0\0"             \
    "\0\x12\x7b\x4e\0\0\0\2\x40\x08\0\0\0\0\0\0\x40\x10\0\0\0\0\0\0"
#define SEED_LITERAL(text) seed_bytes(text, sizeof text - 1)

/* Matrix Market, which all others are compared with. */
#define SEED_MTX                                                               \
    "%%MatrixMarket matrix coordinate real general\n3 4 6\n1 1 1\n1 3 2\n"     \
    "2 2 -3\n3 1 4\n3 3 5\n3 4 6\n"

/* Files of the matrix; returns how many.  Free each with archive_free. */
static inline int seeds_make(seed s[SEEDS_MOST])
{
    const seed all[] = {
        {"csr.npz", seed_csr(ARCHIVE_STORED)},
        {"csr-deflated.npz", seed_csr(ARCHIVE_DEFLATED)},
        {"csr-wide.npz", seed_csr(ARCHIVE_WIDE)},
        {"csr-pipe.npz", seed_csr(ARCHIVE_DEFLATED | ARCHIVE_BEHIND)},
        {"csr-pipe-wide.npz",
         seed_csr(ARCHIVE_DEFLATED | ARCHIVE_BEHIND | ARCHIVE_WIDE)},
        {"csc.npz", seed_csc(ARCHIVE_DEFLATED)},
        {"coo.npz", seed_coo(ARCHIVE_STORED)},
        {"bsr.npz", seed_bsr(ARCHIVE_STORED)},
        {"dia.npz", seed_dia(ARCHIVE_DEFLATED)},
        {"dense.npy", seed_npy()},
        {"swapped.npy", seed_npy_swapped()},
        {"sparse.mat", seed_mat5(false, false)},
        {"sparse-swapped-packed.mat", seed_mat5(true, true)},
        {"dense.mat", seed_mat5_full()},
        {"struct.mat", seed_mat5_struct()},
        {"mat.petsc", SEED_LITERAL(SEED_PETSC)},
        {"matrix.rua", SEED_LITERAL(SEED_RUA)},
        {"matrix.mtx", SEED_LITERAL(SEED_MTX)},
    };
    const int count = sizeof all / sizeof *all;

    memcpy(s, all, sizeof all);
    return count;
}

#endif
