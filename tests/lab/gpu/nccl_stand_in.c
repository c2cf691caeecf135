/* SPDX-License-Identifier: MIT */
/* nccl_stand_in.c: the functions of NCCL that nccl_ranks.py calls, for two ranks over memory that the host can read, as the
 * software device's: processes or threads, which meet in a file. Its log has NCCL's lines. A buffer is "opened" for the other rank
 * where FAKE_OPENS is set, and with FAKE_WRONG the last element of a registered buffer is wrong. */
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { RANKS = 2, MOST_BYTES = 64 << 20 };

struct unique_id {
  char path[128];
};

struct meeting {
  atomic_int arrived, turn;
  float data[RANKS][MOST_BYTES / sizeof(float)];
};

struct communicator {
  struct meeting *meeting;
  int rank, n_registered;
};

int ncclGetVersion(int *version)
{
  *version = 22809;
  return 0;
}

const char *ncclGetErrorString(int code)
{
  return code ? "stand-in: failed" : "no error";
}

int ncclGetUniqueId(struct unique_id *id)
{
  snprintf(id->path, sizeof id->path, "/tmp/nccl-stand-in.XXXXXX");
  int file = mkstemp(id->path);
  return file < 0 || ftruncate(file, sizeof(struct meeting)) || close(file);
}

static void meet(struct meeting *meeting)
{
  int turn = meeting->turn;
  if (atomic_fetch_add(&meeting->arrived, 1) + 1 == RANKS) {
    meeting->arrived = 0;
    meeting->turn++;
  }
  while (meeting->turn == turn) sched_yield();
}

int ncclCommInitRank(struct communicator **out, int n_ranks, struct unique_id id, int rank)
{
  int file = open(id.path, O_RDWR);
  if (n_ranks != RANKS || file < 0) return 5;
  struct communicator *made = calloc(1, sizeof *made);
  made->meeting = mmap(NULL, sizeof *made->meeting, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  made->rank = rank;
  close(file);
  *out = made;
  if (made->meeting == MAP_FAILED) return 1;
  meet(made->meeting); /* each has the file open */
  if (rank) unlink(id.path);
  return 0;
}

int ncclCommCuDevice(struct communicator *communicator, int *device)
{
  *device = communicator->rank;
  return 0;
}

int ncclAllReduce(const float *send, float *receive, size_t count, int type, int operation,
                  struct communicator *communicator, void *stream)
{
  struct meeting *meeting = communicator->meeting;
  (void)type, (void)operation, (void)stream;
  if (count * sizeof *send > MOST_BYTES) return 4;
  memcpy(meeting->data[communicator->rank], send, count * sizeof *send);
  meet(meeting);
  for (size_t i = 0; i < count; i++) receive[i] = meeting->data[0][i] + meeting->data[1][i];
  if (getenv("FAKE_WRONG") && communicator->n_registered) receive[count - 1]++;
  meet(meeting);
  return 0;
}

int ncclCommRegister(struct communicator *communicator, void *buffer, size_t bytes, void **handle)
{
  char name[512];
  snprintf(name, sizeof name, "%.*s%d", (int)strcspn(getenv("NCCL_DEBUG_FILE"), "%"), getenv("NCCL_DEBUG_FILE"),
           getpid());
  FILE *log = fopen(name, "a");
  fprintf(log, "host:1:1 [0] NCCL INFO register comm %p buffer %p size %zi\n", (void *)communicator, buffer, bytes);
  if (getenv("FAKE_OPENS"))
    fprintf(log, "host:1:1 [0] NCCL INFO rank %d - IPC register buffer %p size %zd\n", communicator->rank, buffer,
            bytes);
  fclose(log);
  communicator->n_registered++;
  *handle = communicator;
  return 0;
}

int ncclCommDeregister(struct communicator *communicator, void *handle)
{
  communicator->n_registered--;
  return handle != communicator;
}

int ncclCommDestroy(struct communicator *communicator)
{
  int left = communicator->n_registered;
  munmap(communicator->meeting, sizeof *communicator->meeting);
  free(communicator);
  return left != 0;
}

/* Memory of the software device, in the library that FAKE_SOFTWARE names. */
static int call_software(const char *name, void *pointer, size_t bytes)
{
  void *library = dlopen(getenv("FAKE_SOFTWARE"), RTLD_NOW);
  int (*function)(void *, size_t) = NULL;
  if (library) *(void **)&function = dlsym(library, name);
  return function ? function(pointer, bytes) : 1;
}

int ncclMemAlloc(void **ptr, size_t bytes)
{
  return call_software("hipMalloc", ptr, bytes);
}

int ncclMemFree(void *ptr)
{
  return call_software("hipFree", ptr, 0);
}
