/* SPDX-License-Identifier: MIT */
/* ucx.c: UCX's calls for a pointer that a program gives it, in UCX's order, and those of another process that gets the key: what
 * the memory is, how much of it there is, a dma-buf for the network card, a handle for other processes, and data both ways. Of
 * mapped memory UCX exports fabric handles and others, as NCCL, file descriptors: those are taken here. Knows nothing of hipmm.
 *
 *     ucx LIBRARY [BYTES…]        the driver of NVIDIA (libcuda.so.1) or a HIP runtime (libamdhip64.so.7)
 *
 * Prints what each call answered, and "good" at the end. "wrong: …" and status 1 if a handle shows another process anything but
 * the block, if blocks have one id, or if an answer contradicts another one. A call that is refused is no error. */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
  CONTEXT = 1,
  MEMORY_TYPE = 2,
  BUFFER_ID = 7,
  IS_MANAGED = 8,
  ORDINAL = 9,
  LEGACY_IPC = 10,
  HANDLE_TYPES = 14,
  POOL = 17
};
enum { DEVICE_LOCATION = 1, POSIX_FD = 1, DMA_BUF = 1, READ_WRITE = 3, LAZY_PEER_ACCESS = 1, BY_ADDRESS = 4 };

struct properties {
  int type, handle_types, location, device;
  void *security;
  unsigned char flags[8];
};

struct access {
  int location, device, flags;
};

struct ipc_handle {
  char reserved[64];
};

/* clang-format off */
#define FUNCTIONS(X)                                                                                                    \
  X(init, "cuInit", "hipInit", (unsigned flags))                                                                        \
  X(version, "cuDriverGetVersion", "hipRuntimeGetVersion", (int *version))                                              \
  X(retain_context, "cuDevicePrimaryCtxRetain", NULL, (void **context, int device))              \
  X(set_context, "cuCtxSetCurrent", NULL, (void *context))                                                \
  X(synchronize, "cuCtxSynchronize", "hipDeviceSynchronize", (void))                                                    \
  X(allocate, "cuMemAlloc_v2", "hipMalloc", (char **ptr, size_t bytes))                                                 \
  X(deallocate, "cuMemFree_v2", "hipFree", (char *ptr))                                                                 \
  X(copy, "cuMemcpy", "hipMemcpy", (void *to, const void *from, size_t bytes, int kind)) /* CUDA has no kind */            \
  X(range_of, "cuMemGetAddressRange_v2", "hipMemGetAddressRange", (char **base, size_t *bytes, char *ptr))              \
  X(attribute, "cuPointerGetAttribute", "hipPointerGetAttribute", (void *value, int attribute, char *ptr))              \
  X(attributes, "cuPointerGetAttributes", "hipDrvPointerGetAttributes",                                                 \
    (unsigned count, int *attributes, void **values, char *ptr))                                                        \
  X(ipc_get, "cuIpcGetMemHandle", "hipIpcGetMemHandle", (struct ipc_handle *handle, char *ptr))                         \
  X(ipc_open, "cuIpcOpenMemHandle_v2", "hipIpcOpenMemHandle", (char **ptr, struct ipc_handle handle, unsigned flags))   \
  X(ipc_close, "cuIpcCloseMemHandle", "hipIpcCloseMemHandle", (char *ptr))                                              \
  X(retain, "cuMemRetainAllocationHandle", "hipMemRetainAllocationHandle", (void **handle, char *ptr))                  \
  X(properties_of, "cuMemGetAllocationPropertiesFromHandle", NULL, /* differs between releases */ \
    (struct properties *properties, void *handle))                                                                      \
  X(release, "cuMemRelease", "hipMemRelease", (void *handle))                                                           \
  X(export, "cuMemExportToShareableHandle", "hipMemExportToShareableHandle",                                            \
    (int *fd, void *handle, int type, unsigned long long flags))                                                        \
  X(import, "cuMemImportFromShareableHandle", "hipMemImportFromShareableHandle", (void **handle, void *fd, int type))   \
  X(reserve, "cuMemAddressReserve", "hipMemAddressReserve",                                                             \
    (char **ptr, size_t bytes, size_t alignment, void *wanted, unsigned long long flags))                               \
  X(map, "cuMemMap", "hipMemMap", (char *ptr, size_t bytes, size_t offset, void *handle, unsigned long long flags))     \
  X(set_access, "cuMemSetAccess", "hipMemSetAccess", (char *ptr, size_t bytes, const struct access *access, size_t n))  \
  X(dma_buf, "cuMemGetHandleForAddressRange", "hipMemGetHandleForAddressRange",                                         \
    (int *fd, char *ptr, size_t bytes, int type, unsigned long long flags))
