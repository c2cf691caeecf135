/* SPDX-License-Identifier: MIT */
/* part.c: see serve.h. The memory belongs to whoever has a descriptor or a mapping of it: once this process closes its descriptors,
 * the driver frees what nobody has mapped. */
#include "serve.h"

#include <stdlib.h>
#include <unistd.h>

struct part_name {
  uint64_t offset, bytes;
  uint32_t name_bytes, description_bytes;
  char *text;
};

struct part *part_of(struct part parts[SERVE_MOST_PARTS], const unsigned char device[16],
                     char reason[PEER_REASON_BYTES])
{
  struct part *unused = NULL;
  for (struct part *part = parts; part < parts + SERVE_MOST_PARTS; part++) {
    if (!part->is_used)
      unused = unused ? unused : part;
    else if (!memcmp(part->device, device, sizeof part->device))
      return part;
  }
  if (!unused) return peer_refuse(reason, "the store is in use on %d devices already", SERVE_MOST_PARTS), NULL;
  *unused = (struct part){.is_used = true};
  memcpy(unused->device, device, sizeof unused->device);
  return unused;
}

bool part_add_chunks(struct part *part, const struct serve_chunks *chunks, struct peer_files *files,
                     char reason[PEER_REASON_BYTES])
{
  uint64_t total_bytes = part->total_bytes;
  if (!serve_are_chunks(chunks, files->count, &total_bytes)) return peer_refuse(reason, "the chunks are not sound");
  if (part->n_chunks + chunks->n > SERVE_MOST_CHUNKS)
    return peer_refuse(reason, "a store has at most %d chunks on a device; allocate fewer, larger blocks",
                       SERVE_MOST_CHUNKS);
  if (!part->files) part->files = calloc(SERVE_MOST_CHUNKS, sizeof *part->files);
  if (!part->chunk_bytes) part->chunk_bytes = calloc(SERVE_MOST_CHUNKS, sizeof *part->chunk_bytes);
  if (!part->files || !part->chunk_bytes) return peer_refuse(reason, "out of host memory");
  for (uint64_t i = 0; i < chunks->n; i++) {
    part->files[part->n_chunks] = files->files[i];
    part->chunk_bytes[part->n_chunks++] = chunks->bytes[i];
  }
  files->count = 0;
  part->total_bytes = total_bytes;
  return true;
}

bool part_add_name(struct part *part, const struct serve_name *name, char reason[PEER_REASON_BYTES])
{
  if (!serve_is_name(name, part->total_bytes)) return peer_refuse(reason, "the name is not sound");
  if (part->n_names == SERVE_MOST_NAMES)
    return peer_refuse(reason, "a store has at most %d names on a device", SERVE_MOST_NAMES);
  if (!part->names) part->names = calloc(SERVE_MOST_NAMES, sizeof *part->names);
  size_t bytes = name->name_bytes + name->description_bytes;
  char *text = malloc(bytes);
  if (!part->names || !text) {
    free(text);
    return peer_refuse(reason, "out of host memory");
  }
  memcpy(text, name->text, bytes);
  part->names[part->n_names++] =
      (struct part_name){name->offset, name->bytes, name->name_bytes, name->description_bytes, text};
  return true;
}

bool part_read_chunks(const struct part *part, uint32_t first, struct serve_chunks *chunks_out,
                      struct peer_files *files)
{
  files->count = 0;
  while (first < part->n_chunks && files->count < SERVE_MESSAGE_CHUNKS) {
    chunks_out->bytes[files->count] = part->chunk_bytes[first];
    files->files[files->count++] = part->files[first++];
  }
  chunks_out->n = files->count;
  return files->count > 0;
}

bool part_read_name(const struct part *part, uint32_t number, struct serve_name *name_out)
{
  if (number >= part->n_names) return false;
  const struct part_name *name = &part->names[number];
  *name_out = (struct serve_name){.offset = name->offset,
                                  .bytes = name->bytes,
                                  .name_bytes = name->name_bytes,
                                  .description_bytes = name->description_bytes};
  memcpy(name_out->text, name->text, name->name_bytes + name->description_bytes);
  return true;
}

void part_clear(struct part *part)
{
  while (part->n_chunks) close(part->files[--part->n_chunks]);
  while (part->n_names) free(part->names[--part->n_names].text);
  free(part->files);
  free(part->chunk_bytes);
  free(part->names);
  part->files = NULL;
  part->chunk_bytes = NULL;
  part->names = NULL;
  part->total_bytes = 0;
  part->is_committed = false;
}
