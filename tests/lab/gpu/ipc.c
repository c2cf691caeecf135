/* SPDX-License-Identifier: MIT */
/* ipc.c: a program that knows nothing of hipmm and shares memory with another process by handles, for `hipmm run` over a pool
 * whose blocks are exportable. It is built for CUDA's runtime or for HIP's, without their headers, as races.c is:
 *
 *   hipmm run --config graph.json -- ./ipc SCENARIO…
 *
 * Each scenario has an owner, which makes the handles, and a peer, which was forked before the first call. The last line is "good",
 * or status 1 says where something is wrong. `share` prints times as JSON, in microseconds. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef API
#define API cuda
#endif
#define JOIN_(a, b) a##b
#define JOIN(a, b)  JOIN_(a, b)
#define F(name)     JOIN(API, name)

struct handle {
  char bytes[64];
};

int F(Malloc)(void **ptr, size_t bytes);
int F(Free)(void *ptr);
int F(Memset)(void *ptr, int value, size_t bytes);
int F(Memcpy)(void *to, const void *from, size_t bytes, int kind);
int F(DeviceSynchronize)(void);
int F(GetLastError)(void);
int F(IpcGetMemHandle)(struct handle *handle, void *ptr);
int F(IpcOpenMemHandle)(void **ptr, struct handle handle, unsigned flags);
int F(IpcCloseMemHandle)(void *ptr);

enum { KIB = 1 << 10, MIB = 1 << 20, TO_HOST = 2, LAZY_PEER_ACCESS = 1 };
enum { INVALID_VALUE = 1, INVALID_CONTEXT = 201, NOT_MAPPED = 205, NOT_SUPPORTED = 801 };

static const char *role = "owner";

static void expect(int line, const char *what, int code, int wanted)
{
  if (code == wanted) return;
  fprintf(stderr, "ipc.c:%d: %s: %s is %d, not %d\n", line, role, what, code, wanted);
  exit(1);
}

#define EXPECT(wanted, call) expect(__LINE__, #call, (call), (wanted))
#define GOOD(call)           EXPECT(0, call)
#define CHECK(condition)     expect(__LINE__, #condition, !(condition), 0)

/* ---- Two processes ---- */

struct pair {
  pid_t peer;
  int in, out; /* of this process */
};

/* The peer runs `work`, and ends. */
static struct pair start(void (*work)(struct pair pair))
{
  int there[2], back[2];
  CHECK(!pipe(there) && !pipe(back));
  pid_t peer = fork();
  CHECK(peer >= 0);
  if (!peer) {
    role = "peer";
    close(there[1]), close(back[0]);
    work((struct pair){0, there[0], back[1]});
    exit(0);
  }
  close(there[0]), close(back[1]);
  return (struct pair){peer, back[0], there[1]};
}

