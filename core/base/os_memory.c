/* SPDX-License-Identifier: MIT */
/* os_memory.c: see os_memory.h. The program may put functions of its own in place of the operating system, before there is
 * any such memory: what one gave cannot be freed by the other. */
#include "os_memory.h"
#include "error.h"
#include "lifecycle.h"
#include "lock_order.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER; /* held for writing while the functions change */
static struct hipmm_host_allocator functions;              /* allocate NULL: the operating system */
static atomic_size_t held_bytes;

static void *os_memory_map(size_t bytes)
{
  void *ptr = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return ptr == MAP_FAILED ? NULL : ptr;
}

/* ---- The program's functions, under any lock ---- */

static const char in_allocator[] = "the host allocator";

static void *os_memory_ask(const struct hipmm_host_allocator *allocator, size_t bytes)
{
  const char *outer = lifecycle_forbid_reentry(in_allocator);
  lock_order_enter_program();
  void *ptr = allocator->allocate(allocator->arg, bytes);
  lock_order_leave_program();
  lifecycle_allow_reentry(outer);
  return ptr;
}

static void os_memory_return(const struct hipmm_host_allocator *allocator, void *ptr, size_t bytes)
{
  const char *outer = lifecycle_forbid_reentry(in_allocator);
  lock_order_enter_program();
  allocator->deallocate(allocator->arg, ptr, bytes);
  lock_order_leave_program();
  lifecycle_allow_reentry(outer);
}

/* What is wrong with the memory that the functions give; NULL: nothing. Asks twice, since malloc() gives a block with zeros
 * first, and then one with what was written. */
static const char *os_memory_fault(const struct hipmm_host_allocator *allocator)
{
  enum { BYTES = 4096 };
  static const char zeros[BYTES];
  const char *fault = NULL;
  for (int i = 0; i < 2 && !fault; i++) {
    char *ptr = os_memory_ask(allocator, BYTES);
    if (!ptr) break;
    if (memcmp(ptr, zeros, BYTES) != 0) fault = "allocate gave memory that is not zeroed";
    if ((uintptr_t)ptr % BYTES) fault = "allocate gave memory that is not aligned to 4096 bytes";
    memset(ptr, 0xa5, BYTES);
    os_memory_return(allocator, ptr, BYTES);
  }
  return fault;
}

/* ---- Either ---- */

void *os_memory_allocate(size_t bytes)
{
  if (!bytes) return NULL;
  pthread_rwlock_rdlock(&lock);
  void *ptr = functions.allocate ? os_memory_ask(&functions, bytes) : os_memory_map(bytes);
  if (ptr) atomic_fetch_add(&held_bytes, bytes);
  pthread_rwlock_unlock(&lock);
  return ptr;
}

/* While there is memory, the functions do not change. */
void os_memory_free(void *ptr, size_t bytes)
{
  if (!ptr) return;
  if (functions.allocate)
    os_memory_return(&functions, ptr, bytes);
  else
    munmap(ptr, bytes);
  atomic_fetch_sub(&held_bytes, bytes);
}

static void *os_memory_serve(const struct hipmm_services *services, size_t bytes)
{
  (void)services;
  return os_memory_allocate(bytes);
}

static void os_memory_take_back(const struct hipmm_services *services, void *ptr, size_t bytes)
{
  (void)services;
  os_memory_free(ptr, bytes);
}

const struct hipmm_services os_memory_services = {.host_allocate = os_memory_serve, .host_free = os_memory_take_back};

static enum hipmm_status os_memory_check_held(void)
{
  if (!atomic_load(&held_bytes)) return HIPMM_OK;
  return error_set(HIPMM_E_STATE, "hipmm holds host memory already; set the functions before anything else");
}

/* Functions that come too late are not tried. */
enum hipmm_status hipmm_host_allocator_set(const struct hipmm_host_allocator *allocator)
{
  const struct hipmm_host_allocator none = {.struct_size = sizeof none};
  if (lifecycle_refuses_calls()) return lifecycle_check();
  if (allocator && allocator->struct_size < sizeof none)
    return error_set(HIPMM_E_ARGUMENT,
                     "struct_size of the allocator is %zu; set it to sizeof(struct "
                     "hipmm_host_allocator), %zu",
                     allocator->struct_size, sizeof none);
  if (allocator && (!allocator->allocate || !allocator->deallocate))
    return error_set(HIPMM_E_ARGUMENT, "%s is NULL", allocator->allocate ? "deallocate" : "allocate");
  enum hipmm_status status = os_memory_check_held();
  if (status) return status;
  const char *fault = allocator ? os_memory_fault(allocator) : NULL;
  if (fault) return error_set(HIPMM_E_ARGUMENT, "%s; it returns what mmap() would", fault);
  pthread_rwlock_wrlock(&lock);
  status = os_memory_check_held();
  if (!status) functions = allocator ? *allocator : none;
  pthread_rwlock_unlock(&lock);
  return status;
}
