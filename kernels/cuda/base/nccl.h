/* SPDX-License-Identifier: BSD-3-Clause */
/* nccl.h - the functions of NCCL (libnccl.so.2) that are used.  The library is
 * loaded if several processes have a GPU each (wire.c).  Its binary interface
 * is the same in all versions 2.  It is declared here, so that the module can
 * be built where NCCL is not installed. */
#ifndef SPS_CUDA_NCCL_H
#define SPS_CUDA_NCCL_H

#include <cuda_runtime_api.h>
#include <limits.h>
#include <stddef.h>

typedef struct ncclComm *sps_nccl_comm;
typedef struct sps_nccl_id { char bytes[128]; } sps_nccl_id;
/* The configuration of version 2.17, which later ones take as well. */
typedef struct sps_nccl_config {
    size_t size;
    unsigned magic, version;
    int blocking, cluster, least_blocks, most_blocks;
    const char *net;
} sps_nccl_config;
enum { SPS_NCCL_MAGIC = (int)0xcafebeef, SPS_NCCL_VERSION = 21701,
       SPS_NCCL_UNDEFINED = INT_MIN };
enum { SPS_NCCL_BYTE = 1, SPS_NCCL_DOUBLE = 8, SPS_NCCL_SUM = 0 };

typedef struct sps_nccl {
    int (*get_id)(sps_nccl_id *id);
    int (*init_rank)(sps_nccl_comm *comm, int size, sps_nccl_id id, int rank);
    int (*init_config)(sps_nccl_comm *comm, int size, sps_nccl_id id, int rank,
                       sps_nccl_config *config);      /* NULL before 2.17 */
    int (*destroy)(sps_nccl_comm comm);
    int (*give_up)(sps_nccl_comm comm);
    int (*group_start)(void);
    int (*group_end)(void);
    int (*send)(const void *from, size_t count, int type, int peer,
                sps_nccl_comm comm, cudaStream_t stream);
    int (*receive)(void *to, size_t count, int type, int peer,
                   sps_nccl_comm comm, cudaStream_t stream);
    int (*sum)(const void *from, void *to, size_t count, int type, int op,
               sps_nccl_comm comm, cudaStream_t stream);
    const char *(*text)(int error);
} sps_nccl;

#endif
