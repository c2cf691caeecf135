/* SPDX-License-Identifier: MIT */
/* stager.c: see stager.h. */
#include "stager.h"

#include "../../core/base/thread.h"

bool stager_check(struct stager *stager, const char *call, int code, uint64_t bytes)
{
  if (!code) return true;
  if (atomic_exchange(&stager->has_failed, true)) return false;
  stager->call = call;
  stager->code = code;
  stager->bytes = bytes;
  return false;
}

static void stager_copy_pieces(struct stager *stager, hipmm_stream_t stream)
{
  unsigned thread = atomic_fetch_add(&stager->n_threads, 1);
  uint64_t piece;
  while (!atomic_load(&stager->has_failed) && (piece = atomic_fetch_add(&stager->next_piece, 1)) < stager->n_pieces)
    if (!stager->copy_piece(stager, piece, thread, stream)) atomic_store(&stager->has_failed, true);
}

/* One thread's part. Its stream is non-blocking: it waits for no other stream, and can be used while others are
 * captured. */
static void *stager_run_thread(void *stager_)
{
  struct stager *stager = stager_;
  const struct hipmm_services *services = stager->services;
  int previous = services->enter_device(services);
  hipmm_stream_t stream;
  if (stager_check(stager, "hipStreamCreateWithFlags",
                   services->hip->StreamCreateWithFlags(&stream, HIPMM_HIP_STREAM_NON_BLOCKING), 0)) {
    stager_copy_pieces(stager, stream);
    int code = services->hip->StreamSynchronize(stream);
    if (code) services->hip->StreamSynchronize(stream); /* copies may go on */
    stager_check(stager, "hipStreamSynchronize", code, 0);
    if (services->hip->StreamDestroy(stream)) services->hip->GetLastError();
  }
  services->leave_device(services, previous);
  return NULL;
}

bool stager_run(struct stager *stager, unsigned most_threads)
{
  pthread_t threads[STAGER_MOST_THREADS];
  uint64_t n = 0, most = stager->n_pieces;
  if (!stager->n_pieces) return true;
  if (most > most_threads) most = most_threads;
  if (most > STAGER_MOST_THREADS) most = STAGER_MOST_THREADS;
  while (n + 1 < most && !thread_start(&threads[n], NULL, stager_run_thread, stager)) n++;
  stager_run_thread(stager);
  while (n) pthread_join(threads[--n], NULL);
  return !atomic_load(&stager->has_failed);
}
