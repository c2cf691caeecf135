/* SPDX-License-Identifier: MIT */
/* stack_list.c: all stacks of the process, to tell all of them about a stream and to inspect them. A caller that walks the
 * list pins the stack it is at, so that nothing is called under the lock. */
#include "stack_list.h"
#include "../base/error.h"
#include "../base/lifecycle.h"
#include "../base/text.h"
#include "stack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct stack *first, *last;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- References and pins, in one word ---- */

#define STACK_PIN (UINT64_C(1) << 32)

/* Stacks without a reference that are pinned, until they are destroyed. Never less than there are. */
static atomic_uint orphans;

static inline unsigned stack_list_references_in(uint64_t holds)
{
  return (unsigned)(holds % STACK_PIN);
}

unsigned stack_references(const struct stack *stack)
{
  return stack_list_references_in(atomic_load(&stack->entry.holds));
}

void stack_retain(struct stack *stack)
{
  uint64_t before = atomic_fetch_add(&stack->entry.holds, 1);
  if (!stack_list_references_in(before)) atomic_fetch_sub(&orphans, 1); /* the caller has pinned it */
}

void stack_release(struct stack *stack)
{
  uint64_t holds = atomic_load(&stack->entry.holds);
  bool is_orphaned;
  do {
    is_orphaned = stack_list_references_in(holds) == 1 && holds > STACK_PIN;
    if (is_orphaned) atomic_fetch_add(&orphans, 1);
    if (atomic_compare_exchange_strong(&stack->entry.holds, &holds, holds - 1)) break;
    if (is_orphaned) atomic_fetch_sub(&orphans, 1);
  } while (true);
  if (holds == 1) stack->entry.destroy(stack);
}

bool stack_try_release(struct stack *stack)
{
  uint64_t holds = atomic_load(&stack->entry.holds);
  while (stack_list_references_in(holds) > 1 && !atomic_compare_exchange_weak(&stack->entry.holds, &holds, holds - 1))
    continue;
  return stack_list_references_in(holds) > 1;
}

/* Adds a reference or a pin. False when the last reference is gone: another thread is about to unlist the stack. */
static bool stack_try_hold(struct stack *stack, uint64_t one)
{
  uint64_t holds = atomic_load(&stack->entry.holds);
  while (stack_list_references_in(holds) && !atomic_compare_exchange_weak(&stack->entry.holds, &holds, holds + one))
    continue;
  bool is_held = stack_list_references_in(holds) > 0;
  if (is_held && one == STACK_PIN) caller_self()->pins++;
  return is_held;
}

bool stack_pin(struct stack *stack)
{
  return stack_try_hold(stack, STACK_PIN);
}

/* The last pin of a stack without a reference stays until the stack is destroyed: nobody can add to it. */
void stack_unpin(struct stack *stack)
{
  uint64_t holds = atomic_load(&stack->entry.holds);
  while (holds != STACK_PIN && !atomic_compare_exchange_weak(&stack->entry.holds, &holds, holds - STACK_PIN)) continue;
  if (holds == STACK_PIN) {
    stack->entry.destroy(stack);
    atomic_fetch_sub(&orphans, 1);
  }
  caller_self()->pins--;
}

void stack_await_pins(void)
{
  for (unsigned turn = 0; atomic_load(&orphans); turn++) asymmetric_fence_pause(turn);
}

/* ---- Names: two trees, so that finding a name or a free number stays fast with many stacks ---- */

static struct key_tree_node *names;   /* by_name */
static struct key_tree_node *numbers; /* by_number; major: the hash of a base; minor: a number of it */

static struct stack *stack_list_find_name(const char *name)
{
  struct key_tree_text *found = key_tree_find_text(names, name, strlen(name));
  return found ? (struct stack *)((char *)found - offsetof(struct stack, entry.by_name)) : NULL;
}

#define MOST_DIGITS 18
#define MOST_NUMBER 999999999999999999ul

/* The number behind the last dot of a name, as stack_list_next_name() writes it; 0 if there is none, or if it is above
 * MOST_NUMBER. */
static unsigned long stack_list_number_in(const char *name, size_t *base_length_out)
{
  const char *dot = strrchr(name, '.');
  size_t digits = dot ? strspn(dot + 1, "0123456789") : 0;
  if (!digits || dot[1] == '0' || dot[1 + digits] || digits > MOST_DIGITS) return 0;
  *base_length_out = (size_t)(dot - name);
  return strtoul(dot + 1, NULL, 10);
}

/* The base with the number after its highest; if there is none, because the program chose MOST_NUMBER, with the highest that is
 * free. A number of a base with the same hash counts too, and does no harm. NULL when there is no host memory. */
static char *stack_list_next_name(const char *base)
{
  uintptr_t hash = (uintptr_t)text_hash(base, strlen(base));
  const struct key_tree_node *highest = key_tree_at_most(numbers, hash);
  bool has_number = highest && highest->major == hash, is_full = has_number && highest->minor == MOST_NUMBER;
  unsigned long number = has_number ? highest->minor : 1;
  char *name = NULL;
  do {
    free(name);
    number = is_full ? number - 1 : number + 1;
    if (asprintf(&name, "%s.%lu", base, number) < 0) return NULL;
  } while (stack_list_find_name(name));
  return name;
}

