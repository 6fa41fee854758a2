/* SPDX-License-Identifier: BSD-3-Clause */
/* catalogue.c - the table that the library reads when it loads the module: its
 * operations and kernels.  It is the only exported symbol. */
#include "core/module.h"
#include "cuda/base/wire_device.h"
#include "cuda/spgemm/csr_far_test.h"
#include "plan/kernel.h"

#ifndef SPS_CUDA_ARCHITECTURES
#define SPS_CUDA_ARCHITECTURES "sm_90"
#endif
#define SPS_TEXT_(x) #x
#define SPS_TEXT(x) SPS_TEXT_(x)

/* The table of kernels, generated from cuda.am by build-aux/registry.sh. */
extern const sps_kernel *const spsi_cuda_kernels[];

SPS_DEFINE(sps_module, spsi_cuda_catalogue) = {
    .abi = SPS_MODULE_ABI,
    .version = SPS_TEXT(SPS_VERSION_MAJOR) "." SPS_TEXT(SPS_VERSION_MINOR)
               "." SPS_TEXT(SPS_VERSION_PATCH),
    .architectures = SPS_CUDA_ARCHITECTURES,
    .backend = &spsi_backend_cuda,
    .kernels = spsi_cuda_kernels,
    .wire = &spsi_wire_cuda,
    .multiply_far = spsi_cuda_csr_multiply_far_tested,
};
