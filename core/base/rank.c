/* SPDX-License-Identifier: MIT */
/* rank.c: see rank.h. Called for names of files, for reports and for the choice of a device; compiled into the plugins that
 * write files. */
#include "rank.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

enum rank_number { RANK_IN_JOB, RANK_ON_HOST, RANK_COUNT, RANK_COUNT_ON_HOST, RANK_NUMBERS };

/* A launcher, and its variables; NULL: it does not tell. */
struct rank_launcher {
  const char *variables[RANK_NUMBERS];
  const char *sign; /* counts only while this variable is set; NULL: always */
};

/* The inner launcher goes before the one that started it: torchrun sets generic names and is often started by srun or
 * mpirun, for which only the sign of torchrun tells the two apart. Slurm is last, since it sets its variables for the batch
 * script too, which starts a launcher. */
static const struct rank_launcher rank_launchers[] = {
    {{"HIPMM_RANK", "HIPMM_LOCAL_RANK", "HIPMM_RANKS", NULL}, NULL}, /* set by hand, and by hipmm.dask */
    {{"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"}, "TORCHELASTIC_RUN_ID"},
    {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"},
     NULL},
    {{"PMIX_RANK", "PMIX_LOCAL_RANK", NULL, NULL}, NULL},
    {{"PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE", "MPI_LOCALNRANKS"}, NULL}, /* MPICH, Intel MPI */
    {{"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_SIZE"}, NULL},
    {{"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"}, NULL},
    {{"PALS_RANKID", "PALS_LOCAL_RANKID", NULL, "PALS_LOCAL_SIZE"}, NULL}, /* HPE Cray */
    {{"FLUX_TASK_RANK", "FLUX_TASK_LOCAL_ID", "FLUX_JOB_SIZE", NULL}, NULL},
    {{"SLURM_PROCID", "SLURM_LOCALID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_TASKS_PER_NODE"}, NULL},
};

enum { RANK_LAUNCHERS = sizeof rank_launchers / sizeof *rank_launchers, RANK_MOST = 1 << 30 };

/* The number in a variable, and of a list for each host, as Slurm writes it ("4(x2),3"), the largest; -1 without one. */
static int rank_read(const char *variable)
{
  const char *text = variable ? secure_getenv(variable) : NULL;
  int most = -1;
  while (text && *text) {
    char *end = NULL;
    long number = strtol(text, &end, 10);
    if (end == text || number < 0 || number > RANK_MOST) return -1;
    if (number > most) most = (int)number;
    if (*end == '(') end += strcspn(end, ",");
    if (*end && (*end != ',' || !end[1])) return -1;
    text = *end ? end + 1 : end;
  }
  return most;
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

int rank_per_device(int n_devices)
{
  int given = rank_read("HIPMM_RANKS_PER_DEVICE"), on_host = rank_find(RANK_COUNT_ON_HOST), in_job = rank_count();
  if (given > 0) return given;
  if (on_host > 0) return n_devices > 1 ? (on_host + n_devices - 1) / n_devices : on_host;
  return in_job == 1 || (in_job < 0 && rank_in_job() < 0) ? 1 : 0;
}

const char *rank_host(char name[RANK_HOST_BYTES])
{
  struct utsname host;
  snprintf(name, RANK_HOST_BYTES, "%s", uname(&host) || !*host.nodename ? "localhost" : host.nodename);
  return name;
}
