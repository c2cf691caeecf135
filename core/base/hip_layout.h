/* SPDX-License-Identifier: MIT */
/* hip_layout.h: what differs between HIP's releases in calls whose names stayed the same. The release that a program or a
 * runtime was built for decides, not the headers that hipmm is built with. Plugins include this header too. */
#ifndef HIPMM_CORE_BASE_HIP_LAYOUT_H
#define HIPMM_CORE_BASE_HIP_LAYOUT_H

/* As hipRuntimeGetVersion() gives them: HIP_VERSION. */
enum {
  HIP_LAYOUT_5_3 = 50300000, /* hipMemAllocationProp has another layout */
  HIP_LAYOUT_6_0 = 60000000, /* hipMemoryType has other numbers, and one for memory that HIP does not know */
  HIP_LAYOUT_7_1 = 70100000  /* hipMemImportFromShareableHandle() takes a descriptor by its value, not by its address */
};

/* An attribute of hipmm's nvidia runtime, of the range that HIP leaves to vendors: whether a network card can read and write
 * memory that hipMemCreate() gives (RDMA). */
enum { HIP_LAYOUT_DEVICE_RDMA = 20110 };

/* The same of hipmm's runtimes: whether hipMemCreate() takes a file descriptor of the process, as in ROCm 7.14, for as long as
 * its memory lives. AMD's library knows no such attribute. */
enum { HIP_LAYOUT_DEVICE_CHUNK_DESCRIPTORS = 20111 };

/* hipMemLocation. */
struct hip_layout_location {
  int type, id;
};

/* hipMemAllocationProp. */
struct hip_layout_prop_5_2 {
  unsigned char compression_type;
  struct hip_layout_location location;
  int handle_type;
  int type;
  unsigned short usage;
  void *win32_handle_meta_data;
};

struct hip_layout_prop_5_3 {
  int type;
  int handle_type;
  struct hip_layout_location location;
  void *win32_handle_meta_data;
  struct {
    unsigned char compression_type, gpu_direct_rdma_capable;
    unsigned short usage;
  } flags;
};

union hip_layout_prop {
  struct hip_layout_prop_5_2 up_to_5_2;
  struct hip_layout_prop_5_3 from_5_3;
};

#endif