/* clang-format on */

static struct {
#define MEMBER(name, cuda, hip, parameters) int(*name) parameters;
  FUNCTIONS(MEMBER)
} driver;

static int failures, device_memory = 2; /* the type of memory, as the runtime numbers it */
static bool takes_address;              /* of a descriptor, as older releases of HIP */

static void wrong(const char *format, ...)
{
  va_list values;
  va_start(values, format);
  printf("wrong: ");
  vprintf(format, values);
  printf("\n");
  va_end(values);
  failures++;
}

static void need(const char *what, int code)
{
  if (!code) return;
  fprintf(stderr, "ucx: %s: error %d\n", what, code);
  exit(2);
}

static void *find(void *library, const char *name)
{
  return name ? dlsym(library, name) : NULL;
}

/* Functions that a release lacks stay NULL: UCX does without. */
static void load(const char *name)
{
  void *library = dlopen(name, RTLD_NOW), *context = NULL;
  bool is_cuda = strstr(name, "libcuda") != NULL;
  if (!library) fprintf(stderr, "ucx: %s\n", dlerror()), exit(77);
#define LOAD(member, cuda, hip, parameters) *(void **)&driver.member = find(library, is_cuda ? cuda : hip);
  FUNCTIONS(LOAD)
  if (!driver.init || driver.init(0)) fprintf(stderr, "ucx: %s has no device\n", name), exit(77);
  if (!is_cuda) {
    int version = 0;
    need("the runtime's version", driver.version(&version));
    if (version < 60000000) device_memory = 1;
    takes_address = version < 70100000;
    return;
  }
  need("the device's context", driver.retain_context(&context, 0));
  need("the device's context", driver.set_context(context));
}

static void write_pattern(unsigned char *bytes, size_t n, unsigned seed)
{
  for (size_t i = 0; i < n; i++) bytes[i] = (unsigned char)(i * 31 + (i >> 12) * 7 + seed);
}

static void put(char *ptr, size_t n, unsigned seed)
{
  unsigned char *bytes = malloc(n);
  write_pattern(bytes, n, seed);
  need("a copy to the device", driver.copy(ptr, bytes, n, BY_ADDRESS));
  need("the end of a copy", driver.synchronize());
  free(bytes);
}

static bool has(const char *ptr, size_t n, unsigned seed)
{
  unsigned char *found = malloc(2 * n), *expected = found + n;
  write_pattern(expected, n, seed);
  bool is_equal = !driver.copy(found, ptr, n, BY_ADDRESS) && !memcmp(found, expected, n);
  free(found);
  return is_equal;
}

/* ---- The key, and the other process ---- */

enum way { NO_WAY, LEGACY, DESCRIPTOR };
static const char *const ways[] = {"none", "legacy", "descriptor"};

struct key {
  enum way way;
  size_t range_bytes, offset, bytes; /* offset: of the block in the range */
  struct ipc_handle handle;
  unsigned seed;
};

static void send_key(int to, struct key *key, int fd)
{
  char control[CMSG_SPACE(sizeof fd)] = {0};
  struct iovec part = {key, sizeof *key};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  if (fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    *header = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof fd)};
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
  }
  need("a message to the other process", sendmsg(to, &message, 0) != sizeof *key);
}

static bool receive_key(int from, struct key *key, int *fd)
{
  char control[CMSG_SPACE(sizeof *fd)];
  struct iovec part = {key, sizeof *key};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  if (recvmsg(from, &message, MSG_CMSG_CLOEXEC) != sizeof *key) return false;
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  if (header) memcpy(fd, CMSG_DATA(header), sizeof *fd);
  return true;
}

