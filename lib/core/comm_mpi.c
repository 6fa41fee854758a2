/* SPDX-License-Identifier: BSD-3-Clause */
/* comm_mpi.c - communicators of MPI, by the module of its implementation.
 *
 * Which module: that of the MPI in the process; otherwise that of the launcher,
 * which its environment shows; otherwise the first that can be loaded. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "core/comm.h"
#include "core/module.h"

/* From MPI 4.0, 9.1.1: the call is allowed before MPI is initialised. */
static int implementation_here(void)
{
    int (*tell)(char *text, int *length) = NULL;
    char text[8192] = "";      /* MPI_MAX_LIBRARY_VERSION_STRING of both */
    int length = 0;

    *(void **)&tell = dlsym(RTLD_DEFAULT, "MPI_Get_library_version");
    if (!tell || tell(text, &length) != 0) return -1;
    return strstr(text, "Open MPI") ? SPS_OPENMPI
         : strstr(text, "MPICH") ? SPS_MPICH : -1;
}

static int implementation_of_launcher(void)
{
    if (getenv("OMPI_COMM_WORLD_SIZE")) return SPS_OPENMPI;
    return getenv("PMI_SIZE") || getenv("PMI_RANK") ? SPS_MPICH : -1;
}

static const sps_engine *find_engine(char *why, size_t size)
{
    const sps_engine *e;
    int which = implementation_here();

    if (which < 0) which = implementation_of_launcher();
    if (which >= 0) return spsi_module_engine(which, why, size);
    e = spsi_module_engine(SPS_OPENMPI, why, size);
    return e ? e : spsi_module_engine(SPS_MPICH, why, size);
}

sps_status sps_comm_mpi(int fortran_handle, sps_comm **c_p)
{
    char why[SPS_ERROR_SIZE];
    const sps_engine *e = NULL;
    const char *no;
    void *of = NULL;
    int rank = 0, size = 0;
    sps_status st = SPS_OK;

    SPS_REQUIRE(NULL, c_p, SPS_EINVAL, "sps_comm_mpi: c_p is NULL");
    e = find_engine(why, sizeof why);
    SPS_REQUIRE(NULL, e, SPS_EABSENT, "no module of this MPI (libspsolve was "
                "built without it): %s", why);
    no = e->open(fortran_handle, &rank, &size, &of);
    SPS_REQUIRE(NULL, !no, SPS_EINVAL, "sps_comm_mpi, %s: %s", e->name, no);
    SPS_TRY(spsi_comm_of_engine(rank, size, e, of, c_p));
    return SPS_OK;

fail:
    if (of) e->close(of);
    return st;
}
