/* SPDX-License-Identifier: BSD-3-Clause */
/* cluster.cuh - thread block clusters (blocks that synchronise within a kernel)
 * and programmatic dependent launch (a kernel that starts before the preceding
 * one has finished); both from sm_90 on. */
#ifndef SPS_CUDA_CLUSTER_CUH
#define SPS_CUDA_CLUSTER_CUH

#include "cuda/base/device.cuh"

namespace {

constexpr int cluster_blocks = 8;

/* Waits until the preceding kernel is complete and its writes are visible.
 * Before this call a kernel must not read what the preceding one writes, nor
 * write what it reads.  Afterwards the next kernel is allowed to start in the
 * same manner. */
__device__ __forceinline__ void begin_after()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

__device__ __forceinline__ void cluster_meet()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.release.aligned;\n\t"
                 "barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}

/* Returns the double at address p in the shared memory of block `rank` of the
 * cluster. */
__device__ __forceinline__ double cluster_load(const double *p, int rank)
{
    double v = 0;
#if __CUDA_ARCH__ >= 900
    unsigned at = (unsigned)__cvta_generic_to_shared(p);

    asm volatile("mapa.shared::cluster.u32 %0, %0, %1;" : "+r"(at) : "r"(rank));
    asm volatile("ld.shared::cluster.f64 %0, [%1];" : "=d"(v) : "r"(at));
#else
    (void)p;
    (void)rank;
#endif
    return v;
}

/* Computes out[e], e < count, as the sum over the blocks of the cluster, in the
 * order of their ranks, of mine[e] in their shared memory; each block writes a
 * part of out.  Called by all threads, after they have written `mine`. */
__device__ __forceinline__ void join_cluster(const double *mine, int count,
                                             double *out)
{
    const int each = (count + cluster_blocks - 1) / cluster_blocks;
    const int first = (int)(blockIdx.x % cluster_blocks) * each;

    cluster_meet();
    for (int e = first + (int)threadIdx.x; e < first + each && e < count;
         e += (int)blockDim.x) {
        double v[cluster_blocks], sum = 0;

#pragma unroll
        for (int b = 0; b < cluster_blocks; b++)
            v[b] = cluster_load(mine + e, b);
#pragma unroll
        for (int b = 0; b < cluster_blocks; b++) sum += v[b];
        out[e] = sum;
    }
    cluster_meet();    /* no block exits while others read its shared memory */
}

/* Returns whether the device has clusters and programmatic dependent launch. */
inline bool has_clusters(const sps_context *ctx)
{
    int major = 0;

    if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor,
                               spsi_cuda_state(ctx)->device) != cudaSuccess)
        cudaGetLastError();
    return major >= 9;
}

/* Returns how many clusters of the kernel are resident on the device at
 * once. */
template <class KERNEL>
int clusters_at_once(KERNEL kernel, int threads)
{
    cudaLaunchAttribute size;
    cudaLaunchConfig_t c = {};
    int count = 0;

    size.id = cudaLaunchAttributeClusterDimension;
    size.val.clusterDim.x = cluster_blocks;
    size.val.clusterDim.y = size.val.clusterDim.z = 1;
    c.gridDim = dim3(cluster_blocks);
    c.blockDim = dim3((unsigned)threads);
    c.attrs = &size;
    c.numAttrs = 1;
    if (cudaOccupancyMaxActiveClusters(&count, kernel, &c) != cudaSuccess) {
        cudaGetLastError();
        return 0;
    }
    return count;
}

/* Returns the launch configuration of a kernel that calls begin_after; `room`
 * is memory for its attributes. */
inline cudaLaunchConfig_t launch_after(const sps_context *ctx, int blocks,
                                       int threads, bool cluster,
                                       cudaLaunchAttribute *room)
{
    const sps_cuda_state *s = spsi_cuda_state(ctx);
    cudaLaunchConfig_t c = {};

    c.gridDim = dim3((unsigned)blocks);
    c.blockDim = dim3((unsigned)threads);
    c.stream = s->stream;
    c.attrs = room;
    if (!has_clusters(ctx)) return c;
    room[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    room[0].val.programmaticStreamSerializationAllowed = 1;
    room[1].id = cudaLaunchAttributeClusterDimension;
    room[1].val.clusterDim.x = cluster_blocks;
    room[1].val.clusterDim.y = room[1].val.clusterDim.z = 1;
    c.numAttrs = cluster ? 2 : 1;
    return c;
}

} // namespace

#endif
