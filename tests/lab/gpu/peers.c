/* SPDX-License-Identifier: MIT */
/* peers.c: two GPUs in one process. Copies in all directions with either device current, before and after the second
 * device is used and peer access is enabled; kernels of each device over the memory of both; the order of copies on the
 * default streams; memory allocated and freed while the other device is current; threads of both devices. All data is
 * compared. Prints one line of JSON: what was tried, and "right", what was wrong, or the error. Some calls are refused by
 * the runtime itself; the program with the runtime's own memory shows which.
 *
 *   cc -O2 -pthread -o peers peers*.c -I/usr/local/cuda/include -L/usr/local/cuda/lib64 -lcudart
 *   peers [--home DEVICE]                      the device that is used first, by default 0
 *
 * With -DPEERS_HIPMM and -lhipmm the memory is that of hipmm's C API. With -DPEERS_HIP the runtime is HIP's, and there are
 * no kernels. Exit status: 77 with fewer than two devices. */
#include "peers.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef PEERS_HIPMM
#include <hipmm/hipmm.h>
#endif

static unsigned char *pinned, pageable[LARGE], wanted[LARGE], scratch[LARGE];

static const char *const place_names[PLACES] = {"device 0", "device 1", "host"};

/* ---- Copies ---- */

enum how { PLAIN, BY_DEFAULT, ASYNC, ON_THE_OTHERS_STREAM, PEER, PEER_ASYNC, ROWS, HOWS };
static const char *const how_names[HOWS] = {
    "Memcpy",     "Memcpy with kind Default", "MemcpyAsync", "MemcpyAsync on the other device's stream",
    "MemcpyPeer", "MemcpyPeerAsync",          "Memcpy2D"};

struct copy {
  enum how how;
  int to, from, current;
  void *target, *source;
  size_t bytes;
};

static enum GPU(MemcpyKind) kind_of(const struct copy *copy)
{
  if (copy->from == HOST) return GPU(MemcpyHostToDevice);
  return copy->to == HOST ? GPU(MemcpyDeviceToHost) : GPU(MemcpyDeviceToDevice);
}

/* All left halves of rows of 200 bytes, then all right halves. */
static GPU(Error_t) copy_rows(const struct copy *copy)
{
#ifdef PEERS_HIP
  (void)copy;
  return GPU(ErrorNotSupported);
#else
  enum { PITCH = 200, WIDTH = 100 };
  const char *source = copy->source;
  char *target = copy->target;
  cudaError_t status = cudaMemcpy2D(target, PITCH, source, PITCH, WIDTH, copy->bytes / PITCH, kind_of(copy));
  return status ? status
                : cudaMemcpy2D(target + WIDTH, PITCH, source + WIDTH, PITCH, WIDTH, copy->bytes / PITCH, kind_of(copy));
#endif
}

static GPU(Error_t) copy_in_order(const struct copy *copy, GPU(Stream_t) stream)
{
  return GPU(MemcpyAsync)(copy->target, copy->source, copy->bytes, kind_of(copy), stream);
}

static GPU(Error_t) perform(const struct copy *copy)
{
  switch (copy->how) {
  case PLAIN: return GPU(Memcpy)(copy->target, copy->source, copy->bytes, kind_of(copy));
  case BY_DEFAULT: return GPU(Memcpy)(copy->target, copy->source, copy->bytes, GPU(MemcpyDefault));
  case ASYNC: return copy_in_order(copy, peers_streams[copy->current]);
  case ON_THE_OTHERS_STREAM: return copy_in_order(copy, peers_streams[1 - copy->current]);
  case PEER: return GPU(MemcpyPeer)(copy->target, copy->to, copy->source, copy->from, copy->bytes);
  case PEER_ASYNC:
    return GPU(MemcpyPeerAsync)(copy->target, copy->to, copy->source, copy->from, copy->bytes,
                                peers_streams[copy->current]);
  default: return copy_rows(copy);
  }
}

static bool is_possible(const struct copy *copy)
{
  if (copy->how == PEER || copy->how == PEER_ASYNC) return copy->from != HOST && copy->to != HOST;
  if (copy->how == ON_THE_OTHERS_STREAM) return peers_streams[1 - copy->current] != NULL;
#ifdef PEERS_HIP
  if (copy->how == ROWS) return false;
#endif
  return true;
}

