/* SPDX-License-Identifier: MIT */
/* stack_list.c: all stacks of the process, for news that concern all of them and for looking at them. Whoever walks it
 * holds the stack that it is at, so that nothing is called under the lock. */
#include "error.h"
#include "stack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct stack *first, *last;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- Names ---- */

static bool is_taken(const char *name)
{
  const struct stack *stack = first;
  while (stack && !(stack->name && !strcmp(stack->name, name))) stack = stack->next;
  return stack != NULL;
}

/* The least number above all that follow "name." in a name; 2 if there are none. */
static unsigned long next_number(const char *name)
{
  size_t length = strlen(name);
  unsigned long next = 2;
  for (const struct stack *stack = first; stack; stack = stack->next) {
    char *end = NULL;
    if (!stack->name || strncmp(stack->name, name, length) || stack->name[length] != '.') continue;
    unsigned long number = strtoul(stack->name + length + 1, &end, 10);
    if (!*end && number >= next && number < 1000000000) next = number + 1;
  }
  return next;
}

static enum hipmm_status choose_name(struct stack *stack, const char *name, bool is_wish)
{
  bool taken = is_taken(name);
  if (taken && !is_wish)
    return error_set(HIPMM_E_ARGUMENT,
                     "a resource called \"%s\" was created before and is still held; give another name, or none", name);
  int length = taken ? asprintf(&stack->name, "%s.%lu", name, next_number(name)) : asprintf(&stack->name, "%s", name);
  if (length >= 0) return HIPMM_OK;
  stack->name = NULL;
  return error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
}

/* ---- The list ---- */

enum hipmm_status stack_list(struct stack *stack, const char *name, bool is_wish)
{
  pthread_mutex_lock(&lock);
  enum hipmm_status status = name ? choose_name(stack, name, is_wish) : HIPMM_OK;
  if (!status) {
    stack->previous = last;
    *(last ? &last->next : &first) = stack;
    last = stack;
    stack->is_listed = true;
  }
  pthread_mutex_unlock(&lock);
  return status;
}

void stack_show(struct stack *stack)
{
  pthread_mutex_lock(&lock);
  stack->is_ready = true;
  pthread_mutex_unlock(&lock);
}

void stack_unlist(struct stack *stack)
{
  pthread_mutex_lock(&lock);
  *(stack->previous ? &stack->previous->next : &first) = stack->next;
  *(stack->next ? &stack->next->previous : &last) = stack->previous;
  pthread_mutex_unlock(&lock);
}

/* False when the last reference is gone: another thread is about to take it off the list. */
static bool try_retain(struct stack *stack)
{
  unsigned references = atomic_load(&stack->references);
  while (references && !atomic_compare_exchange_weak(&stack->references, &references, references + 1)) continue;
  return references > 0;
}

struct stack *stack_next(struct stack *stack)
{
  pthread_mutex_lock(&lock);
  struct stack *next = stack ? stack->next : first;
  while (next && !(next->is_ready && try_retain(next))) next = next->next;
  pthread_mutex_unlock(&lock);
  if (stack) stack_release(stack);
  return next;
}
