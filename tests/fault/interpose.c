/* SPDX-License-Identifier: MIT */
/* interpose.c: see interpose.h. Each function finds the next definition, which is a sanitizer's or libc's, when it
 * is first called; until then dlsym() itself may allocate, from a small array. */
#include "interpose.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST_RANGES = 32, MOST_FRAMES = 24, MOST_FILES = 64 };

/* Code that is left out. */
static struct {
  uintptr_t first, end;
} ranges[MOST_RANGES];
static size_t n_ranges;

static atomic_bool is_counting;
static atomic_int counted_kind; /* enum interpose_kind */
static _Thread_local bool is_counted_thread;
static _Atomic uint64_t n_calls, failing_call;
static atomic_int failure_code;
static atomic_bool lasts; /* all calls after the nth fail too */
static const char *_Atomic failed_call;
static void *failed_frames[MOST_FRAMES];
static int n_failed_frames;
static _Atomic int64_t live_blocks, mapped_bytes;

static bool interpose_leaves_out(const void *caller)
{
  for (size_t i = 0; i < n_ranges; i++)
    if ((uintptr_t)caller - ranges[i].first < ranges[i].end - ranges[i].first) return true;
  return false;
}

/* The errno that the call is to fail with; 0: it is to be done. */
static int interpose_code(enum interpose_kind kind, const char *name, const void *caller)
{
  if (!atomic_load(&is_counting) || counted_kind != (int)kind) return 0;
  if ((kind == INTERPOSE_MEMORY && !is_counted_thread) || interpose_leaves_out(caller)) return 0;
  uint64_t call = atomic_fetch_add(&n_calls, 1) + 1, failing = atomic_load(&failing_call);
  if (call != failing && !(lasts && failing && call > failing)) return 0;
  atomic_store(&failed_call, name);
  if (getenv("HIPMM_TEST_PLACE")) n_failed_frames = backtrace(failed_frames, MOST_FRAMES);
  errno = failure_code;
  int code = failure_code;
  if (code == INTERPOSE_FILLED) {
    failure_code = ENOSPC;
    atomic_fetch_add(&failing_call, 1);
  }
  return code;
}