static void finish(struct pair pair)
{
  int status = 0;
  close(pair.out), close(pair.in);
  CHECK(waitpid(pair.peer, &status, 0) == pair.peer);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void give(struct pair pair, const void *data, size_t bytes)
{
  CHECK(write(pair.out, data, bytes) == (ssize_t)bytes);
}

static void take(struct pair pair, void *data, size_t bytes)
{
  for (size_t n = 0; n < bytes;) {
    ssize_t more = read(pair.in, (char *)data + n, bytes - n);
    CHECK(more > 0);
    n += (size_t)more;
  }
}

/* Waits until the other process is as far. */
static void meet(struct pair pair)
{
  char one = 0;
  give(pair, &one, 1);
  take(pair, &one, 1);
}

/* ---- Memory ---- */

static int holds(const void *memory, int value, size_t bytes)
{
  unsigned char *host = malloc(bytes);
  size_t n = 0;
  CHECK(host);
  GOOD(F(Memcpy)(host, memory, bytes, TO_HOST));
  while (n < bytes && host[n] == value) n++;
  free(host);
  return n == bytes;
}

static void fill(void *memory, int value, size_t bytes)
{
  GOOD(F(Memset)(memory, value, bytes));
  GOOD(F(DeviceSynchronize)());
}

static void *filled(int value, size_t bytes)
{
  void *memory = NULL;
  GOOD(F(Malloc)(&memory, bytes));
  fill(memory, value, bytes);
  return memory;
}

static struct handle handle_of(void *memory)
{
  struct handle handle;
  GOOD(F(IpcGetMemHandle)(&handle, memory));
  return handle;
}

static void *opened(struct handle handle)
{
  void *memory = NULL;
  GOOD(F(IpcOpenMemHandle)(&memory, handle, LAZY_PEER_ACCESS));
  return memory;
}

static void refuses(int line, struct handle handle, int wanted)
{
  void *memory = NULL;
  expect(line, "IpcOpenMemHandle", F(IpcOpenMemHandle)(&memory, handle, LAZY_PEER_ACCESS), wanted);
  expect(line, "GetLastError", F(GetLastError)(), wanted);
  CHECK(!memory);
}

#define REFUSES(wanted, handle) refuses(__LINE__, (handle), (wanted))

static double now(void)
{
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

/* ---- Data ---- */

enum { BLOCKS = 4, SMALL = 300 * KIB };
static const size_t sizes[BLOCKS] = {MIB, 3 * MIB + 5, 64 * MIB, 256 * MIB};

static void use_all(struct pair pair)
{
  char in[20], out[20];
  snprintf(in, sizeof in, "%d", pair.in);
  snprintf(out, sizeof out, "%d", pair.out);
  if (getenv("IPC_PLAIN_PEER")) { /* without `hipmm run` */
    unsetenv("IPC_PLAIN_PEER"), unsetenv("LD_PRELOAD");
    CHECK(execl("/proc/self/exe", "ipc", "plain", in, out, NULL) == 0);
  }
  struct handle handles[BLOCKS];
  double open_us[BLOCKS], close_us[BLOCKS];
  take(pair, handles, sizeof handles);
  filled(1, KIB); /* the device is in use already */
  for (int i = 0; i < BLOCKS; i++) {
    double began = now();
    void *memory = opened(handles[i]);
    open_us[i] = now() - began;
    CHECK(holds(memory, i + 1, sizes[i]));
    fill(memory, 70 + i, sizes[i]);
    began = now();
    GOOD(F(IpcCloseMemHandle)(memory));
    close_us[i] = now() - began;
  }
  give(pair, open_us, sizeof open_us);
  give(pair, close_us, sizeof close_us);
}

/* Blocks of all sizes between small ones, which stay as they are. */
static void share(void)
{
  struct pair pair = start(use_all);
  struct handle handles[BLOCKS];
  void *blocks[BLOCKS], *small[BLOCKS];
  double get_us[BLOCKS], open_us[BLOCKS], close_us[BLOCKS];
  for (int i = 0; i < BLOCKS; i++) {
    small[i] = filled(100 + i, SMALL);
    blocks[i] = filled(i + 1, sizes[i]);
    double began = now();
    handles[i] = handle_of(blocks[i]);
    get_us[i] = now() - began;
  }
  give(pair, handles, sizeof handles);
  take(pair, open_us, sizeof open_us);
  take(pair, close_us, sizeof close_us);
  finish(pair);
  printf("{\"blocks\": [");
  for (int i = 0; i < BLOCKS; i++) {
    CHECK(holds(blocks[i], 70 + i, sizes[i]));
    CHECK(holds(small[i], 100 + i, SMALL));
    GOOD(F(Free)(blocks[i]));
    GOOD(F(Free)(small[i]));
    printf("%s{\"bytes\": %zu, \"get_us\": %.1f, \"open_us\": %.1f, \"close_us\": %.1f}", i ? ", " : "", sizes[i],
           get_us[i], open_us[i], close_us[i]);
  }
  printf("]}\n");
}

static void open_twice(struct pair pair)
{
  struct handle handle;
  take(pair, &handle, sizeof handle);
  void *one = opened(handle), *other = opened(handle);
  CHECK(one == other);
  GOOD(F(IpcCloseMemHandle)(one));
  CHECK(holds(other, 5, 2 * MIB));
  GOOD(F(IpcCloseMemHandle)(other));
  EXPECT(INVALID_VALUE, F(IpcCloseMemHandle)(other));
  (void)F(GetLastError)();
  one = opened(handle);
  CHECK(holds(one, 5, 2 * MIB));
  GOOD(F(IpcCloseMemHandle)(one));
}

/* The handle of a block is one, however often it is asked for, and not for the process that made it. */
static void twice(void)
{
  struct pair pair = start(open_twice);
  void *block = filled(5, 2 * MIB);
  struct handle handle = handle_of(block), again = handle_of((char *)block + KIB);
  CHECK(!memcmp(&handle, &again, sizeof handle));
  REFUSES(INVALID_CONTEXT, handle);
  give(pair, &handle, sizeof handle);
  finish(pair);
  GOOD(F(Free)(block));
}

static void open_old_and_new(struct pair pair)
{
  struct handle old, new;
  take(pair, &old, sizeof old);
  take(pair, &new, sizeof new);
  REFUSES(NOT_MAPPED, old);
  void *memory = opened(new);
  CHECK(holds(memory, 6, 2 * MIB));
  GOOD(F(IpcCloseMemHandle)(memory));
  meet(pair);
  meet(pair);
  REFUSES(NOT_MAPPED, new);
}

/* A handle is of a block, and not of an address. */
static void stale(void)
{
  struct pair pair = start(open_old_and_new);
  void *block = filled(5, 2 * MIB);
  struct handle old = handle_of(block);
  GOOD(F(Free)(block));
  EXPECT(INVALID_VALUE, F(IpcGetMemHandle)(&old, block));
  (void)F(GetLastError)();
  give(pair, &old, sizeof old);
  block = filled(6, 2 * MIB);
  struct handle new = handle_of(block);
  CHECK(memcmp(&old, &new, sizeof old) != 0);
  give(pair, &new, sizeof new);
  meet(pair);
  GOOD(F(Free)(block));
  void *other = filled(7, 2 * MIB); /* in the same memory, without a handle */
  meet(pair);
  finish(pair);
  GOOD(F(Free)(other));
}

static void open_altered(struct pair pair)
{
  struct handle handle;
  take(pair, &handle, sizeof handle);
  for (size_t at = 8; at < sizeof handle; at += 4) {
    struct handle altered = handle;
    void *memory = NULL;
    for (int i = 0; i < 4; i++) altered.bytes[at + (size_t)i] ^= 0x55;
    int code = F(IpcOpenMemHandle)(&memory, altered, LAZY_PEER_ACCESS);
    if (at >= 48 && !code) GOOD(F(IpcCloseMemHandle)(memory)); /* a device that this process does not see */
    CHECK(at >= 48 || (code == NOT_MAPPED && !memory));
    (void)F(GetLastError)();
  }
  void *memory = opened(handle);
  CHECK(holds(memory, 5, 2 * MIB));
  EXPECT(INVALID_VALUE, F(IpcOpenMemHandle)(NULL, handle, LAZY_PEER_ACCESS));
  EXPECT(INVALID_VALUE, F(IpcOpenMemHandle)(&memory, handle, 77));
  (void)F(GetLastError)();
}

/* Numbers of a handle can be anything. */
static void altered(void)
{
  struct pair pair = start(open_altered);
  void *block = filled(5, 2 * MIB);
  struct handle handle = handle_of(block);
  give(pair, &handle, sizeof handle);
  finish(pair);
  CHECK(holds(block, 5, 2 * MIB));
  GOOD(F(Free)(block));
}

/* Run over a pool that makes no handles of such blocks. */
static void refused(void)
{
  struct handle handle;
  void *block = filled(5, getenv("IPC_BYTES") ? strtoull(getenv("IPC_BYTES"), NULL, 10) : 4 * MIB);
  EXPECT(NOT_SUPPORTED, F(IpcGetMemHandle)(&handle, block));
  EXPECT(NOT_SUPPORTED, F(GetLastError)());
  GOOD(F(Free)(block));
}

/* ---- Processes that end ---- */

static void outlive(struct pair pair)
{
  struct handle handles[2];
  char one;
  take(pair, handles, sizeof handles);
  void *memory = opened(handles[0]);
  meet(pair);
  CHECK(read(pair.in, &one, 1) == 0); /* the owner is gone */
  CHECK(holds(memory, 5, 2 * MIB));
  fill(memory, 6, 2 * MIB);
  CHECK(holds(memory, 6, 2 * MIB));
  REFUSES(NOT_MAPPED, handles[1]);
  GOOD(F(IpcCloseMemHandle)(memory));
}

static void be_killed(struct pair pair)
{
  struct handle handles[2];
  void *blocks[2] = {filled(5, 2 * MIB), filled(7, 3 * MIB)};
  for (int i = 0; i < 2; i++) handles[i] = handle_of(blocks[i]);
  give(pair, handles, sizeof handles);
  meet(pair);
  raise(SIGKILL);
}

/* Here the owner is the child. What is mapped stays; what is not cannot be had any more. */
static void owner_killed(void)
{
  struct pair pair = start(be_killed);
  outlive(pair);
  CHECK(waitpid(pair.peer, NULL, 0) == pair.peer);
}

static void open_and_be_killed(struct pair pair)
{
  struct handle handle;
  take(pair, &handle, sizeof handle);
  CHECK(holds(opened(handle), 5, 2 * MIB));
  meet(pair);
  raise(SIGKILL);
}

static void open_and_end(struct pair pair)
{
  struct handle handle;
  take(pair, &handle, sizeof handle);
  CHECK(holds(opened(handle), 5, 2 * MIB)); /* and is not closed */
}

static void peer_killed(void)
{
  struct pair first = start(open_and_be_killed), second = start(open_and_end);
  void *block = filled(5, 2 * MIB);
  struct handle handle = handle_of(block);
  give(first, &handle, sizeof handle);
  meet(first);
  CHECK(waitpid(first.peer, NULL, 0) == first.peer);
  give(second, &handle, sizeof handle);
  finish(second);
  CHECK(holds(block, 5, 2 * MIB));
  GOOD(F(Free)(block));
}

/* A process of the owner's that has its descriptors, and not its thread. */
static void forked(void)
{
  struct pair pair = start(open_and_end);
  void *block = filled(5, 2 * MIB);
  struct handle handle = handle_of(block);
  int status = 0;
  pid_t child = fork();
  if (!child) _exit(0);
  CHECK(waitpid(child, &status, 0) == child && !status);
  child = fork();
  if (!child) pause();
  give(pair, &handle, sizeof handle);
  finish(pair);
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  GOOD(F(Free)(block));
}

static void open_with_full_table(struct pair pair)
{
  struct handle handle;
  int files[4096], n = 0;
  take(pair, &handle, sizeof handle);
  GOOD(F(IpcCloseMemHandle)(opened(handle)));
  const struct rlimit before = {.rlim_cur = 1024, .rlim_max = 1024};
  CHECK(!setrlimit(RLIMIT_NOFILE, &before));
  while (n < 4096 && (files[n] = dup(pair.in)) >= 0) n++;
  for (int spare = 0; spare < 3; spare++) { /* the socket, and what it is found by; and then the descriptor itself */
    void *memory = NULL;
    CHECK(F(IpcOpenMemHandle)(&memory, handle, LAZY_PEER_ACCESS) == NOT_MAPPED || spare >= 2);
    if (memory) GOOD(F(IpcCloseMemHandle)(memory));
    (void)F(GetLastError)();
    close(files[--n]);
  }
  while (n > 0) close(files[--n]);
  CHECK(holds(opened(handle), 5, 2 * MIB));
}

static void full_table(void)
{
  struct pair pair = start(open_with_full_table);
  void *block = filled(5, 2 * MIB);
  struct handle handle = handle_of(block);
  give(pair, &handle, sizeof handle);
  finish(pair);
  GOOD(F(Free)(block));
}

/* ---- Hostile peers ---- */

struct message { /* peer_socket.h */
  uint32_t magic;
  uint16_t version, kind;
  uint32_t is_refused, bytes;
  char data[8000];
};
enum { HEADER = 16 };

static int connected(const char *path)
{
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  int file = socket(AF_UNIX, SOCK_SEQPACKET, 0);
  snprintf(address.sun_path, sizeof address.sun_path, "%.100s", path);
  if (!connect(file, (const struct sockaddr *)&address, sizeof address)) return file;
  close(file);
  return -1;
}

/* The owner's socket, by the start of its name. */
static void find_socket(pid_t owner, char path[300])
{
  char start[16];
  snprintf(path, 300, "%s/hipmm", getenv("XDG_RUNTIME_DIR"));
  snprintf(start, sizeof start, "%d-", (int)owner);
  DIR *folder = opendir(path);
  CHECK(folder);
  struct dirent *entry;
  while ((entry = readdir(folder)) && strncmp(entry->d_name, start, strlen(start)) != 0) continue;
  CHECK(entry);
  snprintf(path, 300, "%s/hipmm/%s", getenv("XDG_RUNTIME_DIR"), entry->d_name);
  closedir(folder);
}

/* Sends `bytes` of it with `n_files` descriptors. No more than a refusal, without a descriptor, comes back. */
static void send_bad(const char *path, const struct message *message, size_t bytes, int n_files)
{
  static char control[CMSG_SPACE(100 * sizeof(int))];
  static struct message answer;
  struct iovec data = {(void *)(uintptr_t)message, bytes}, back = {&answer, sizeof answer};
  struct msghdr sent = {.msg_iov = &data, .msg_iovlen = 1},
                received = {.msg_iov = &back, .msg_iovlen = 1, .msg_control = control};
  int file = connected(path);
  CHECK(file >= 0);
  if (n_files) {
    sent.msg_control = control;
    sent.msg_controllen = CMSG_SPACE((size_t)n_files * sizeof(int));
    struct cmsghdr *header = CMSG_FIRSTHDR(&sent);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN((size_t)n_files * sizeof(int));
    for (int i = 0; i < n_files; i++) ((int *)(void *)CMSG_DATA(header))[i] = file;
  }
  CHECK(sendmsg(file, &sent, MSG_NOSIGNAL) == (ssize_t)bytes);
  received.msg_controllen = sizeof control;
  ssize_t came = recvmsg(file, &received, 0);
  CHECK(came <= 0 || answer.is_refused);
  CHECK(!CMSG_FIRSTHDR(&received));
  close(file);
}

static void be_another_user(const char *path)
{
  enum { NOBODY = 65534 };
  int status = 0;
  pid_t child = geteuid() ? -1 : fork();
  if (!child) _exit(setuid(NOBODY) || connected(path) >= 0);
  if (child > 0) CHECK(waitpid(child, &status, 0) == child && !status);
}

static unsigned n_files_of(pid_t process)
{
  char path[40];
  unsigned n = 0;
  snprintf(path, sizeof path, "/proc/%d/fd", (int)process);
  DIR *folder = opendir(path);
  while (folder && readdir(folder)) n++;
  if (folder) closedir(folder);
  return n;
}

static void be_hostile(struct pair pair)
{
  enum { STALLED = 40 };
  static struct message message;
  struct handle handle;
  char path[300];
  int stalled[STALLED];
  uint64_t id;
  take(pair, &handle, sizeof handle);
  memcpy(&id, handle.bytes + 24, sizeof id);
  find_socket(getppid(), path);
  be_another_user(path);
  unsigned before = n_files_of(getppid());
  const struct message good = {.magic = 0x70696d68, .version = 1, .kind = 1, .bytes = sizeof id};
  message = good;
  send_bad(path, &message, HEADER + sizeof id, 0); /* an id that there is not */
  send_bad(path, &message, HEADER + sizeof id, 90);
  send_bad(path, &message, HEADER, 0);
  send_bad(path, &message, 5, 3);
  send_bad(path, &message, sizeof message, 0);
  memcpy(message.data, &id, sizeof id);
  send_bad(path, (message.magic++, &message), HEADER + sizeof id, 1);
  message.magic = good.magic;
  send_bad(path, (message.version = 2, &message), HEADER + sizeof id, 0);
  message.version = 1;
  for (int kind = 0; kind < 70000; kind += 9999)
    if (kind) send_bad(path, (message.kind = (uint16_t)kind, &message), HEADER + sizeof id, 0);
  message.kind = 1;
  send_bad(path, (message.bytes = 0xffffffff, &message), HEADER + sizeof id, 0);
  message.bytes = 4000;
  send_bad(path, &message, HEADER + 4000, 0);
  for (int i = 0; i < STALLED; i++) stalled[i] = connected(path); /* more than are served at once */
  sleep(7);
  CHECK(holds(opened(handle), 5, 2 * MIB));
  for (int i = 0; i < STALLED; i++) close(stalled[i]);
  for (int i = 0; i < 500; i++) { /* that go away before the answer comes */
    int file = connected(path);
    message.bytes = sizeof id;
    if (file >= 0) (void)!send(file, &message, HEADER + sizeof id, MSG_NOSIGNAL);
    close(file);
  }
  CHECK(holds(opened(handle), 5, 2 * MIB));
  usleep(200 * 1000);
  CHECK(n_files_of(getppid()) <= before);
}

/* What a process of the same user sends. Nothing of the owner's ends, or is lost. */
static void hostile(void)
{
  struct pair pair = start(be_hostile);
  void *block = filled(5, 2 * MIB);
  struct handle handle = handle_of(block);
  give(pair, &handle, sizeof handle);
  finish(pair);
  CHECK(holds(block, 5, 2 * MIB));
  GOOD(F(Free)(block));
}

enum { LIES = 27 };

/* A socket of the peer's own, which answers the handle that names it with what no honest process sends. */
static void lie(struct pair pair)
{
  char path[70];
  struct handle handle;
  take(pair, &handle, sizeof handle);
  snprintf(path, sizeof path, "%.60s/hipmm", getenv("XDG_RUNTIME_DIR"));
  mkdir(path, 0700);
  int32_t self = getpid();
  uint64_t nonce;
  memcpy(handle.bytes + 8, &self, sizeof self);
  memcpy(&nonce, handle.bytes + 16, sizeof nonce);
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path, sizeof address.sun_path, "%s/%d-%016llx", path, self, (unsigned long long)nonce);
  int listener = socket(AF_UNIX, SOCK_SEQPACKET, 0);
  CHECK(!bind(listener, (const struct sockaddr *)&address, sizeof address) && !listen(listener, 5));
  FILE *stat = fopen("/proc/self/stat", "r");
  char text[1024] = {0};
  CHECK(stat && fread(text, 1, sizeof text - 1, stat));
  char *at = strrchr(text, ')');
  for (int i = 0; i < 20; i++) at = strchr(at + 1, ' ');
  uint32_t began = (uint32_t)strtoull(at, NULL, 10);
  memcpy(handle.bytes + 12, &began, sizeof began);
  give(pair, &handle, sizeof handle);
  for (int round = 0; round <= LIES; round++) {
    static struct message message;
    static char control[CMSG_SPACE(sizeof(int))];
    int file = accept(listener, NULL, NULL), memory = memfd_create("lie", 0);
    CHECK(recv(file, &message, sizeof message, 0) == HEADER + 8);
    CHECK(!ftruncate(memory, 4 * MIB));
    message.bytes = 24 + 64 * 8;
    if (round % 7 == 6) message.bytes = (uint32_t)round * 31 % 4000;
    uint64_t words[70] = {2 * MIB, 0, 1, 2 * MIB};
    if (round % 7 == 1) words[0] = UINT64_MAX;
    if (round % 7 == 2) words[1] = UINT64_MAX - 255;
    if (round % 7 == 3) words[2] = 64;
    if (round % 7 == 4) words[3] = UINT64_MAX;
    if (round % 7 == 5) words[3] = 2 * MIB + 1;
    memcpy(message.data, words, sizeof words);
    struct iovec data = {&message, HEADER + message.bytes};
    struct msghdr sent = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&sent);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &memory, sizeof memory);
    CHECK(sendmsg(file, &sent, MSG_NOSIGNAL) > 0);
    close(file), close(memory);
  }
  unlink(address.sun_path);
}