static void prepare(int place, void *memory, const unsigned char *bytes, size_t count)
{
  if (place == HOST)
    memcpy(memory, bytes, count);
  else
    peers_write(place, memory, bytes, count);
}

static const char *compare(int place, const void *memory, size_t count)
{
  if (place != HOST) return peers_compare(place, memory, wanted, scratch, count);
  return memcmp(memory, wanted, count) ? "the host's bytes are wrong" : NULL;
}

static const char *try_copy(const struct copy *copy)
{
  static unsigned seed;
  peers_pattern(wanted, copy->bytes, ++seed);
  memset(scratch, 0xEE, copy->bytes);
  prepare(copy->to, copy->target, scratch, copy->bytes);
  prepare(copy->from, copy->source, wanted, copy->bytes);
  PREPARE(GPU(SetDevice)(copy->current));
  const char *wrong = peers_error(perform(copy));
  peers_wait();
  return wrong ? wrong : compare(copy->to, copy->target, copy->bytes);
}

static void try_ways(const char *state, struct copy copy, const struct peers_blocks *blocks[DEVICES])
{
  struct peers_tally tally = {0};
  for (int size = 0; size < SIZES; size++)
    for (int how = 0; how < HOWS; how++) {
      copy.how = (enum how)how;
      copy.bytes = peers_sizes[size];
      void *host = copy.how == PLAIN || copy.how == ROWS ? pageable : pinned;
      copy.source = copy.from == HOST ? host : blocks[copy.from]->source[size];
      copy.target = copy.to == HOST ? host : blocks[copy.to]->target[size];
      if (is_possible(&copy)) peers_count(&tally, try_copy(&copy), "%s of %zu bytes", how_names[how], copy.bytes);
    }
  peers_tell(&tally, "%s: %s to %s, device %d current", state, place_names[copy.from], place_names[copy.to],
             copy.current);
}

/* Between all places; a device without blocks is skipped. */
static void try_copies(const char *state, const struct peers_blocks *blocks[DEVICES])
{
  for (int from = 0; from < PLACES; from++)
    for (int to = 0; to < PLACES; to++)
      for (int current = 0; current < DEVICES; current++) {
        struct copy copy = {.from = from, .to = to, .current = current};
        bool are_there = (from == HOST || blocks[from]) && (to == HOST || blocks[to]);
        if (are_there && (from != HOST || to != HOST) && peers_streams[current]) try_ways(state, copy, blocks);
      }
}

/* ---- Fills and attributes ---- */

static const char *try_fill(int owner, int current, void *target, size_t bytes, bool in_order)
{
  static int value = 0x11;
  value = (value + 0x11) & 0xFF;
  memset(wanted, value, bytes);
  memset(scratch, 0xEE, bytes);
  peers_write(owner, target, scratch, bytes);
  PREPARE(GPU(SetDevice)(current));
  const char *wrong = peers_error(in_order ? GPU(MemsetAsync)(target, value, bytes, peers_streams[current])
                                           : GPU(Memset)(target, value, bytes));
  peers_wait();
  return wrong ? wrong : peers_compare(owner, target, wanted, scratch, bytes);
}

static const char *find_owner(int owner, int current, const void *target)
{
  peers_attributes attributes;
  PREPARE(GPU(SetDevice)(current));
  const char *wrong = peers_error(GPU(PointerGetAttributes)(&attributes, target));
  return wrong ? wrong : attributes.device == owner ? NULL : "another device";
}

static void try_fills(const char *state, const struct peers_blocks *blocks[DEVICES])
{
  for (int owner = 0; owner < DEVICES; owner++)
    for (int current = 0; current < DEVICES; current++) {
      struct peers_tally fills = {0}, attributes = {0};
      for (int size = 0; size < SIZES; size++) {
        void *target = blocks[owner]->target[size];
        for (int in_order = 0; in_order < 2; in_order++)
          peers_count(&fills, try_fill(owner, current, target, peers_sizes[size], in_order), "%s of %zu bytes",
                      in_order ? "MemsetAsync" : "Memset", peers_sizes[size]);
        peers_count(&attributes, find_owner(owner, current, target), "%zu bytes", peers_sizes[size]);
      }
      peers_tell(&fills, "%s: fill of device %d, device %d current", state, owner, current);
      peers_tell(&attributes, "%s: owner of device %d's memory, device %d current", state, owner, current);
    }
}

/* ---- Peer access ---- */

static void tell_code(GPU(Error_t) code, const char *what, int device)
{
  (void)GPU(GetLastError)();
  peers_tell_text(GPU(GetErrorName)(code), "%s, device %d current", what, device);
}

