/* SPDX-License-Identifier: MIT */
/* stack_list.c: all stacks of the process, for news that concern all of them and for looking at them. Whoever walks it
 * holds the stack that it is at, so that nothing is called under the lock. */
#include "../base/error.h"
#include "stack.h"

#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct stack *first, *last;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- Names: two search trees, so that neither a name nor a number takes longer to find where there are many ---- */

/* The stacks called "base.2", "base.3", … of one base, in the order of their numbers. */
struct numbered {
  const char *base; /* not terminated where it is only looked for */
  size_t base_length;
  struct stack *last;
};

static void *names; /* of struct stack, by name */
static void *bases; /* of struct numbered, by base; only such as have a stack */

static int stack_list_compare_names(const void *left, const void *right)
{
  const struct stack *a = left, *b = right;
  return strcmp(a->name, b->name);
}

static int stack_list_compare_bases(const void *left, const void *right)
{
  const struct numbered *a = left, *b = right;
  if (a->base_length != b->base_length) return a->base_length < b->base_length ? -1 : 1;
  return memcmp(a->base, b->base, a->base_length);
}

static void stack_list_numbered_free(struct numbered *numbered)
{
  free((void *)(uintptr_t)numbered->base);
  free(numbered);
}

/* Entered in `bases`. NULL when host memory is short. */
static struct numbered *stack_list_numbered_new(const char *base, size_t length)
{
  struct numbered *numbered = calloc(1, sizeof *numbered);
  if (!numbered) return NULL;
  *numbered = (struct numbered){.base = strndup(base, length), .base_length = length};
  if (numbered->base && tsearch(numbered, &bases, stack_list_compare_bases)) return numbered;
  stack_list_numbered_free(numbered);
  return NULL;
}

static struct numbered *stack_list_numbered_find(const char *base, size_t length)
{
  const struct numbered key = {.base = base, .base_length = length};
  struct numbered **found = tfind(&key, &bases, stack_list_compare_bases);
  return found ? *found : NULL;
}

/* The number behind the last dot of a name; 0 if there is none, or one that is too large to count on from. */
static unsigned long stack_list_number_in(const char *name, size_t *base_length_out)
{
  const char *dot = strrchr(name, '.');
  size_t digits = dot ? strspn(dot + 1, "0123456789") : 0;
  if (!digits || dot[1 + digits] || digits > 18) return 0;
  *base_length_out = (size_t)(dot - name);
  return strtoul(dot + 1, NULL, 10);
}

/* Puts the stack behind those with a lower number: at the end, unless its number was chosen by the program. */
static bool stack_list_number(struct stack *stack)
{
  size_t length = 0;
  stack->number = stack_list_number_in(stack->name, &length);
  if (!stack->number) return true;
  struct numbered *numbered = stack_list_numbered_find(stack->name, length);
  if (!numbered) numbered = stack_list_numbered_new(stack->name, length);
  if (!numbered) return false;
  struct stack *lower = numbered->last, *higher = NULL;
  for (; lower && lower->number > stack->number; lower = lower->lower) higher = lower;
  stack->lower = lower;
  stack->higher = higher;
  if (lower) lower->higher = stack;
  *(higher ? &higher->lower : &numbered->last) = stack;
  return true;
}

static void stack_list_unlist_number(const struct stack *stack)
{
  size_t length = 0;
  if (!stack->number) return;
  stack_list_number_in(stack->name, &length);
  struct numbered *numbered = stack_list_numbered_find(stack->name, length);
  if (stack->lower) stack->lower->higher = stack->higher;
  *(stack->higher ? &stack->higher->lower : &numbered->last) = stack->lower;
  if (numbered->last) return;
  tdelete(numbered, &bases, stack_list_compare_bases);
  stack_list_numbered_free(numbered);
}

static bool stack_list_name(struct stack *stack)
{
  struct stack **entered = tsearch(stack, &names, stack_list_compare_names);
  if (!entered || *entered != stack) return false;
  if (stack_list_number(stack)) return true;
  tdelete(stack, &names, stack_list_compare_names);
  return false;
}

static void stack_list_unlist_name(struct stack *stack)
{
  if (!stack->name) return;
  stack_list_unlist_number(stack);
  tdelete(stack, &names, stack_list_compare_names);
}

static struct stack *stack_list_find_name(const char *name)
{
  const struct stack key = {.name = (char *)(uintptr_t)name};
  struct stack **found = tfind(&key, &names, stack_list_compare_names);
  return found ? *found : NULL;
}

/* The least number above all that follow "name." in a name; 2 if there are none. */
static unsigned long stack_list_next_number(const char *name)
{
  const struct numbered *numbered = stack_list_numbered_find(name, strlen(name));
  return numbered ? numbered->last->number + 1 : 2;
}

static enum hipmm_status stack_list_choose_name(struct stack *stack, const char *name, bool is_wish)
{
  bool taken = stack_list_find_name(name) != NULL;
  if (taken && !is_wish)
    return error_set(HIPMM_E_ARGUMENT,
                     "a resource called \"%s\" was created before and is still held; give another name, or none", name);
  int length =
      taken ? asprintf(&stack->name, "%s.%lu", name, stack_list_next_number(name)) : asprintf(&stack->name, "%s", name);
  if (length >= 0 && stack_list_name(stack)) return HIPMM_OK;
  if (length >= 0) free(stack->name);
  stack->name = NULL;
  return error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
}

/* ---- The list ---- */

enum hipmm_status stack_list(struct stack *stack, const char *name, bool is_wish)
{
  pthread_mutex_lock(&lock);
  enum hipmm_status status = name ? stack_list_choose_name(stack, name, is_wish) : HIPMM_OK;
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
  stack_list_unlist_name(stack);
  *(stack->previous ? &stack->previous->next : &first) = stack->next;
  *(stack->next ? &stack->next->previous : &last) = stack->previous;
  pthread_mutex_unlock(&lock);
}

/* False when the last reference is gone: another thread is about to take it off the list. */
static bool stack_list_try_retain(struct stack *stack)
{
  unsigned references = atomic_load(&stack->references);
  while (references && !atomic_compare_exchange_weak(&stack->references, &references, references + 1)) continue;
  return references > 0;
}

struct stack *stack_next(struct stack *stack)
{
  pthread_mutex_lock(&lock);
  struct stack *next = stack ? stack->next : first;
  while (next && !(next->is_ready && stack_list_try_retain(next))) next = next->next;
  pthread_mutex_unlock(&lock);
  if (stack) stack_release(stack);
  return next;
}

struct stack *stack_named(const char *name)
{
  pthread_mutex_lock(&lock);
  struct stack *stack = stack_list_find_name(name);
  if (stack && !(stack->is_ready && stack_list_try_retain(stack))) stack = NULL;
  pthread_mutex_unlock(&lock);
  return stack;
}
