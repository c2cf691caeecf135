/* SPDX-License-Identifier: MIT */
/* controlled.c: a program for ctl.sh. It has a block of 1 MiB full of a pattern, and an idle one of 3 MiB. A line on standard
 * input is its safe point: there it does what it was asked for, checks the pattern and prints what it did. It ends with the
 * input. */
#include <hipmm/buffer.h>
#include <hipmm/control.h>

#include <stdio.h>
#include <string.h>

enum { BYTES = 1 << 20 };

static _Atomic int wants_suspend, wants_resume;
static unsigned char pattern[BYTES], seen[BYTES];

static void note(void *arg)
{
  *(_Atomic int *)arg = 1;
}

static int fail(const char *what)
{
  printf("%s: %s\n", what, hipmm_last_error_message());
  return 1;
}

static struct hipmm_buffer *allocate(size_t bytes)
{
  struct hipmm_buffer *buffer;
  return hipmm_buffer_create(NULL, bytes, NULL, &buffer) ? NULL : buffer;
}

static void come_to_safe_point(struct hipmm_resource *resource, const struct hipmm_buffer *buffer)
{
  if (wants_suspend) {
    wants_suspend = 0; /* before the reply: the next request may come with it */
    hipmm_control_reply("suspend", hipmm_resource_suspend(resource, HIPMM_CONTENT_KEEP));
  } else if (wants_resume) {
    wants_resume = 0;
    hipmm_control_reply("resume", hipmm_resource_resume(resource));
    memset(seen, 0, sizeof seen);
    if (hipmm_buffer_read(buffer, 0, BYTES, NULL, seen) || memcmp(seen, pattern, BYTES))
      printf("the content is lost\n");
  }
  size_t held;
  if (!hipmm_device_held_bytes(0, &held, NULL)) printf("held %zu\n", held);
  fflush(stdout);
}

int main(void)
{
  struct hipmm_resource *resource;
  char line[80];
  memset(pattern, 0x5a, sizeof pattern);
  if (hipmm_init()) return fail("init");
  struct hipmm_buffer *buffer = allocate(BYTES), *idle = allocate(3 * BYTES);
  if (!buffer || !idle || hipmm_buffer_write(buffer, 0, pattern, BYTES, NULL)) return fail("buffers");
  hipmm_buffer_destroy(idle);
  hipmm_control_register("suspend", note, (void *)&wants_suspend);
  hipmm_control_register("resume", note, (void *)&wants_resume);
  if (hipmm_resource_get_current(&resource)) return fail("resource");
  printf("ready\n");
  fflush(stdout);
  while (fgets(line, sizeof line, stdin)) come_to_safe_point(resource, buffer);
  hipmm_resource_release(resource);
  hipmm_buffer_destroy(buffer);
  return hipmm_finalize() != HIPMM_OK;
}
