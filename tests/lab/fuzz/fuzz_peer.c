/* SPDX-License-Identifier: MIT */
/* fuzz_peer.c: the messages about handles of mapped memory (plugins/common/peer_socket.h): what a process of the same user sends to
 * the socket, and what one answers to whoever opens a handle. Every field and every length may have any value, and a message any
 * number of descriptors. The first byte picks the direction and what is sound about the message. Nothing but an honest request
 * gets a descriptor, and no descriptor is left. */
#include "fuzz.h"
#include <hipmm/hipmm.h>
#include <hipmm/share.h>

#include "../../../plugins/common/share_handle.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

enum { MOST_BYTES = 8000, MOST_FILES = 100, BLOCK_BYTES = 3 << 20 };

/* What the liar answers, in memory that both processes have. */
static struct {
  struct peer_identity self;
  size_t bytes;
  unsigned n_files;
  unsigned char message[MOST_BYTES];
} * shared;

static struct hipmm_share_pointer sound;
static char folder[] = "/tmp/hipmm-fuzz-XXXXXX";
static struct sockaddr_un owner = {.sun_family = AF_UNIX};
static int device_file; /* of the software device: a chunk of 4 MiB */
static struct hipmm_resource *device;
static unsigned n_files_before;

/* Sockets and memory. libFuzzer has other files, which come and go. */
static unsigned count_files(void)
{
  unsigned n = 0;
  char path[300], target[16];
  DIR *entries = opendir("/proc/self/fd");
  FUZZ_REQUIRE(entries);
  for (struct dirent *entry; (entry = readdir(entries));) {
    snprintf(path, sizeof path, "/proc/self/fd/%s", entry->d_name);
    ssize_t length = readlink(path, target, sizeof target);
    n += length >= 7 && (!memcmp(target, "socket:", 7) || !memcmp(target, "/memfd:", 7));
  }
  closedir(entries);
  return n;
}

static bool send_with_files(int socket, const void *data, size_t bytes, int file, unsigned n_files)
{
  static union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(MOST_FILES * sizeof(int))];
  } control;
  struct iovec part = {(void *)(uintptr_t)data, bytes};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  control.header =
      (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(n_files * sizeof(int))};
  for (unsigned i = 0; i < n_files; i++) memcpy(CMSG_DATA(&control.header) + i * sizeof file, &file, sizeof file);
  if (n_files) message.msg_control = &control, message.msg_controllen = CMSG_SPACE(n_files * sizeof(int));
  return sendmsg(socket, &message, MSG_NOSIGNAL) == (ssize_t)bytes;
}

/* ---- A process that lies ---- */

static uint32_t start_of_this_process(void)
{
  char text[1024] = {0};
  FILE *file = fopen("/proc/self/stat", "r");
  FUZZ_REQUIRE(file && fread(text, 1, sizeof text - 1, file) > 0);
  fclose(file);
  const char *at = strrchr(text, ')');
  for (int i = 0; i < 20; i++) at = strchr(at + 1, ' ');
  return (uint32_t)strtoull(at, NULL, 10);
}

static void lie(int ready)
{
  char request[64], path[64];
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  shared->self = (struct peer_identity){.process = getpid(), .start = start_of_this_process(), .nonce = 7};
  snprintf(path, sizeof path, "%s/hipmm", folder);
  FUZZ_REQUIRE(!mkdir(path, 0700));
  snprintf(address.sun_path, sizeof address.sun_path, "%s/%d-%016x", path, (int)getpid(), 7);
  int listener = socket(AF_UNIX, SOCK_SEQPACKET, 0), file = memfd_create("lie", 0);
  FUZZ_REQUIRE(!bind(listener, (struct sockaddr *)&address, sizeof address) && !listen(listener, 5));
  FUZZ_REQUIRE(!ftruncate(file, 4 << 20) && write(ready, "", 1) == 1);
  for (int client; (client = accept(listener, NULL, NULL)) >= 0; close(client))
    if (recv(client, request, sizeof request, 0) > 0)
      send_with_files(client, shared->message, shared->bytes, file, shared->n_files);
  _exit(1);
}

static void start_liar(void)
{
  int ends[2];
  char one;
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  FUZZ_REQUIRE(shared != MAP_FAILED && mkdtemp(folder) && !setenv("XDG_RUNTIME_DIR", folder, 1) && !pipe(ends));
  pid_t child = fork();
  FUZZ_REQUIRE(child >= 0);
  if (!child) lie(ends[1]);
  FUZZ_REQUIRE(read(ends[0], &one, 1) == 1);
  close(ends[0]), close(ends[1]);
}

static void remove_folder(void)
{
  char command[100];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  if (system(command)) perror(command);
}

/* ---- An owner ---- */

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
  static const char graph[] =
      "{\"runtime\": \"software\", \"stack\": [{\"type\": \"pool\", \"exportable\": true}, \"device\"]}";
  void *ptr;
  struct share_handle handle;
  struct hipmm_share_block block;
  struct hipmm_share_part part;
  (void)argc, (void)argv;
  start_liar();
  atexit(remove_folder);
  FUZZ_REQUIRE(!hipmm_init_from_string(graph) && !hipmm_allocate(NULL, BLOCK_BYTES, NULL, &ptr));
  FUZZ_REQUIRE(!hipmm_share_export_pointer(NULL, ptr, &sound));
  FUZZ_REQUIRE(!hipmm_share_export_block(NULL, ptr, &block, &part, 1));
  FUZZ_REQUIRE(!hipmm_resource_create(0, "device", NULL, NULL, 0, &device));
  device_file = part.fd;
  memcpy(&handle, sound.data, sizeof handle);
  snprintf(owner.sun_path, sizeof owner.sun_path, "%s/hipmm/%d-%016llx", folder, (int)handle.owner.process,
           (unsigned long long)handle.owner.nonce);
  n_files_before = count_files();
  return 0;
}

