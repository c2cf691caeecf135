/* SPDX-License-Identifier: MIT */
/* rank.c: see rank.h. Called for names of files, for reports and for the choice of a device; compiled into the plugins that
 * write files. */
#include "rank.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>

enum rank_number { RANK_IN_JOB, RANK_ON_HOST, RANK_COUNT, RANK_NUMBERS };

/* A launcher, and its variables; NULL: it does not tell. */
struct rank_launcher {
  const char *variables[RANK_NUMBERS];
  const char *sign; /* counts only while this variable is set; NULL: always */
};

/* The inner launcher goes before the one that started it: torchrun sets generic names and is often started by srun or
 * mpirun, for which only the sign of torchrun tells the two apart. Slurm is last, since it sets its variables for the batch
 * script too, which starts a launcher. */
static const struct rank_launcher rank_launchers[] = {
    {{"HIPMM_RANK", "HIPMM_LOCAL_RANK", "HIPMM_RANKS"}, NULL}, /* set by hand, and by hipmm.dask */
    {{"RANK", "LOCAL_RANK", "WORLD_SIZE"}, "TORCHELASTIC_RUN_ID"},
    {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"}, NULL},
    {{"PMIX_RANK", "PMIX_LOCAL_RANK", NULL}, NULL},
    {{"PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE"}, NULL}, /* MPICH, Intel MPI */
    {{"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_SIZE"}, NULL},
    {{"RANK", "LOCAL_RANK", "WORLD_SIZE"}, NULL},
    {{"PALS_RANKID", "PALS_LOCAL_RANKID", NULL}, NULL}, /* HPE Cray */
    {{"FLUX_TASK_RANK", "FLUX_TASK_LOCAL_ID", "FLUX_JOB_SIZE"}, NULL},
    {{"SLURM_PROCID", "SLURM_LOCALID", "SLURM_STEP_NUM_TASKS"}, NULL},
};

enum { RANK_LAUNCHERS = sizeof rank_launchers / sizeof *rank_launchers, RANK_MOST = 1 << 30 };

/* The number in a variable; -1 without one. */
static int rank_read(const char *variable)
{
  const char *text = variable ? secure_getenv(variable) : NULL;
  char *end = NULL;
  long number = text ? strtol(text, &end, 10) : -1;
  return text && end != text && !*end && number >= 0 && number <= RANK_MOST ? (int)number : -1;
}

static int rank_find(enum rank_number number)
{
  int found = -1;
  for (int i = 0; i < RANK_LAUNCHERS && found < 0; i++)
    if (!rank_launchers[i].sign || secure_getenv(rank_launchers[i].sign))
      found = rank_read(rank_launchers[i].variables[number]);
  return found;
}

int rank_in_job(void)
{
  return rank_find(RANK_IN_JOB);
}

int rank_on_host(void)
{
  return rank_find(RANK_ON_HOST);
}

int rank_count(void)
{
  return rank_find(RANK_COUNT);
}

const char *rank_host(char name[RANK_HOST_BYTES])
{
  struct utsname host;
  snprintf(name, RANK_HOST_BYTES, "%s", uname(&host) || !*host.nodename ? "localhost" : host.nodename);
  return name;
}
