/* SPDX-License-Identifier: MIT */
/* library.c: a library that programs can link to, with the software device in it and the name of AMD's library. One of
 * its functions calls another through the loader, as a runtime may. */
#include <hip/hip_runtime_api.h>

/* As AMD's: succeeds, whatever becomes of each attribute. The software device's own, if it has this function. */
__attribute__((visibility("default"), weak)) hipError_t hipDrvPointerGetAttributes(unsigned count,
                                                                                   hipPointer_attribute *attributes,
                                                                                   void **data, hipDeviceptr_t ptr)
{
  if (!count || !attributes || !data || !ptr) return hipErrorInvalidValue;
  for (unsigned i = 0; i < count; i++)
    if (hipPointerGetAttribute(data[i], attributes[i], ptr)) hipGetLastError();
  return hipSuccess;
}
