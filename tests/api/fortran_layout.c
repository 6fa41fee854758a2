/* SPDX-License-Identifier: BSD-3-Clause */
/* fortran_layout.c - whether client.f90 has filled the members of structs with
 * the numbers 1, 2, 3 ..., and has the numbers of enumerations. */
#include <spsolve.h>

#include <stdint.h>
#include <stdio.h>
#include <string.h>

static int is(const char *name, double value, double wanted)
{
    if (value == wanted) return 0;
    fprintf(stderr, "%s is %g in C, %g in Fortran\n", name, value, wanted);
    return 1;
}

#define IS(member, number) is(#member, (double)(r->member), number)
#define AT(member, number) is(#member, (double)(uintptr_t)(r->member), number)

static int seconds(const sps_seconds *r, int first)
{
    return IS(setup, first) + IS(solve, first + 1) + IS(verify, first + 2) +
           IS(spmm, first + 3) + IS(precond, first + 4) + IS(gram, first + 5) +
           IS(small, first + 6);
}

static int linear(const sps_result *r)
{
    return IS(struct_size, sizeof *r) + IS(stop, 1) + IS(k, 2) +
           IS(iterations, 3) + IS(columns_converged, 4) + IS(restarts, 5) +
           IS(applies_A, 6) + IS(applies_M, 7) + IS(min_width, 8) +
           IS(worst_residual, 9) + IS(worst_backward, 10) + IS(norm_A, 11) +
           IS(removed, 12) + IS(nullspace, 13) + AT(residual, 14) +
           AT(backward, 15) + AT(column, 16) + AT(solver, 17) +
           AT(precond, 18) + AT(kernel, 19) + seconds(&r->seconds, 20) +
           IS(worst_in_range, 27) + IS(in_doubles, 1) + AT(normal, 28) +
           IS(worst_normal, 29);
}

static int eigen(const sps_eigen_result *r)
{
    return IS(struct_size, sizeof *r) + IS(stop, 1) + IS(count, 2) +
           IS(converged, 3) + IS(block, 4) + IS(iterations, 5) +
           IS(restarts, 6) + IS(applies_A, 7) + IS(applies_M, 8) +
           IS(applies_precond, 9) + IS(worst_residual, 10) +
           IS(worst_backward, 11) + IS(norm_A, 12) + IS(norm_M, 13) +
           IS(orthogonality, 14) + IS(nullspace, 15) + IS(missed, 16) +
           AT(lambda, 17) + AT(residual, 18) + AT(backward, 19) +
           AT(bound, 20) + AT(pair, 21) + AT(solver, 22) + AT(precond, 23) +
           AT(kernel, 24) + seconds(&r->seconds, 25);
}

int layout_of_results(const sps_result *r, const sps_eigen_result *e);
int layout_of_results(const sps_result *r, const sps_eigen_result *e)
{
    return linear(r) + eigen(e);
}

int same_numbers(const int *stops, const int *statuses, const int *places);
int same_numbers(const int *stops, const int *statuses, const int *places)
{
    int bad = 0;

#define SPS_X(name, number, text) bad += is(#name, number, *stops++);
    SPS_STOP_LIST(SPS_X)
#undef SPS_X
#define SPS_X(name, number, text) bad += is(#name, number, *statuses++);
    SPS_STATUS_LIST(SPS_X)
#undef SPS_X
    bad += is("SPS_AUTO", SPS_AUTO, places[0]);
    bad += is("SPS_HOST", SPS_HOST, places[1]);
    bad += is("SPS_CUDA", SPS_CUDA, places[2]);
    bad += is("SPS_SYMMETRIC", SPS_SYMMETRIC, places[3]);
    return bad + is("SPS_SPD", SPS_SPD, places[4]);
}