/* ---- Messages ---- */

/* Some messages have a sound header, since others are refused by it. Returns the size. */
static size_t make_message(struct fuzz_input *input, uint8_t sound_parts, unsigned char message[MOST_BYTES])
{
  uint16_t bytes;
  struct peer_header header = {.magic = PEER_MAGIC, .version = PEER_VERSION, .kind = PEER_BLOCK};
  fuzz_take(input, &bytes, sizeof bytes);
  fuzz_take(input, message, MOST_BYTES);
  size_t all = bytes % MOST_BYTES;
  if (sound_parts & 2 && all >= sizeof header) {
    header.bytes = (uint32_t)(all - sizeof header);
    memcpy(message, &header, sizeof header);
  }
  return all;
}

/* The answer to a client. The socket closes after it. */
static void ask(struct fuzz_input *input, uint8_t sound_parts)
{
  static unsigned char message[MOST_BYTES];
  static struct peer_message answer;
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(MOST_FILES * sizeof(int))];
  } control;
  struct iovec part = {&answer, sizeof answer};
  struct msghdr received = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  uint8_t n_files;
  struct share_handle handle;
  fuzz_take(input, &n_files, 1);
  size_t bytes = make_message(input, sound_parts, message);
  memcpy(&handle, sound.data, sizeof handle);
  int file = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  FUZZ_REQUIRE(!connect(file, (const struct sockaddr *)&owner, sizeof owner));
  if (bytes && send_with_files(file, message, bytes, file, n_files % MOST_FILES)) {
    ssize_t came = recvmsg(file, &received, MSG_CMSG_CLOEXEC);
    bool is_honest = bytes == sizeof(struct peer_header) + sizeof handle.id &&
                     !memcmp(message + sizeof(struct peer_header), &handle.id, sizeof handle.id);
    bool is_served = came >= (ssize_t)sizeof answer.header && !answer.header.is_refused;
    FUZZ_REQUIRE(!is_served || is_honest);
    struct cmsghdr *header = came > 0 ? CMSG_FIRSTHDR(&received) : NULL;
    FUZZ_REQUIRE(!header == !is_served);
    if (header) {
      int got;
      memcpy(&got, CMSG_DATA(header), sizeof got);
      FUZZ_REQUIRE(header->cmsg_len == CMSG_LEN(sizeof got));
      close(got);
    }
  }
  close(file);
}

/* A handle that leads to the liar. Its descriptors are no memory of the device, so nothing is ever imported. */
static void open_handle(struct fuzz_input *input, uint8_t sound_parts)
{
  struct hipmm_share_pointer pointer = sound;
  struct share_handle handle;
  struct share_answer answer = {.block = {.bytes = BLOCK_BYTES, .n_parts = 1}, .part_bytes = {4 << 20}};
  uint8_t n_files;
  void *ptr = NULL;
  fuzz_take(input, &n_files, 1);
  shared->bytes = make_message(input, sound_parts, shared->message);
  if (sound_parts & 4) { /* an answer that is sound but for a word */
    uint8_t word;
    uint64_t value;
    struct peer_header header = {
        .magic = PEER_MAGIC, .version = PEER_VERSION, .kind = PEER_BLOCK, .bytes = sizeof answer};
    fuzz_take(input, &word, 1);
    fuzz_take(input, &value, sizeof value);
    memcpy((unsigned char *)&answer + word % 5 * sizeof value, &value, sizeof value);
    memcpy(shared->message, &header, sizeof header);
    memcpy(shared->message + sizeof header, &answer, sizeof answer);
    shared->bytes = sizeof header + sizeof answer;
  }
  shared->n_files = n_files % MOST_FILES;
  if (!shared->bytes) shared->bytes = 1;
  memcpy(&handle, pointer.data, sizeof handle);
  handle.owner = shared->self;
  if (sound_parts & 8) fuzz_take(input, (char *)&handle + 24, sizeof handle - 24);
  if (sound_parts & 16) fuzz_take(input, &handle, sizeof handle);
  pointer.bytes = handle.bytes;
  memcpy(pointer.data, &handle, sizeof handle);
  FUZZ_REQUIRE(hipmm_share_import_pointer(device, &pointer, &ptr) && !ptr);
}

/* The thread behind the socket closes what a client sent after the client went on. */
static void require_no_file_is_left(void)
{
  int i = 0;
  while (count_files() > n_files_before && i < 1000) usleep(1000), i++;
  FUZZ_REQUIRE(i < 1000);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
  struct fuzz_input input = {data, data + bytes};
  uint8_t parts;
  fuzz_take(&input, &parts, 1);
  (parts & 1 ? open_handle : ask)(&input, parts);
  require_no_file_is_left();
  return 0;
}
