/* SPDX-License-Identifier: MIT */
/* name.c: see name.h. All processes of a job share one graph, and each writes its own file. */
#include "name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The variables with the rank, the more specific first: Open MPI, PMIx, MPICH and Intel MPI, MVAPICH2, torchrun, Slurm. */
static const char *const rank_variables[] = {
    "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK", "RANK", "SLURM_PROCID", NULL};

static long name_rank_of_process(void)
{
  for (const char *const *variable = rank_variables; *variable; variable++) {
    const char *text = secure_getenv(*variable);
    char *end = NULL;
    long rank = text ? strtol(text, &end, 10) : -1;
    if (text && end != text && !*end && rank >= 0) return rank;
  }
  return 0;
}

static const char name_letters[] = "pdr%";

/* Writes the text for one of these letters after a percent sign. */
static int name_letter_expand(const struct hipmm_services *services, char letter, char *text, size_t text_bytes)
{
  switch (letter) {
  case 'p': return snprintf(text, text_bytes, "%ld", (long)getpid());
  case 'd': return snprintf(text, text_bytes, "%d", services->device);
  case 'r': return snprintf(text, text_bytes, "%ld", name_rank_of_process());
  default: return snprintf(text, text_bytes, "%%");
  }
}

void name_validate(const struct hipmm_validation *validation, const char *pattern)
{
  static const char allowed[] = "write %p for the process, %d for the device, %r for the rank, %% for a percent sign";
  for (const char *at = strchr(pattern, '%'); at; at = at[1] ? strchr(at + 2, '%') : NULL) {
    if (!at[1])
      validation->error(validation, "file", "\"%.500s\" ends in %%; %s", pattern, allowed);
    else if (!strchr(name_letters, at[1]))
      validation->error(validation, "file", "\"%.500s\": unknown %%%c; %s", pattern, at[1], allowed);
  }
}

enum hipmm_status name_expand(const struct hipmm_services *services, const char *pattern, char *name_out)
{
  char name[NAME_BYTES], text[32];
  size_t used = 0;
  for (const char *at = pattern; *at; at++) {
    int length = *at == '%' ? name_letter_expand(services, at[1], text, sizeof text) : 1;
    if (used + (size_t)length >= sizeof name)
      return services->fail(services, HIPMM_E_CONFIG, "file", "the name is too long; a name has at most %d characters",
                            NAME_BYTES - 1);
    memcpy(name + used, *at == '%' ? text : at, (size_t)length);
    used += (size_t)length;
    at += *at == '%';
  }
  memcpy(name_out, name, used);
  name_out[used] = '\0';
  return HIPMM_OK;
}

int name_add_device(char *name, int device)
{
  char text[32];
  char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name, *dot = strrchr(base, '.');
  char *at = dot && dot != base ? dot : base + strlen(base);
  size_t length = (size_t)snprintf(text, sizeof text, ".dev%d", device), tail = strlen(at) + 1;
  if ((size_t)(at - name) + length + tail > NAME_BYTES) return 0;
  memmove(at + length, at, tail);
  memcpy(at, text, length);
  return 1;
}
