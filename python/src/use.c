/* SPDX-License-Identifier: MIT */
/* use.c: what uses memory of a resource, and what puts the resource to sleep, which would take the memory away below the
 * user: whoever comes second is refused. Used by Buffers (buffer.c, contents.c, dlpack.c) and by Resource.sleep(); everything
 * here needs the GIL, and keeps it. */
#include "extension.h"

/* Those under way, and how many of them are sleeps. */
static struct use *uses;
static unsigned n_sleeps;

typedef bool (*use_test)(struct hipmm_resource *resource, struct hipmm_resource *other);

/* Whether the test holds for one of the resources directly below. */
static bool use_any_below(struct hipmm_resource *resource, use_test test, struct hipmm_resource *other)
{
  size_t n = 0;
  bool holds = false;
  if (api.resource_upstream_count(resource, &n)) return false;
  for (size_t i = 0; i < n && !holds; i++) {
    struct hipmm_resource *below;
    if (api.resource_upstream(resource, i, &below)) continue;
    holds = test(below, other);
    api.resource_release(below);
  }
  return holds;
}

static bool use_depends_on(struct hipmm_resource *resource, struct hipmm_resource *other)
{
  return resource == other || use_any_below(resource, use_depends_on, other);
}

/* Whether a sleep of `top` may take memory of `resource`: they have a resource in common. A source does not sleep, and is
 * common to resources that have nothing else in common. */
static bool use_reaches(struct hipmm_resource *top, struct hipmm_resource *resource)
{
  size_t n = 0;
  if (api.resource_upstream_count(top, &n) || !n) return false;
  return use_depends_on(resource, top) || use_any_below(top, use_reaches, resource);
}

static int use_refuse(const struct use *use, const struct use *other)
{
  const char *name = api.resource_name(use->resource);
  if (other->sleeps)
    PyErr_Format(PyExc_BufferError, "%s: another thread puts this memory to sleep", name);
  else
    PyErr_Format(PyExc_BufferError,
                 "%s: cannot sleep: a Buffer on %s is in use by a view (memoryview, DLPack) or by another thread; "
                 "release the view before",
                 name, api.resource_name(other->resource));
  return -1;
}

int use_begin(struct use *use, struct hipmm_resource *resource, bool sleeps)
{
  if (use->count) {
    use->count++;
    return 0;
  }
  use->resource = resource;
  use->sleeps = sleeps;
  for (struct use *other = sleeps || n_sleeps ? uses : NULL; resource && other; other = other->next)
    if (other->sleeps != sleeps && other->resource &&
        use_reaches(sleeps ? resource : other->resource, sleeps ? other->resource : resource))
      return use_refuse(use, other);
  use->count = 1;
  use->previous = NULL;
  use->next = uses;
  if (uses) uses->previous = use;
  uses = use;
  n_sleeps += sleeps;
  return 0;
}

void use_end(struct use *use)
{
  if (--use->count) return;
  *(use->previous ? &use->previous->next : &uses) = use->next;
  if (use->next) use->next->previous = use->previous;
  n_sleeps -= use->sleeps;
}