/* The range that the key is of, as the other process sees it. */
static int open_key(const struct key *key, int fd, char **range)
{
  struct access access = {DEVICE_LOCATION, 0, READ_WRITE};
  void *handle;
  size_t granule = (size_t)2 << 20, bytes = (key->range_bytes + granule - 1) / granule * granule;
  if (key->way == LEGACY) return driver.ipc_open(range, key->handle, LAZY_PEER_ACCESS);
  int code = driver.import(&handle, takes_address ? (void *)&fd : (void *)(intptr_t)fd, POSIX_FD);
  if (!code) code = driver.reserve(range, bytes, granule, NULL, 0);
  if (!code) code = driver.map(*range, bytes, 0, handle, 0);
  if (!code) code = driver.set_access(*range, bytes, &access, 1);
  return code;
}

/* Answers with 0 if the block is what the key says, and writes into it; else with an error, or -1 for other data. */
static int other_process(const char *library, int socket)
{
  struct key key;
  int fd = -1;
  load(library);
  while (receive_key(socket, &key, &fd)) {
    char *range = NULL;
    int code = open_key(&key, fd, &range);
    if (!code && !has(range + key.offset, key.bytes, key.seed)) code = -1;
    if (!code) put(range + key.offset, key.bytes, key.seed + 1);
    if (range && key.way == LEGACY) driver.ipc_close(range);
    need("an answer", write(socket, &code, sizeof code) != sizeof code);
  }
  return 0;
}

/* ---- UCX ---- */

/* uct_cuda_copy_md_query_attributes(). */
static bool query(char *ptr)
{
  struct properties found = {0};
  void *handle, *context = NULL;
  int types[] = {MEMORY_TYPE, IS_MANAGED, ORDINAL, CONTEXT}, type = 0, managed = 0, device = -1;
  void *values[] = {&type, &managed, &device, &context};
  bool is_mapped = driver.retain && !driver.retain(&handle, ptr);
  if (is_mapped) {
    if (driver.properties_of && driver.properties_of(&found, handle)) wrong("the handle has no properties");
    if (driver.properties_of && (found.location != DEVICE_LOCATION || found.device))
      wrong("memory of device %d", found.device);
    driver.release(handle);
  } else {
    int code = driver.attributes(4, types, values, ptr);
    if (code || type != device_memory || managed || device)
      wrong("error %d, memory %d of device %d", code, type, device);
  }
  printf(" mapped=%s", is_mapped ? "yes" : "no");
  return is_mapped;
}

/* uct_cuda_copy_md_get_dmabuf_fd(), for whole pages. */
static void query_dma_buf(char *ptr, size_t bytes)
{
  size_t page = 4096, whole = (bytes + page - 1) / page * page;
  int fd = -1;
  if (!driver.dma_buf) return;
  int code = driver.dma_buf(&fd, ptr, whole, DMA_BUF, 0);
  off_t size = code ? 0 : lseek(fd, 0, SEEK_END);
  printf(" dma_buf=%d", code);
  if (!code && size >= 0 && (size_t)size < bytes) wrong("a dma-buf of %lld bytes for %zu", (long long)size, bytes);
  if (!code) close(fd);
}

static uint64_t id_of(char *ptr)
{
  uint64_t id = 0;
  if (driver.attribute(&id, BUFFER_ID, ptr) || !id) wrong("no id of the buffer");
  return id;
}

