/* SPDX-License-Identifier: MIT */
/* channel.cc: the one C++ function of HIP that its headers declare and a host program has to bring. */
#include <hip/hip_runtime.h>

hipChannelFormatDesc hipCreateChannelDesc(int x, int y, int z, int w, enum hipChannelFormatKind kind)
{
  hipChannelFormatDesc description;
  description.x = x;
  description.y = y;
  description.z = z;
  description.w = w;
  description.f = kind;
  return description;
}
