/* test.c: a program that uses the type @NAME@ on the software device, which needs no GPU. `make check` runs it. */
#include <hipmm/hipmm.h>
#include <stdio.h>

static int fail(const char *what)
{
  fprintf(stderr, "%s: %s\n", what, hipmm_last_error_message());
  return 1;
}

int main(void)
{
  const char *graph = "{\"runtime\": \"software\", \"plugin_path\": \".\", \"stack\": [@STACK@]}";
  struct hipmm_resource *top;
  int64_t allocations = 0;
  void *ptr;
  if (hipmm_init_from_string(graph)) return fail("hipmm_init_from_string");
  if (hipmm_resource_get_current(&top)) return fail("hipmm_resource_get_current");
  if (hipmm_allocate(top, 1000, NULL, &ptr)) return fail("hipmm_allocate");
  if (hipmm_resource_query(top, "@NAME@_allocations", &allocations)) return fail("hipmm_resource_query");
  if (hipmm_deallocate(top, ptr, 1000, NULL)) return fail("hipmm_deallocate");
  hipmm_resource_release(top);
  if (hipmm_finalize()) return fail("hipmm_finalize");
  if (allocations != 1) fprintf(stderr, "%lld allocations were counted, not 1\n", (long long)allocations);
  return allocations != 1;
}
