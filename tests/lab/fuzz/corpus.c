/* SPDX-License-Identifier: MIT */
/* corpus.c: runs a target over the files that are named, or over standard input, without libFuzzer or AFL++, which have a
 * main of their own. */
#ifndef HIPMM_FUZZ_WITH_LIBFUZZER
#include "fuzz.h"

static int run_file(const char *name)
{
  FILE *file = fopen(name, "rb");
  uint8_t *data = malloc(1 << 20);
  if (!file || !data) {
    perror(name);
    free(data);
    if (file) fclose(file);
    return 1;
  }
  size_t bytes = fread(data, 1, 1 << 20, file);
  fclose(file);
  uint8_t *exact = malloc(bytes ? bytes : 1); /* so that a sanitizer sees a read past the end */
  if (exact) memcpy(exact, data, bytes);
  free(data);
  if (exact) LLVMFuzzerTestOneInput(exact, bytes);
  free(exact);
  return !exact;
}

int main(int argc, char **argv)
{
  int failed = LLVMFuzzerInitialize(&argc, &argv);
  for (int i = 1; i < argc; i++) failed |= run_file(argv[i]);
  if (argc == 1) failed |= run_file("/dev/stdin");
  return failed;
}
#endif
