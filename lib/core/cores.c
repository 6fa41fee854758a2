/* SPDX-License-Identifier: BSD-3-Clause */
/* cores.c - the number of cores this process may use: the minimum of its
 * affinity mask, the CPU quotas of its control groups and OMP_NUM_THREADS.
 *
 * A quota of q microseconds in each period of p is q / p cores, rounded up.
 * Version 2 has "q p" or "max p" in cpu.max, version 1 two files; the quotas of
 * all groups on the path to the root apply.  In a container the group's path
 * may name a folder that is not mounted there: missing files are skipped, the
 * root of the mount is always read. */
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/team.h"

#define GROUPS "/sys/fs/cgroup"

/* Returns the number of cores in the affinity mask, which containers and batch
 * systems restrict. */
static int of_mask(void)
{
    cpu_set_t set;
    long online;

    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return CPU_COUNT(&set);
    online = sysconf(_SC_NPROCESSORS_ONLN); /* the machine has more cores than
                                               cpu_set_t can hold */
    return online < 1 ? 1 : online > SPS_TEAM_MOST ? SPS_TEAM_MOST
                                                   : (int)online;
}

/* Reads the first line of a file; returns false if there is no such file. */
static bool read_line(const char *folder, const char *name, char *line,
                      int size)
{
    char path[PATH_MAX];
    FILE *f;
    bool good;

    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= PATH_MAX)
        return false;
    f = fopen(path, "r");
    good = f && fgets(line, size, f);
    if (f) fclose(f);
    return good;
}

/* Returns the cores granted by one group, or SPS_TEAM_MOST without a limit. */
static int of_group(const char *folder)
{
    char line[128], period_line[128];
    unsigned long long quota = 0, period = 0;    /* a quota of -1 (none) becomes
                                                    the largest number */
    char *end;

    if (read_line(folder, "cpu.max", line, sizeof line)) {
        quota = strtoull(line, &end, 10);        /* "max" becomes 0 */
        period = strtoull(end, NULL, 10);
    } else if (read_line(folder, "cpu.cfs_quota_us", line, sizeof line) &&
               read_line(folder, "cpu.cfs_period_us", period_line,
                         sizeof period_line)) {
        quota = strtoull(line, NULL, 10);
        period = strtoull(period_line, NULL, 10);
    }
    if (quota == 0 || period == 0 || quota / period >= SPS_TEAM_MOST)
        return SPS_TEAM_MOST;
    return (int)(quota / period + (quota % period != 0));
}

/* Returns the minimum over the groups from base/path up to base. */
static int of_path(const char *base, const char *path)
{
    char folder[PATH_MAX];
    const size_t stem = strlen(base);
    int least = SPS_TEAM_MOST;

    if (snprintf(folder, sizeof folder, "%s%s", base, path) >= PATH_MAX)
        return least;
    for (;;) {
        const int cores = of_group(folder);
        char *slash = strrchr(folder + stem, '/');

        if (cores < least) least = cores;
        if (!slash) return least;
        *slash = '\0';
    }
}

/* Returns whether a list like "cpu,cpuacct" contains the controller cpu. */
static bool rules_cpu(const char *list)
{
    for (; list; list = strchr(list, ',')) {
        list += *list == ',';
        if (strncmp(list, "cpu", 3) == 0 && (list[3] == ',' || !list[3]))
            return true;
    }
    return false;
}

/* Returns the cores granted by the groups of one line of /proc/self/cgroup,
 * "number:controllers:path".  In version 2 there are no controllers; in version
 * 1 the controller cpu has a mount of its own. */
static int of_line(const char *root, char *line)
{
    char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;
    char base[PATH_MAX];

    if (!path) return SPS_TEAM_MOST;
    *path++ = '\0';
    list++;
    path[strcspn(path, "\n")] = '\0';
    if (*list && !rules_cpu(list)) return SPS_TEAM_MOST;
    if (snprintf(base, sizeof base, "%s" GROUPS "%s", root,
                 *list ? "/cpu" : "") >= PATH_MAX)
        return SPS_TEAM_MOST;
    return of_path(base, path);
}

static int of_groups(const char *root)
{
    char path[PATH_MAX], line[PATH_MAX];
    int least = SPS_TEAM_MOST;
    FILE *f;

    if (snprintf(path, sizeof path, "%s/proc/self/cgroup", root) >= PATH_MAX)
        return least;
    f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f)) {
        const int cores = of_line(root, line);

        if (cores < least) least = cores;
    }
    if (f) fclose(f);
    return least;
}

/* Returns the first number of OMP_NUM_THREADS, a list with a number for each
 * level of nesting, or SPS_TEAM_MOST if it is out of range. */
static int of_limit(const char *limit)
{
    const unsigned long long threads = limit ? strtoull(limit, NULL, 10) : 0;

    return threads < 1 || threads > SPS_TEAM_MOST ? SPS_TEAM_MOST
                                                  : (int)threads;
}

int spsi_cores(const char *root, const char *limit)
{
    const int mask = of_mask(), groups = of_groups(root);
    const int wish = of_limit(limit);
    int cores = mask < groups ? mask : groups;

    if (wish < cores) cores = wish;
    return cores;
}
