/* SPDX-License-Identifier: BSD-3-Clause */
/* job_eigen.c - the steps of job.c for `spsolve -eigs K`: eigenpairs of A x =
 * lambda M x.  The members that sps_result and sps_eigen_result have in common
 * are also copied to job.result, where reports read them. */
#include "tools/command/job.h"

#include <math.h>
#include <string.h>

/* Reads M, which must have the shape of A, the constraints, and the guess,
 * which is zero if no file is given. */
int eigen_read(job *j)
{
    const cli_values *v = &j->opt;
    sps_read_info info = { .struct_size = sizeof info };
    int code, k;

    j->k = v->eigs;
    if (j->system.complex)
        return job_fail(j, EXIT_USAGE, "unfit", "%s is complex; eigenvalues "
                        "are computed of real symmetric matrices only. A "
                        "Hermitian matrix has the real form [Re -Im; Im Re], "
                        "which has each eigenvalue twice; a complex symmetric "
                        "one has no symmetric real form", v->file.A);
    if (v->file.mass) {
        code = job_read_mass(j, v->file.mass, &info);
        if (code) return code;
    }
    if (v->file.constraints) {
        code = job_read_block(j, v->file.constraints, &j->Y);
        if (code) return code;
    }
    if (!v->file.x0) return job_zeros(j, &j->X);
    code = job_read_block(j, v->file.x0, &j->X);
    if (code) return code;
    sps_block_shape(j->X, NULL, &k);
    if (k == j->k) return 0;
    return job_fail(j, EXIT_INPUT, "bad_input",
                    "%s: %d columns, but %d pairs are requested (-eigs)",
                    v->file.x0, k, j->k);
}

sps_status eigen_set_up(job *j, sps_options *o)
{
    const cli_values *v = &j->opt;
    int width = v->eigs < 40 ? v->eigs + 4 : 40;
    sps_status st;

    if (cli_given(v, "sigma")) o->which = "nearest";
    o->constraints = j->Y;
    o->reorder = "none";
    st = sps_operator_csr(j->ctx, j->A, width, o, &j->op);
    if (st == SPS_OK && j->M)
        st = sps_operator_csr(j->ctx, j->M, width, o, &j->mass_op);
    if (st == SPS_OK)
        st = sps_solver_create_eigen(j->op, j->mass_op, NULL, v->eigs, o,
                                     &j->solver);
    return st;
}

sps_status eigen_solve(job *j)
{
    sps_eigen_result *e = &j->eigen;
    sps_status st;

    e->struct_size = sizeof *e;
    st = sps_solver_eigen(j->solver, j->X, NULL, e);
    if (st != SPS_OK) return st;
    j->result = (sps_result){
        .struct_size = sizeof j->result, .stop = e->stop, .k = e->count,
        .iterations = e->iterations, .columns_converged = e->converged,
        .restarts = e->restarts, .applies_A = e->applies_A,
        .applies_M = e->applies_precond, .min_width = e->block,
        .worst_residual = e->worst_residual,
        .worst_backward = e->worst_backward, .norm_A = e->norm_A,
        .nullspace = e->nullspace, .residual = e->residual,
        .backward = e->backward, .column = e->pair, .solver = e->solver,
        .precond = e->precond, .kernel = e->kernel, .seconds = e->seconds,
    };
    return SPS_OK;
}

/* Prints the part of the report about eigenpairs. */
void eigen_report(const job *j, FILE *f)
{
    const sps_eigen_result *e = &j->eigen;

    fprintf(f, "  residual    worst %.2e of |lambda| ||M x||, backward error "
               "worst %.2e\n", e->worst_residual, e->worst_backward);
    fprintf(f, "              of (||A|| + |lambda| ||M||) ||x||, with ||A|| "
               "at least %.4g", e->norm_A);
    if (j->M) fprintf(f, ",\n              ||M|| %.4g", e->norm_M);
    fprintf(f, "\n  X'MX        is I up to %.1e\n", e->orthogonality);
    if (e->nullspace > 0)
        fprintf(f, "  null space  dimension %d; its eigenvalues 0 are not "
                   "listed\n", e->nullspace);
    if (e->missed >= 0)
        fprintf(f, "  count       %s\n", e->missed ? "eigenvalues were missed"
                : "no missed eigenvalue was found");
    fprintf(f, "\n  %6s %24s %10s %10s %10s  %s\n", "pair", "eigenvalue", "+-",
            "residual", "backward", "status");
    for (int i = 0; i < e->count; i++)
        fprintf(f, "  %6d %24.16e %10.2e %10.2e %10.2e  %s\n", i + 1,
                e->lambda[i], e->bound[i], e->residual[i], e->backward[i],
                sps_stop_string(e->pair[i]));
    fprintf(f, "\n");
}

const char *eigen_suggestion(const job *j)
{
    if (!strcmp(j->eigen.solver, "lapack"))
        return "-solver lobpcg: LAPACK's errors are those of the largest "
               "entries; or a larger -rtol";
    if (cli_given(&j->opt, "sigma") ||
        !strcmp(j->opt.settings.which, "nearest"))
        return "a -sigma nearer to the pairs wanted, a larger -block or -rtol";
    return "-sigma near the pairs wanted, another -precond, a larger -block "
           "or -rtol";
}

const char *eigen_rounding(const job *j)
{
    const sps_eigen_result *e = &j->eigen;

    for (int i = 0; i < e->count; i++)
        if (e->pair[i] == SPS_STOP_ROUNDING && isfinite(e->bound[i]) &&
            fabs(e->lambda[i]) <= e->bound[i])
            return "-rigid-body COORDS for a structure, -nullspace components "
                   "for a Laplacian, or an -atol: eigenvalues 0";
    return "a larger -rtol, or -atol: rounding is above the tolerance; -norm "
           "backward if that is enough";
}
