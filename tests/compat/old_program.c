/* SPDX-License-Identifier: MIT */
/* The C interface of RMM 0.12 from C. */
#include <rmm/rmm.h>

int main(void)
{
  static const int devices[] = {1};
  rmmOptions_t options = {PoolAllocation, 1 << 20, false, devices, 1}, current;
  float *memory = NULL;
  if (rmmInitialize(&options) || !rmmIsInitialized(&current) || current.n_devices != 1 || current.devices[0] != 1)
    return 1;
  if (RMM_ALLOC(&memory, 1000, NULL) || !memory || RMM_REALLOC(&memory, 2000, NULL) || RMM_FREE(memory, NULL)) return 2;
  return rmmFinalize() != RMM_SUCCESS || rmmIsInitialized(NULL);
}
