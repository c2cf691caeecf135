/* SPDX-License-Identifier: MIT */
/* dlpack.h: DLPack's structs, of its ABI version 0 (capsule "dltensor") and 1 ("dltensor_versioned"), and what dlpack.c and
 * view.c share. */
#ifndef HIPMM_PYTHON_SRC_DLPACK_H
#define HIPMM_PYTHON_SRC_DLPACK_H

#include "extension.h"

struct dl_device {
  int32_t type, id;
};

struct dl_tensor {
  void *data;
  struct dl_device device;
  int32_t ndim;
  struct {
    uint8_t code, bits;
    uint16_t lanes;
  } dtype;
  int64_t *shape, *strides; /* in elements; strides NULL: C order */
  uint64_t byte_offset;
};

struct dl_managed {
  struct dl_tensor tensor;
  void *context;
  void (*deleter)(struct dl_managed *self);
};

struct dl_versioned {
  uint32_t major, minor;
  void *context;
  void (*deleter)(struct dl_versioned *self);
  uint64_t flags;
  struct dl_tensor tensor;
};

/* Types of elements, and devices of the host. */
enum { DLPACK_INT, DLPACK_UNSIGNED, DLPACK_FLOAT, DLPACK_BFLOAT = 4, DLPACK_COMPLEX, DLPACK_BOOL };
enum { DLPACK_CPU = 1, DLPACK_CUDA_HOST = 3, DLPACK_ROCM_HOST = 11 };
enum { DLPACK_CUDA = 2, DLPACK_ROCM = 10, DLPACK_EXTENSION = 12, DLPACK_CUDA_MANAGED = 13 };

enum { DLPACK_MOST_DIMENSIONS = 64 }; /* as NumPy has */

/* Flags of dl_versioned; COPIED: nobody else has the memory. Elements that are no whole number of bytes have no bits between them, unless they are padded. */
enum { DLPACK_READ_ONLY = 1, DLPACK_COPIED = 2, DLPACK_PADDED = 4 };

/* The tensor of a capsule that nobody has consumed; NULL, with an exception, also for a shape that no memory has. */
const struct dl_tensor *dlpack_tensor(PyObject *capsule, uint64_t *flags_out);

bool dlpack_is_packed(const struct dl_tensor *tensor, uint64_t flags);

bool dlpack_is_c_order(const struct dl_tensor *tensor);

bool dlpack_is_of_host(struct dl_device device);

/* The size of the elements, all together; of a tensor from dlpack_tensor(). */
uint64_t dlpack_bytes(const struct dl_tensor *tensor, uint64_t flags);

/* A capsule of a tensor whose shape and strides live as long as `owner`; without a shape (NULL) it has one dimension, of
 * `length` elements. When the consumer drops it, `release` (NULL: nothing) is called once with `owner` and the GIL, and
 * then the reference to `owner` goes. */
PyObject *dlpack_export(PyObject *owner, const struct dl_tensor *tensor, size_t length, bool versioned, uint64_t flags,
                        void (*release)(PyObject *owner));

#endif