#define NEXT(name)                 \
  static __typeof__(&(name)) next; \
  if (!next) next = (__typeof__(next))(uintptr_t)dlsym(RTLD_NEXT, #name)
#define CODE(kind, name) interpose_code(kind, name, __builtin_return_address(0))

#pragma GCC visibility push(default) /* for the libraries and plugins; linked with -export-dynamic */

/* ---- Memory ---- */

/* A sanitizer's malloc is needed before code that it watches can run: there only mappings and threads are counted. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/* For dlsym() while it looks for malloc. Never freed. */
static _Alignas(16) char early[4096];
static size_t early_bytes;
static _Thread_local bool is_looking;

static void *interpose_early(size_t bytes)
{
  void *ptr = early + early_bytes;
  early_bytes += (bytes + 15) & ~(size_t)15;
  return early_bytes <= sizeof early ? ptr : NULL;
}

static bool interpose_is_early(const void *ptr)
{
  return (uintptr_t)ptr - (uintptr_t)early < sizeof early;
}

#define FIND(name)                                               \
  static __typeof__(&(name)) next;                               \
  if (!next && !is_looking) {                                    \
    is_looking = true;                                           \
    next = (__typeof__(next))(uintptr_t)dlsym(RTLD_NEXT, #name); \
    is_looking = false;                                          \
  }

/* Blocks of the parts that are left out are balanced too. */
static void *interpose_count(void *ptr)
{
  if (ptr) atomic_fetch_add_explicit(&live_blocks, 1, memory_order_relaxed);
  return ptr;
}

void *malloc(size_t bytes)
{
  FIND(malloc);
  if (!next) return interpose_early(bytes);
  return CODE(INTERPOSE_MEMORY, "malloc") ? NULL : interpose_count(next(bytes));
}

void *calloc(size_t n, size_t bytes)
{
  FIND(calloc);
  if (!next) return interpose_early(n * bytes);
  return CODE(INTERPOSE_MEMORY, "calloc") ? NULL : interpose_count(next(n, bytes));
}

void free(void *ptr)
{
  FIND(free);
  if (!ptr || interpose_is_early(ptr) || !next) return;
  atomic_fetch_sub_explicit(&live_blocks, 1, memory_order_relaxed);
  next(ptr);
}

static void *interpose_resize(void *ptr, size_t bytes)
{
  FIND(realloc);
  if (interpose_is_early(ptr)) {
    void *moved = malloc(bytes);
    size_t known = (size_t)(early + sizeof early - (char *)ptr);
    return moved ? memcpy(moved, ptr, bytes < known ? bytes : known) : NULL;
  }
  void *resized = next(ptr, bytes);
  if (!ptr) return interpose_count(resized);
  if (!bytes && !resized) atomic_fetch_sub_explicit(&live_blocks, 1, memory_order_relaxed);
  return resized;
}

void *realloc(void *ptr, size_t bytes)
{
  return bytes && CODE(INTERPOSE_MEMORY, "realloc") ? NULL : interpose_resize(ptr, bytes);
}

void *reallocarray(void *ptr, size_t n, size_t bytes)
{
  size_t product;
  if (__builtin_mul_overflow(n, bytes, &product)) {
    errno = ENOMEM;
    return NULL;
  }
  return product && CODE(INTERPOSE_MEMORY, "reallocarray") ? NULL : interpose_resize(ptr, product);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
  NEXT(aligned_alloc);
  return CODE(INTERPOSE_MEMORY, "aligned_alloc") ? NULL : interpose_count(next(alignment, bytes));
}

void *memalign(size_t alignment, size_t bytes)
{
  NEXT(memalign);
  return CODE(INTERPOSE_MEMORY, "memalign") ? NULL : interpose_count(next(alignment, bytes));
}

int posix_memalign(void **ptr_out, size_t alignment, size_t bytes)
{
  NEXT(posix_memalign);
  int code = CODE(INTERPOSE_MEMORY, "posix_memalign");
  if (!code) code = next(ptr_out, alignment, bytes);
  if (!code) interpose_count(*ptr_out);
  return code;
}

#endif

/* The software device takes mappings apart, and is left out. */
void *mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset)
{
  NEXT(mmap);
  if (CODE(INTERPOSE_MEMORY, "mmap")) return MAP_FAILED;
  void *start = next(address, bytes, protection, flags, file, offset);
  if (start != MAP_FAILED && !interpose_leaves_out(__builtin_return_address(0)))
    atomic_fetch_add(&mapped_bytes, (int64_t)bytes);
  return start;
}

int munmap(void *address, size_t bytes)
{
  NEXT(munmap);
  if (!interpose_leaves_out(__builtin_return_address(0))) atomic_fetch_sub(&mapped_bytes, (int64_t)bytes);
  return next(address, bytes);
}

int mprotect(void *address, size_t bytes, int protection)
{
  NEXT(mprotect);
  return CODE(INTERPOSE_MEMORY, "mprotect") ? -1 : next(address, bytes, protection);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
  NEXT(pthread_create);
  return CODE(INTERPOSE_MEMORY, "pthread_create") ? EAGAIN : next(thread, attributes, run, argument);
}

/* ---- Files ---- */

int open(const char *name, int flags, ...)
{
  NEXT(open);
  va_list arguments;
  va_start(arguments, flags);
  mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return CODE(INTERPOSE_FILES, "open") > 0 ? -1 : next(name, flags, mode);
}

int openat(int folder, const char *name, int flags, ...)
{
  NEXT(openat);
  va_list arguments;
  va_start(arguments, flags);
  mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return CODE(INTERPOSE_FILES, "openat") > 0 ? -1 : next(folder, name, flags, mode);
}

FILE *fopen(const char *name, const char *mode)
{
  NEXT(fopen);
  return CODE(INTERPOSE_FILES, "fopen") > 0 ? NULL : next(name, mode);
}

ssize_t write(int file, const void *data, size_t bytes)
{
  NEXT(write);
  int code = CODE(INTERPOSE_FILES, "write");
  return code > 0 ? -1 : next(file, data, code ? (bytes + 1) / 2 : bytes);
}

ssize_t pwrite(int file, const void *data, size_t bytes, off_t offset)
{
  NEXT(pwrite);
  int code = CODE(INTERPOSE_FILES, "pwrite");
  return code > 0 ? -1 : next(file, data, code ? (bytes + 1) / 2 : bytes, offset);
}

ssize_t read(int file, void *data, size_t bytes)
{
  NEXT(read);
  int code = CODE(INTERPOSE_FILES, "read");
  return code > 0 ? -1 : next(file, data, code ? (bytes + 1) / 2 : bytes);
}

ssize_t pread(int file, void *data, size_t bytes, off_t offset)
{
  NEXT(pread);
  int code = CODE(INTERPOSE_FILES, "pread");
  return code > 0 ? -1 : next(file, data, code ? (bytes + 1) / 2 : bytes, offset);
}

int ftruncate(int file, off_t bytes)
{
  NEXT(ftruncate);
  return CODE(INTERPOSE_FILES, "ftruncate") > 0 ? -1 : next(file, bytes);
}

int posix_fallocate(int file, off_t offset, off_t bytes)
{
  NEXT(posix_fallocate);
  int code = CODE(INTERPOSE_FILES, "posix_fallocate");
  return code > 0 ? code : next(file, offset, bytes);
}

int rename(const char *from, const char *to)
{
  NEXT(rename);
  return CODE(INTERPOSE_FILES, "rename") > 0 ? -1 : next(from, to);
}

#pragma GCC visibility pop

/* ---- Steering ---- */

static int interpose_add_library(struct dl_phdr_info *info, size_t bytes, void *closure)
{
  static const char *const names[] = {"/ld-linux", "/software.so", "/libasan", "/libtsan", "/libubsan"};
  (void)bytes, (void)closure;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (!strstr(info->dlpi_name, names[i])) continue;
    for (int j = 0; j < info->dlpi_phnum && n_ranges < MOST_RANGES; j++) {
      const ElfW(Phdr) *part = &info->dlpi_phdr[j];
      if (part->p_type != PT_LOAD || !(part->p_flags & PF_X)) continue;
      ranges[n_ranges].first = info->dlpi_addr + part->p_vaddr;
      ranges[n_ranges++].end = info->dlpi_addr + part->p_vaddr + part->p_memsz;
    }
  }
  return 0;
}

