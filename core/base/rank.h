/* SPDX-License-Identifier: MIT */
/* rank.h: the place of this process in a job of many, as its launcher tells it by environment variables. A privileged
 * process has none. Thread-safe as long as no thread changes the environment. */
#ifndef HIPMM_CORE_BASE_RANK_H
#define HIPMM_CORE_BASE_RANK_H

/* The rank in the job, the rank among the processes of the job on this host, and the number of ranks in the job; -1 where
 * no launcher tells it. */
int rank_in_job(void);
int rank_on_host(void);
int rank_count(void);

/* How many ranks use one of this host's `n_devices` devices: HIPMM_RANKS_PER_DEVICE, or what the launcher tells, divided and
 * rounded up. 1 outside of a job; 0: the launcher does not tell it. */
int rank_per_device(int n_devices);

/* The host's name, written into `name`. Returns `name`. */
enum { RANK_HOST_BYTES = 65 };
const char *rank_host(char name[RANK_HOST_BYTES]);

#endif
