/* SPDX-License-Identifier: MIT */
/* os_memory.c: see os_memory.h. The program may put functions of its own in place of the operating system, before there is
 * any such memory: what one gave cannot be freed by the other. */
#include "os_memory.h"
#include "cancel.h"
#include "error.h"
#include "lifecycle.h"
#include "lock_order.h"

#include <pthread.h>
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

static void *os_memory_ask(size_t bytes)
{
  const char *outer = lifecycle_bar(in_allocator, false);
  lock_order_enter_program();
  void *ptr = functions.allocate(functions.arg, bytes);
  lock_order_leave_program();
  lifecycle_unbar(outer);
  return ptr;
}

static void os_memory_return(void *ptr, size_t bytes)
{
  const char *outer = lifecycle_bar(in_allocator, false);
  lock_order_enter_program();
  functions.deallocate(functions.arg, ptr, bytes);
  lock_order_leave_program();
  lifecycle_unbar(outer);
}

/* ---- Either ---- */

void *os_memory_allocate(size_t bytes)
{
  if (!bytes) return NULL;
  int cancel = cancel_forbid();
  pthread_rwlock_rdlock(&lock);
  void *ptr = functions.allocate ? os_memory_ask(bytes) : os_memory_map(bytes);
  if (ptr) atomic_fetch_add(&held_bytes, bytes);
  pthread_rwlock_unlock(&lock);
  cancel_allow(cancel);
  return ptr;
}

/* While there is memory, the functions do not change. */
void os_memory_free(void *ptr, size_t bytes)
{
  if (!ptr) return;
  int cancel = cancel_forbid();
  if (functions.allocate)
    os_memory_return(ptr, bytes);
  else
    munmap(ptr, bytes);
  atomic_fetch_sub(&held_bytes, bytes);
  cancel_allow(cancel);
}

enum hipmm_status hipmm_host_allocator_set(const struct hipmm_host_allocator *allocator)
{
  enum hipmm_status status = HIPMM_OK;
  const struct hipmm_host_allocator none = {.struct_size = sizeof none};
  if (lifecycle_is_barred()) return lifecycle_check();
  if (allocator && allocator->struct_size < sizeof none)
    return error_set(HIPMM_E_ARGUMENT,
                     "struct_size of the allocator is %zu; set it to sizeof(struct "
                     "hipmm_host_allocator), %zu",
                     allocator->struct_size, sizeof none);
  if (allocator && (!allocator->allocate || !allocator->deallocate))
    return error_set(HIPMM_E_ARGUMENT, "%s is NULL", allocator->allocate ? "deallocate" : "allocate");
  pthread_rwlock_wrlock(&lock);
  if (atomic_load(&held_bytes))
    status = error_set(HIPMM_E_STATE, "hipmm holds host memory already; set the functions before anything else");
  else
    functions = allocator ? *allocator : none;
  pthread_rwlock_unlock(&lock);
  return status;
}
