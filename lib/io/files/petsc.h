/* SPDX-License-Identifier: BSD-3-Clause */
/* petsc.h - binary files of PETSc: objects one after the other, all numbers
 * big-endian, integers of 32 or, in another build of PETSc, 64 bits.
 *
 *   Mat  1211216, rows, columns, entries; entries of each row; columns; values
 *        entries = -1: dense, the values row by row
 *   Vec  1211214, length; values
 */
#ifndef SPS_PETSC_H
#define SPS_PETSC_H

enum { SPSI_PETSC_MAT = 1211216, SPSI_PETSC_VEC = 1211214,
       SPSI_PETSC_DENSE = -1 };

#endif