void interpose_prepare(void)
{
  n_ranges = 0;
  dl_iterate_phdr(interpose_add_library, NULL);
}

void interpose_begin_lasting(enum interpose_kind kind, uint64_t nth, int code)
{
  interpose_begin(kind, nth, code);
  lasts = true;
}

void interpose_begin(enum interpose_kind kind, uint64_t nth, int code)
{
  lasts = false;
  counted_kind = (int)kind;
  failure_code = code;
  atomic_store(&n_calls, 0);
  atomic_store(&failing_call, nth);
  atomic_store(&failed_call, NULL);
  is_counted_thread = true;
  atomic_store(&is_counting, true);
}

uint64_t interpose_end(void)
{
  atomic_store(&is_counting, false);
  is_counted_thread = false;
  return atomic_load(&n_calls);
}

bool interpose_has_failed(void)
{
  return atomic_load(&failed_call);
}

const char *interpose_failed_call(void)
{
  const char *name = atomic_load(&failed_call);
  return name ? name : "";
}

struct interpose_balance interpose_balance(void)
{
  struct interpose_balance balance = {.blocks = atomic_load(&live_blocks), .mapped_bytes = atomic_load(&mapped_bytes)};
  for (int i = 0; i < MOST_FILES; i++) balance.files += fcntl(i, F_GETFD) >= 0;
  return balance;
}

void interpose_print_place(void)
{
  backtrace_symbols_fd(failed_frames, n_failed_frames, STDERR_FILENO);
}
