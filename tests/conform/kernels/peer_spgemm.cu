/* SPDX-License-Identifier: BSD-3-Clause */
/* peer_spgemm.cu - products of sparse matrices on the GPU beside cuSPARSE's
 * SpGEMM, in doubles: compared entry by entry, and timed.  Run by name
 * (run-gpu-tests peer_spgemm).
 *
 *   peer_spgemm [SCALE [FILE]]
 *
 * Matrices, made on the host: 7 points on 160^3, 27 points on 100^3, the
 * pattern of elasticity on 40^3 (27 nodes of 3 x 3), all times SCALE (default
 * 1) in each direction, and FILE, a Matrix Market file.  P is A T, T the boxes
 * of 3^3 points.  Products: A A, A P and P' (A P).
 *
 * A time is the least of five calls with all they allocate; it ends with the
 * result in memory of its own.  The floor is A and B read and C written once at
 * the bandwidth of a copy measured here.  Of cuSPARSE's algorithms the fastest
 * counts.  Entries agree if they differ by 1e-12 of the largest; the last line
 * has Check's format, for the test runner. */
#include <chrono>
#include <cuda_runtime.h>
#include <cusparse.h>
#include <spsolve.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vector>

namespace {

constexpr int threads = 256, repeats = 5;
constexpr double refused = 1e9;   /* seconds */
int checks, failures;
sps_context *ctx;
cusparseHandle_t sparse;
double bandwidth;

void need(sps_status st)
{
    if (st == SPS_OK) return;
    printf("%s: %s\n", sps_status_string(st), sps_context_error(ctx));
    exit(1);
}

void need(cudaError_t e)
{
    if (e == cudaSuccess) return;
    printf("%s\n", cudaGetErrorString(e));
    exit(1);
}

double now(void)
{
    need(cudaDeviceSynchronize());
    return std::chrono::duration<double>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

template <class X> X *device(int64_t n)
{
    void *p = NULL;

    need(cudaMalloc(&p, (size_t)(n > 0 ? n : 1) * sizeof(X)));
    return (X *)p;
}

double measure_copy(void)
{
    const size_t bytes = (size_t)1 << 29;
    char *from = device<char>((int64_t)bytes);
    char *to = device<char>((int64_t)bytes);
    double best = 1e9;

    for (int t = 0; t < repeats; t++) {
        const double start = now();

        for (int r = 0; r < 4; r++)
            need(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice));
        best = std::min(best, (now() - start) / 4);
    }
    cudaFree(from);
    cudaFree(to);
    return 2 * (double)bytes / best;
}

/* ---------------------------------------------------------------- matrices */

sps_csr *send(const sps_csr *A)
{
    int64_t *rowptr = device<int64_t>(A->nrow + 1);
    int32_t *col = device<int32_t>(A->nnz);
    double *val = device<double>(A->nnz);
    sps_csr *B = NULL;

    need(cudaMemcpy(rowptr, A->rowptr, (size_t)(A->nrow + 1) * sizeof *rowptr,
                    cudaMemcpyHostToDevice));
    need(cudaMemcpy(col, A->col, (size_t)A->nnz * sizeof *col,
                    cudaMemcpyHostToDevice));
    need(cudaMemcpy(val, A->val, (size_t)A->nnz * sizeof *val,
                    cudaMemcpyHostToDevice));
    need(sps_csr_wrap(ctx, A->nrow, A->ncol, A->nnz, rowptr, col, val, SPS_F64,
                      SPS_CUDA, SPS_COPY, &B));
    cudaFree(rowptr);
    cudaFree(col);
    cudaFree(val);
    return B;
}

/* Neighbours of the points of an N^3 grid up to `reach` steps in all (1: 7
 * points) or, with 3, all 27; each point has `dof` unknowns. */
sps_csr *stencil(int N, int reach, int dof)
{
    const int64_t n = (int64_t)N * N * N * dof;
    sps_csr *A = NULL, *B;
    int64_t at = 0;

    need(sps_csr_create(ctx, n, n, n * (reach == 1 ? 7 : 27) * dof, SPS_F64,
                        &A));
    for (int64_t i = 0; i < n; i++) {
        const int x = (int)(i / dof % N), y = (int)(i / dof / N % N);
        const int z = (int)(i / dof / N / N);

        for (int dz = -1; dz <= 1; dz++)
            for (int dy = -1; dy <= 1; dy++)
                for (int dx = -1; dx <= 1; dx++) {
                    const int X = x + dx, Y = y + dy, Z = z + dz;

                    if (abs(dx) + abs(dy) + abs(dz) > reach || X < 0 || Y < 0 ||
                        Z < 0 || X >= N || Y >= N || Z >= N)
                        continue;
                    for (int d = 0; d < dof; d++) {
                        A->col[at] = (int32_t)((((int64_t)Z * N + Y) * N + X) *
                                               dof + d);
                        ((double *)A->val)[at] =
                            1 + (double)((i * 31 + A->col[at] * 17) % 101) / 64;
                        at++;
                    }
                }
        A->rowptr[i + 1] = at;
    }
    A->nnz = at;
    B = send(A);
    sps_csr_destroy(ctx, &A);
    return B;
}

/* T: each unknown in the box of 3^3 points around it. */
sps_csr *boxes(int N, int dof)
{
    const int64_t n = (int64_t)N * N * N * dof, M = (N + 2) / 3;
    sps_csr *T = NULL, *B;

    need(sps_csr_create(ctx, n, M * M * M * dof, n, SPS_F64, &T));
    for (int64_t i = 0; i < n; i++) {
        const int64_t x = i / dof % N, y = i / dof / N % N, z = i / dof / N / N;

        T->rowptr[i + 1] = i + 1;
        T->col[i] = (int32_t)(((z / 3 * M + y / 3) * M + x / 3) * dof +
                              i % dof);
        ((double *)T->val)[i] = 1;
    }
    B = send(T);
    sps_csr_destroy(ctx, &T);
    return B;
}

/* ---------------------------------------------------------------- cuSPARSE */

struct peer {
    int32_t *rowptr, *col;
    double *val;
    int64_t nnz;
};

__global__ void narrow(const int64_t *from, int64_t n, int32_t *to)
{
    const int64_t i = (int64_t)blockIdx.x * threads + threadIdx.x;

    if (i < n) to[i] = (int32_t)from[i];
}

int32_t *narrowed(const sps_csr *A)
{
    int32_t *to = device<int32_t>(A->nrow + 1);

    narrow<<<(unsigned)(A->nrow / threads + 1), threads>>>(A->rowptr,
                                                           A->nrow + 1, to);
    need(cudaGetLastError());
    return to;
}

cusparseSpMatDescr_t describe(const sps_csr *A, int32_t *rowptr)
{
    cusparseSpMatDescr_t d;

    cusparseCreateCsr(&d, A->nrow, A->ncol, A->nnz, rowptr, A->col, A->val,
                      CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                      CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F);
    return d;
}

/* One product; false if cuSPARSE refuses. */
bool multiply_peer(cusparseSpMatDescr_t A, cusparseSpMatDescr_t B, int64_t nrow,
                   int64_t ncol, cusparseSpGEMMAlg_t alg, peer *C)
{
    const cusparseOperation_t plain = CUSPARSE_OPERATION_NON_TRANSPOSE;
    const double one = 1, zero = 0;
    cusparseSpGEMMDescr_t work;
    cusparseSpMatDescr_t c;
    size_t size[3] = {0, 0, 0};
    void *buffer[3] = {NULL, NULL, NULL};
    int64_t rows, cols;
    bool good;

    C->rowptr = device<int32_t>(nrow + 1);
    C->col = NULL;
    C->val = NULL;
    cusparseCreateCsr(&c, nrow, ncol, 0, C->rowptr, NULL, NULL,
                      CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                      CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F);
    cusparseSpGEMM_createDescr(&work);
    good = !cusparseSpGEMM_workEstimation(sparse, plain, plain, &one, A, B,
                                          &zero, c, CUDA_R_64F, alg, work,
                                          &size[0], NULL) &&
           cudaMalloc(&buffer[0], size[0] + 512) == cudaSuccess &&
           !cusparseSpGEMM_workEstimation(sparse, plain, plain, &one, A, B,
                                          &zero, c, CUDA_R_64F, alg, work,
                                          &size[0], buffer[0]);
    if (good && alg == CUSPARSE_SPGEMM_ALG2) {
        good = !cusparseSpGEMM_estimateMemory(sparse, plain, plain, &one, A, B,
                                              &zero, c, CUDA_R_64F, alg, work,
                                              0.2f, &size[2], NULL, NULL) &&
               cudaMalloc(&buffer[2], size[2] + 512) == cudaSuccess &&
               !cusparseSpGEMM_estimateMemory(sparse, plain, plain, &one, A, B,
                                              &zero, c, CUDA_R_64F, alg, work,
                                              0.2f, &size[2], buffer[2],
                                              &size[1]);
    } else if (good) {
        good = !cusparseSpGEMM_compute(sparse, plain, plain, &one, A, B, &zero,
                                       c, CUDA_R_64F, alg, work, &size[1],
                                       NULL);
    }
    good = good && cudaMalloc(&buffer[1], size[1] + 512) == cudaSuccess &&
           !cusparseSpGEMM_compute(sparse, plain, plain, &one, A, B, &zero, c,
                                   CUDA_R_64F, alg, work, &size[1], buffer[1]);
    if (good) {
        cusparseSpMatGetSize(c, &rows, &cols, &C->nnz);
        C->col = device<int32_t>(C->nnz);
        C->val = device<double>(C->nnz);
        cusparseCsrSetPointers(c, C->rowptr, C->col, C->val);
        good = !cusparseSpGEMM_copy(sparse, plain, plain, &one, A, B, &zero, c,
                                    CUDA_R_64F, alg, work);
    }
    cudaGetLastError();
    for (int i = 0; i < 3; i++) cudaFree(buffer[i]);
    cusparseSpGEMM_destroyDescr(work);
    cusparseDestroySpMat(c);
    return good;
}

void drop(peer *C)
{
    cudaFree(C->rowptr);
    cudaFree(C->col);
    cudaFree(C->val);
}

/* ------------------------------------------------------------- comparison */

struct verdict {
    unsigned long long offsets, columns, values;
};

/* Offsets, columns and values that differ; a warp a row, whose columns in
 * cuSPARSE's result may be in any order. */
__global__ void compare(int64_t n, const int64_t *rowptr, const int32_t *col,
                        const double *val, peer P, double scale, verdict *v)
{
    const int64_t i = ((int64_t)blockIdx.x * threads + threadIdx.x) / 32;

    if (i >= n) return;
    if (rowptr[i + 1] != P.rowptr[i + 1]) {
        atomicAdd(&v->offsets, 1ull);
        return;
    }
    for (int64_t p = rowptr[i] + threadIdx.x % 32; p < rowptr[i + 1]; p += 32) {
        int64_t q = rowptr[i], end = rowptr[i + 1];

        while (q + 1 < end) {
            const int64_t mid = q + (end - q) / 2;

            if (col[mid] <= P.col[p]) q = mid;
            else end = mid;
        }
        if (col[q] != P.col[p]) atomicAdd(&v->columns, 1ull);
        else if (!(fabs(val[q] - P.val[p]) <= 1e-12 * scale))
            atomicAdd(&v->values, 1ull);
    }
}

void judge(const sps_csr *C, const peer &P, const char *what)
{
    verdict v, *d = device<verdict>(1);

    need(cudaMemset(d, 0, sizeof v));
    compare<<<(unsigned)(C->nrow / (threads / 32) + 1), threads>>>(
        C->nrow, C->rowptr, C->col, (const double *)C->val, P, 1e4, d);
    need(cudaGetLastError());
    need(cudaMemcpy(&v, d, sizeof v, cudaMemcpyDeviceToHost));
    cudaFree(d);
    checks++;
    if (C->nnz == P.nnz && v.offsets + v.columns + v.values == 0) return;
    failures++;
    printf("FAILED %s: %lld entries, cuSPARSE has %lld; %llu offsets, %llu "
           "columns, %llu values differ\n", what, (long long)C->nnz,
           (long long)P.nnz, v.offsets, v.columns, v.values);
}

/* ------------------------------------------------------------------ timing */

/* Seconds of the fastest algorithm; `refused` if none makes the product. */
double time_peer(const sps_csr *A, const sps_csr *B, const sps_csr *C,
                 const char *what)
{
    static const cusparseSpGEMMAlg_t alg[] = {CUSPARSE_SPGEMM_ALG1,
                                              CUSPARSE_SPGEMM_ALG2};
    int32_t *a = narrowed(A), *b = narrowed(B);
    const cusparseSpMatDescr_t dA = describe(A, a), dB = describe(B, b);
    double best = refused;

    for (int g = 0; g < 2; g++)
        for (int t = 0; t < repeats; t++) {
            const double start = now();
            peer P = {};
            const bool good = multiply_peer(dA, dB, A->nrow, B->ncol, alg[g],
                                            &P);
            const double time = now() - start;

            if (good && time < best) best = time;
            if (good && t == 0) judge(C, P, what);
            drop(&P);
            if (!good) break;
        }
    cusparseDestroySpMat(dA);
    cusparseDestroySpMat(dB);
    cudaFree(a);
    cudaFree(b);
    return best;
}

/* A B by the library and by cuSPARSE; returns the product. */
sps_csr *race(const sps_csr *A, const sps_csr *B, const char *matrix,
              const char *op)
{
    sps_csr *C = NULL;
    double best = 1e9, peer, floor;
    char what[128];

    snprintf(what, sizeof what, "%s %s", matrix, op);
    for (int t = 0; t < repeats; t++) {
        sps_csr_destroy(ctx, &C);
        const double start = now();

        need(sps_csr_multiply(ctx, A, B, &C));
        best = std::min(best, now() - start);
    }
    peer = time_peer(A, B, C, what);
    floor = (12.0 * (double)(A->nnz + (A == B ? 0 : B->nnz) + C->nnz) +
             8.0 * (double)(A->nrow + B->nrow + C->nrow)) / bandwidth;
    printf("%-24s nnz(C) %10lld  %8.3f ms  floor %6.3f ms, %4.1f %%  ", what,
           (long long)C->nnz, 1e3 * best, 1e3 * floor, 100 * floor / best);
    if (peer < refused)
        printf("cuSPARSE %8.3f ms, x %5.2f\n", 1e3 * peer, peer / best);
    else
        printf("cuSPARSE refuses\n");
    fflush(stdout);
    return C;
}

void race_grid(int N, int reach, int dof, const char *name)
{
    sps_csr *A = stencil(N, reach, dof), *T = boxes(N, dof);
    sps_csr *P = NULL, *R = NULL, *C, *AP;

    need(sps_csr_multiply(ctx, A, T, &P));
    need(sps_csr_transpose(ctx, P, &R));
    C = race(A, A, name, "A A");
    sps_csr_destroy(ctx, &C);
    AP = race(A, P, name, "A P");
    C = race(R, AP, name, "P' (A P)");
    sps_csr_destroy(ctx, &C);
    sps_csr_destroy(ctx, &AP);
    sps_csr_destroy(ctx, &R);
    sps_csr_destroy(ctx, &P);
    sps_csr_destroy(ctx, &T);
    sps_csr_destroy(ctx, &A);
}

void race_file(const char *path)
{
    sps_csr *H = NULL, *A, *C;

    need(sps_csr_read(ctx, path, NULL, NULL, &H));
    A = send(H);
    sps_csr_destroy(ctx, &H);
    C = race(A, A, path, "A A");
    sps_csr_destroy(ctx, &C);
    sps_csr_destroy(ctx, &A);
}

} // namespace

int main(int argc, char **argv)
{
    const double scale = argc > 1 ? atof(argv[1]) : 1;
    sps_context_options o;
    const char *why = "";

    sps_context_options_default(&o);
    o.place = SPS_CUDA;
    if (sps_context_create(&o, &ctx, &why) != SPS_OK) {
        printf("%s\n", why);
        return 77;
    }
    cusparseCreate(&sparse);
    bandwidth = measure_copy();
    printf("copy: %.2f TB/s\n", 1e-12 * bandwidth);
    race_grid((int)(160 * scale), 1, 1, "7 points");
    race_grid((int)(100 * scale), 3, 1, "27 points");
    race_grid((int)(40 * scale), 3, 3, "elasticity");
    if (argc > 2) race_file(argv[2]);
    cusparseDestroy(sparse);
    sps_context_destroy(&ctx);
    printf("%d%%: Checks: %d, Failures: %d, Errors: 0\n",
           100 * (checks - failures) / checks, checks, failures);
    return failures > 0;
}