/* uct_cuda_ipc_mem_add_reg(). Returns a descriptor, or -1. */
static int pack(struct key *key, char *ptr, bool is_mapped)
{
  int types[] = {LEGACY_IPC, HANDLE_TYPES, POOL}, legacy = 0, fd = -1;
  uint64_t handle_types = 0;
  void *pool = NULL, *values[] = {&legacy, &handle_types, &pool}, *handle;
  if (driver.attributes(3, types, values, ptr)) wrong("no attributes of handles");
  printf(" legacy=%d types=%llu", legacy, (unsigned long long)handle_types);
  if (!driver.ipc_get(&key->handle, ptr)) {
    key->way = LEGACY;
  } else if (driver.export && driver.retain && !driver.retain(&handle, ptr)) {
    if (!driver.export(&fd, handle, POSIX_FD, 0)) key->way = DESCRIPTOR;
    driver.release(handle);
  }
  if (legacy && key->way != LEGACY) wrong("no handle of memory that is said to have them");
  if (is_mapped && !legacy && key->way == LEGACY)
    wrong("UCX asks for no such handle of memory that is said to have none");
  return fd;
}

static void share(int other, struct key *key, char *ptr, int fd)
{
  int answer = -1;
  if (key->offset + key->bytes > key->range_bytes) wrong("the handle is of %zu bytes only", key->range_bytes);
  put(ptr, key->bytes, key->seed);
  send_key(other, key, fd);
  if (read(other, &answer, sizeof answer) != sizeof answer) wrong("the other process has ended");
  printf(" opened=%d", answer);
  if (answer == -1) wrong("the other process finds other data");
  if (!has(ptr, key->bytes, key->seed + !answer)) wrong("the data is not what was written last");
}

static void look_at(int other, char *ptr, size_t bytes)
{
  struct key key = {.bytes = bytes, .seed = (unsigned)bytes + 5};
  char *base = NULL;
  printf("bytes=%zu", bytes);
  bool is_mapped = query(ptr);
  need("the range of the address", driver.range_of(&base, &key.range_bytes, ptr));
  key.offset = (size_t)(ptr - base);
  bool is_whole = base <= ptr && key.offset + bytes <= key.range_bytes;
  printf(" range=%zu+%zu", key.offset, key.range_bytes);
  if (!is_whole && !is_mapped) wrong("the range ends before the block");
  query_dma_buf(ptr, bytes);
  int fd = pack(&key, ptr, is_mapped);
  printf(" way=%s", ways[key.way]);
  if (key.way != NO_WAY) share(other, &key, ptr, fd);
  if (fd >= 0) close(fd);
  printf("\n");
}

static void try_size(int other, size_t bytes)
{
  char *blocks[2], *again;
  for (int i = 0; i < 2; i++) need("an allocation", driver.allocate(&blocks[i], bytes));
  if (id_of(blocks[0]) == id_of(blocks[1])) wrong("two blocks have one id");
  if (id_of(blocks[1]) != id_of(blocks[1] + bytes - 1)) wrong("a block has two ids");
  for (int i = 0; i < 2; i++) look_at(other, blocks[i], bytes);
  uint64_t before = id_of(blocks[1]);
  need("a free", driver.deallocate(blocks[1]));
  need("an allocation", driver.allocate(&again, bytes));
  if (again == blocks[1] && id_of(again) == before) wrong("a new block has the id of one that was freed");
  look_at(other, again, bytes);
  need("a free", driver.deallocate(blocks[0]));
  need("a free", driver.deallocate(again));
}

int main(int argc, char **argv)
{
  int ends[2], status;
  char number[16];
  if (argc < 2) return fprintf(stderr, "usage: ucx LIBRARY [BYTES…]\n"), 2;
  if (argc == 4 && !strcmp(argv[1], "--other")) return other_process(argv[2], atoi(argv[3]));
  need("a pair of sockets", socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends));
  pid_t child = fork(); /* before the driver is used */
  if (!child) {
    close(ends[0]);
    snprintf(number, sizeof number, "%d", ends[1]);
    execl("/proc/self/exe", argv[0], "--other", argv[1], number, NULL);
    _exit(2);
  }
  close(ends[1]);
  load(argv[1]);
  for (int i = 2; i < argc; i++) try_size(ends[0], strtoull(argv[i], NULL, 0));
  if (argc == 2) try_size(ends[0], 4096), try_size(ends[0], 3 << 20), try_size(ends[0], (size_t)200 << 20);
  close(ends[0]);
  waitpid(child, &status, 0);
  if (status) wrong("the other process ended with status %d", status);
  if (!failures) printf("good\n");
  return failures != 0;
}