static bool reach_each_other(void)
{
  bool all = true;
  for (int device = 0; device < DEVICES; device++) {
    int reaches = 0;
    PREPARE(GPU(DeviceCanAccessPeer)(&reaches, device, 1 - device));
    peers_tell_text(reaches ? "yes" : "no", "device %d can access its peer", device);
    all = all && reaches;
  }
  return all;
}

static void enable(const char *when)
{
  char what[64];
  for (int device = 0; device < DEVICES; device++) {
    PREPARE(GPU(SetDevice)(device));
    snprintf(what, sizeof what, "%s: DeviceEnablePeerAccess", when);
    tell_code(GPU(DeviceEnablePeerAccess)(1 - device, 0), what, device);
    snprintf(what, sizeof what, "%s: DeviceEnablePeerAccess once more", when);
    tell_code(GPU(DeviceEnablePeerAccess)(1 - device, 0), what, device);
  }
}

static void disable(void)
{
  for (int device = 0; device < DEVICES; device++) {
    PREPARE(GPU(SetDevice)(device));
    tell_code(GPU(DeviceDisablePeerAccess)(1 - device), "DeviceDisablePeerAccess", device);
    tell_code(GPU(DeviceDisablePeerAccess)(1 - device), "DeviceDisablePeerAccess once more", device);
  }
}

static void enable_wrongly(void)
{
  for (int device = 0; device < DEVICES; device++) {
    PREPARE(GPU(SetDevice)(device));
    tell_code(GPU(DeviceEnablePeerAccess)(device, 0), "DeviceEnablePeerAccess of itself", device);
    tell_code(GPU(DeviceEnablePeerAccess)(99, 0), "DeviceEnablePeerAccess of a device that there is not", device);
    tell_code(GPU(DeviceEnablePeerAccess)(1 - device, 1), "DeviceEnablePeerAccess with flags", device);
    tell_code(GPU(DeviceDisablePeerAccess)(1 - device), "DeviceDisablePeerAccess of what was not enabled", device);
  }
}

/* ---- Allocation and deallocation ---- */

static void free_blocks(const char *name, int owner, int current, const struct peers_blocks *blocks)
{
  struct peers_tally tally = {0};
  PREPARE(GPU(SetDevice)(current));
  for (int size = 0; size < SIZES; size++) {
    peers_count(&tally, peers_free(owner, blocks->source[size], peers_sizes[size]), "%zu bytes", peers_sizes[size]);
    peers_count(&tally, peers_free(owner, blocks->target[size], peers_sizes[size]), "%zu bytes", peers_sizes[size]);
  }
  peers_tell(&tally, "%s of device %d are freed, device %d current", name, owner, current);
}

struct worker {
  pthread_t thread;
  int device;
  struct peers_tally tally;
};

/* Copies a block to the other device and from there to the host. NULL if the data is right. */
static const char *send(int device, size_t bytes, unsigned seed, unsigned char *data, unsigned char *room)
{
  void *own = peers_allocate(device, bytes), *others = own ? peers_allocate(1 - device, bytes) : NULL;
  if (!others) return peers_memory_error();
  peers_pattern(data, bytes, seed);
  memset(room, 0, bytes);
  const char *wrong = peers_error(GPU(Memcpy)(own, data, bytes, GPU(MemcpyHostToDevice)));
  if (!wrong) wrong = peers_error(GPU(Memcpy)(others, own, bytes, GPU(MemcpyDeviceToDevice)));
  if (!wrong) wrong = peers_error(GPU(DeviceSynchronize)());
  if (!wrong) wrong = peers_error(GPU(Memcpy)(room, others, bytes, GPU(MemcpyDeviceToHost)));
  if (!wrong && memcmp(room, data, bytes)) wrong = "other bytes came back";
  const char *freed = peers_free(device, own, bytes), *freed_too = peers_free(1 - device, others, bytes);
  return wrong ? wrong : freed ? freed : freed_too;
}

static void *work(void *closure)
{
  enum { ROUNDS = 24, STEP = 700001 };
  struct worker *worker = closure;
  unsigned char *data = malloc((size_t)ROUNDS * STEP), *room = malloc((size_t)ROUNDS * STEP);
  if (!data || !room) abort();
  PREPARE(GPU(SetDevice)(worker->device));
  for (unsigned i = 0; i < ROUNDS; i++) {
    size_t bytes = (size_t)(i * 7 % ROUNDS) * STEP + 1;
    peers_count(&worker->tally, send(worker->device, bytes, i, data, room), "%zu bytes", bytes);
  }
  free(data);
  free(room);
  return NULL;
}

