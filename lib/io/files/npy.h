/* SPDX-License-Identifier: BSD-3-Clause */
/* npy.h - arrays of NumPy: a header that is a Python dictionary, and the
 * numbers without gaps ("NEP 1 - A Simple File Format for NumPy Arrays").
 *
 *   93 4e 55 4d 50 59   "\x93NUMPY"
 *   major minor         1, 2 or 3, and 0
 *   length              2 bytes, from version 2 on 4 bytes, little-endian
 *   {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), } blanks newline
 */
#ifndef SPS_NPY_H
#define SPS_NPY_H

#include "io/stream/bytes.h"

enum { SPSI_NPY_DIMENSIONS = 4 };

typedef struct spsi_npy {
    spsi_binary type;          /* kind may also be 'c': complex; 'S', 'U':
                                  text, and size is that of a letter */
    int letters;               /* letters of a text */
    bool fortran;              /* stored by columns */
    int dimensions;
    int64_t shape[SPSI_NPY_DIMENSIONS];
    int64_t count;             /* product of shape */
} spsi_npy;

/* Reads the header.  EPARSE if it is malformed, or for a type that is not
 * supported. */
sps_status spsi_npy_header(spsi_bytes *b, spsi_npy *a);
/* Returns EPARSE if the values are complex. */
sps_status spsi_npy_real(const spsi_bytes *b, const spsi_npy *a);

/* Prints the header of an array by rows, or by columns if `fortran`; `type` is
 * written as in Python.  It has 128 or 192 bytes.  columns = 0 is a 1-D array,
 * rows = -1 a single value. */
size_t spsi_npy_print(char *text, const char *type, bool fortran, int64_t rows,
                      int64_t columns);
#define SPSI_NPY_HEADER 192

#endif