/* A number that a base with the same hash has is not entered twice. */
static void stack_list_enter_name(struct stack *stack)
{
  size_t length = 0;
  const char *name = stack->entry.name;
  unsigned long number = stack_list_number_in(name, &length);
  uintptr_t hash = (uintptr_t)text_hash(name, length);
  const struct key_tree_node *found = key_tree_at_least(numbers, hash, number);
  stack->entry.is_numbered = number && !(found && found->major == hash && found->minor == number);
  stack->entry.by_number = (struct key_tree_node){.major = hash, .minor = number};
  if (stack->entry.is_numbered) key_tree_insert(&numbers, &stack->entry.by_number);
  key_tree_insert_text(&names, &stack->entry.by_name, name, strlen(name));
}

static enum hipmm_status stack_list_choose_name(struct stack *stack, const char *name, bool must_be_free)
{
  bool is_taken = stack_list_find_name(name) != NULL;
  if (is_taken && must_be_free)
    return error_set(HIPMM_E_ARGUMENT,
                     "a resource called \"%s\" was created before and is still held; give another name, or none", name);
  stack->entry.name = is_taken ? stack_list_next_name(name) : strdup(name);
  if (!stack->entry.name) return error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
  stack_list_enter_name(stack);
  return HIPMM_OK;
}

/* ---- The list ---- */

enum hipmm_status stack_list(struct stack *stack, const char *name, bool must_be_free)
{
  pthread_mutex_lock(&lock);
  enum hipmm_status status = name ? stack_list_choose_name(stack, name, must_be_free) : HIPMM_OK;
  if (!status) {
    stack->entry.previous = last;
    *(last ? &last->entry.next : &first) = stack;
    last = stack;
    stack->entry.is_listed = true;
  }
  pthread_mutex_unlock(&lock);
  return status;
}

void stack_show(struct stack *stack)
{
  pthread_mutex_lock(&lock);
  stack->entry.is_ready = true;
  pthread_mutex_unlock(&lock);
}

void stack_unlist(struct stack *stack)
{
  if (!stack->entry.is_listed) return;
  pthread_mutex_lock(&lock);
  if (stack->entry.name) key_tree_remove(&names, &stack->entry.by_name.node);
  if (stack->entry.is_numbered) key_tree_remove(&numbers, &stack->entry.by_number);
  *(stack->entry.previous ? &stack->entry.previous->entry.next : &first) = stack->entry.next;
  *(stack->entry.next ? &stack->entry.next->entry.previous : &last) = stack->entry.previous;
  pthread_mutex_unlock(&lock);
  free(stack->entry.name);
}

struct stack *stack_next(struct stack *stack)
{
  pthread_mutex_lock(&lock);
  struct stack *next = stack ? stack->entry.next : first;
  while (next && !(next->entry.is_ready && stack_pin(next))) next = next->entry.next;
  pthread_mutex_unlock(&lock);
  if (stack) stack_unpin(stack);
  return next;
}

bool stack_any(bool (*holds)(const struct stack *stack, void *closure), void *closure)
{
  bool any = false;
  pthread_mutex_lock(&lock);
  for (struct stack *stack = first; stack && !any; stack = stack->entry.next)
    any = stack->entry.is_ready && holds(stack, closure);
  pthread_mutex_unlock(&lock);
  return any;
}

static bool stack_list_is_on(const struct stack *stack, int device)
{
  return device == STACK_ALL_DEVICES || stack->device == device;
}

struct stack **stack_collect(int device, size_t *n_out)
{
  size_t most = 0, n = 0;
  for (struct stack *stack = stack_next(NULL); stack; stack = stack_next(stack))
    most += stack_list_is_on(stack, device);
  struct stack **stacks = calloc(most + 1, sizeof(struct stack *));
  for (struct stack *stack = stacks ? stack_next(NULL) : NULL; stack; stack = stack_next(stack))
    if (n < most && stack_list_is_on(stack, device) && stack_pin(stack)) stacks[n++] = stack;
  *n_out = n;
  return stacks;
}

static struct stack *stack_list_find_and_hold(const char *name, uint64_t one)
{
  pthread_mutex_lock(&lock);
  struct stack *stack = stack_list_find_name(name);
  if (stack && !(stack->entry.is_ready && stack_try_hold(stack, one))) stack = NULL;
  pthread_mutex_unlock(&lock);
  return stack;
}

struct stack *stack_named(const char *name)
{
  return stack_list_find_and_hold(name, 1);
}

struct stack *stack_named_pinned(const char *name)
{
  return stack_list_find_and_hold(name, STACK_PIN);
}

struct instance *stack_lower(const struct stack *stack, struct instance *instance)
{
  if (!instance) instance = stack->instances + stack->graph->n_nodes;
  while (instance-- > stack->instances)
    if (instance->created) return instance;
  return NULL;
}

int64_t stack_held_bytes(const struct stack *stack)
{
  STACK_EACH(instance, stack) instance_held_bytes(instance);
  return atomic_load(&stack->held_bytes);
}