static void try_threads(const char *state)
{
  enum { THREADS = 2 * DEVICES };
  struct worker workers[THREADS] = {0};
  for (int i = 0; i < THREADS; i++) {
    workers[i].device = i % DEVICES;
    if (pthread_create(&workers[i].thread, NULL, work, &workers[i])) abort();
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(workers[i].thread, NULL);
    peers_tell(&workers[i].tally, "%s: thread %d, device %d current", state, i, workers[i].device);
  }
}

/* ---- All of it ---- */

static void use(int device)
{
  PREPARE(GPU(SetDevice)(device));
  PREPARE(GPU(StreamCreate)(&peers_streams[device]));
}

static void try_all(int home)
{
  int other = 1 - home;
  const struct peers_blocks *early[DEVICES] = {0}, *late[DEVICES], *mixed[DEVICES];

  use(home);
  struct peers_blocks first = peers_allocate_blocks(home);
  early[home] = &first;
  try_copies("before the second device is used", early);

  use(other);
  try_copies("once the second device is used", early);

  struct peers_blocks later[DEVICES] = {peers_allocate_blocks(0), peers_allocate_blocks(1)};
  late[0] = mixed[0] = &later[0], late[1] = mixed[1] = &later[1];
  mixed[home] = &first;
  try_copies("access not enabled, early memory", mixed);
  try_copies("access not enabled, late memory", late);
  try_fills("access not enabled, early memory", mixed);
  peers_try_order("access not enabled", late);
  try_threads("access not enabled");

  enable_wrongly();
  bool reach = reach_each_other();
  enable("at first");
  try_copies("access enabled, early memory", mixed);
  try_copies("access enabled, late memory", late);
  try_fills("access enabled, early memory", mixed);
  if (reach) peers_try_kernels("access enabled, early memory", mixed);
  if (reach) peers_try_kernels("access enabled, late memory", late);
  peers_try_order("access enabled", late);

  struct peers_blocks last[DEVICES] = {peers_allocate_blocks(0), peers_allocate_blocks(1)};
  const struct peers_blocks *latest[DEVICES] = {&last[0], &last[1]};
  try_copies("access enabled, memory allocated then", latest);
  try_fills("access enabled, memory allocated then", latest);
  if (reach) peers_try_kernels("access enabled, memory allocated then", latest);
  try_threads("access enabled");

  disable();
  try_copies("access disabled", mixed);
  enable("again");
  try_fills("access enabled again", mixed);
  if (reach) peers_try_kernels("access enabled again", mixed);

  free_blocks("early blocks", home, other, &first);
  for (int device = 0; device < DEVICES; device++) {
    free_blocks("late blocks", device, 1 - device, &later[device]);
    free_blocks("the last blocks", device, device, &last[device]);
  }
  try_threads("after all was freed");
}

static int home_of(int argc, char **argv)
{
  if (argc == 1) return 0;
  if (argc == 3 && !strcmp(argv[1], "--home") && (!strcmp(argv[2], "0") || !strcmp(argv[2], "1")))
    return argv[2][0] - '0';
  fprintf(stderr, "usage: %s [--home 0|1]\n", argv[0]);
  exit(2);
}

#ifdef PEERS_HIPMM

static int start(void)
{
  if (!hipmm_init()) return 0;
  fprintf(stderr, "peers: %s\n", hipmm_last_error_message());
  return 1;
}

static int finish(void)
{
  if (!hipmm_finalize()) return 0;
  fprintf(stderr, "peers: %s\n", hipmm_last_error_message());
  return 1;
}

#else

static int start(void)
{
  return 0;
}

static int finish(void)
{
  return 0;
}

#endif

int main(int argc, char **argv)
{
  int home = home_of(argc, argv), count = 0;
  if (start()) return 1;
  if (GPU(GetDeviceCount)(&count) || count < DEVICES) {
    fprintf(stderr, "peers: there are %d devices, two are needed\n", count);
    return 77;
  }
  PREPARE(GPU(SetDevice)(home));
  PREPARE(GPU(HostAlloc)((void **)&pinned, LARGE, 0));
  try_all(home);
  peers_print();
  return finish();
}