/* The handle leads to a process that lies. Its memory is no memory of a device. */
static void liar(void)
{
  struct pair pair = start(lie);
  void *block = filled(5, 2 * MIB);
  struct handle handle = handle_of(block);
  give(pair, &handle, sizeof handle);
  take(pair, &handle, sizeof handle);
  unsigned before = n_files_of(getpid());
  for (int round = 0; round <= LIES; round++) REFUSES(NOT_MAPPED, handle);
  CHECK(n_files_of(getpid()) == before);
  finish(pair);
  CHECK(holds(block, 5, 2 * MIB));
  GOOD(F(Free)(block));
}

static const struct {
  const char *name;
  void (*run)(void);
} scenarios[] = {
    {"share", share},
    {"twice", twice},
    {"stale", stale},
    {"altered", altered},
    {"owner_killed", owner_killed},
    {"refused", refused},
    {"forked", forked},
    {"peer_killed", peer_killed},
    {"liar", liar},
    {"full_table", full_table},
    {"hostile", hostile},
};

/* Each in a process of its own, since a peer is forked before the first call. */
int main(int argc, char **argv)
{
  if (argc == 4 && !strcmp(argv[1], "plain")) {
    role = "plain peer";
    CHECK(!getenv("LD_PRELOAD"));
    use_all((struct pair){0, atoi(argv[2]), atoi(argv[3])});
    return 0;
  }
  for (int at = 1; at < argc; at++) {
    size_t i = 0, n = sizeof scenarios / sizeof *scenarios;
    while (i < n && strcmp(scenarios[i].name, argv[at]) != 0) i++;
    CHECK(i < n);
    if (argc == 2) {
      alarm(100);
      scenarios[i].run();
      continue;
    }
    int status = 0;
    pid_t child = fork();
    if (!child) {
      execl("/proc/self/exe", argv[0], argv[at], NULL);
      _exit(127);
    }
    CHECK(waitpid(child, &status, 0) == child);
    if (status) return fprintf(stderr, "ipc: %s failed\n", argv[at]), 1;
  }
  printf("good\n");
  return argc < 2;
}
