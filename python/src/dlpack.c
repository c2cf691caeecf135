/* SPDX-License-Identifier: MIT */
/* dlpack.c: Buffers and Views as DLPack tensors, and the facts of a DLPack capsule for hipmm._arrays. */
#include "dlpack.h"

#include <stdlib.h>

/* One block for either form of a tensor, with the shape and strides of one that has none. */
struct dlpack_export {
  union {
    struct dl_managed managed;
    struct dl_versioned versioned;
  };
  int64_t shape[1], strides[1];
  PyObject *owner;
  void (*release)(PyObject *owner);
};

/* ---- Out ---- */

/* Consumers may drop a tensor on any thread, and after Python has ended. */
static void dlpack_drop(struct dlpack_export *export)
{
  if (Py_IsInitialized()) {
    PyGILState_STATE state = PyGILState_Ensure();
    if (export->release) export->release(export->owner);
    Py_DECREF(export->owner);
    PyGILState_Release(state);
  }
  free(export);
}

static void dlpack_delete(struct dl_managed *managed)
{
  dlpack_drop(managed->context);
}

static void dlpack_delete_versioned(struct dl_versioned *versioned)
{
  dlpack_drop(versioned->context);
}

/* Of a capsule that no consumer has renamed. */
static void dlpack_destroy_capsule(PyObject *capsule)
{
  if (PyCapsule_IsValid(capsule, "dltensor"))
    dlpack_delete(PyCapsule_GetPointer(capsule, "dltensor"));
  else if (PyCapsule_IsValid(capsule, "dltensor_versioned"))
    dlpack_delete_versioned(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
}

PyObject *dlpack_export(PyObject *owner, const struct dl_tensor *tensor, size_t length, bool versioned, uint64_t flags,
                        void (*release)(PyObject *owner))
{
  struct dlpack_export *export = calloc(1, sizeof *export);
  if (!export) return PyErr_NoMemory();
  export->owner = owner;
  export->release = release;
  if (versioned)
    export->versioned = (struct dl_versioned){.major = 1,
                                              .context = export,
                                              .deleter = dlpack_delete_versioned,
                                              .flags = flags & (DLPACK_READ_ONLY | DLPACK_COPIED | DLPACK_PADDED),
                                              .tensor = *tensor};
  else
    export->managed = (struct dl_managed){.tensor = *tensor, .context = export, .deleter = dlpack_delete};
  struct dl_tensor *copy = versioned ? &export->versioned.tensor : &export->managed.tensor;
  if (!copy->shape) {
    export->shape[0] = (int64_t)length;
    export->strides[0] = 1;
    copy->shape = export->shape;
    copy->strides = export->strides;
  }
  PyObject *capsule = PyCapsule_New(export, versioned ? "dltensor_versioned" : "dltensor", dlpack_destroy_capsule);
  if (capsule)
    Py_INCREF(owner);
  else
    free(export);
  return capsule;
}

bool dlpack_is_of_host(struct dl_device device)
{
  return device.type == DLPACK_CPU || device.type == DLPACK_CUDA_HOST || device.type == DLPACK_ROCM_HOST;
}

/* The Buffer is held. Arrays on a device may live while their memory sleeps, as addresses may. */
static PyObject *dlpack_export_buffer(PyObject *self, struct dl_device device, bool versioned, uint64_t flags)
{
  struct hipmm_buffer *buffer = buffer_handle(self);
  struct dl_tensor tensor = {
      .data = api.buffer_data(buffer), .device = device, .ndim = 1, .dtype = {DLPACK_UNSIGNED, 8, 1}};
  bool of_host = dlpack_is_of_host(device);
  PyObject *capsule = dlpack_export(self, &tensor, api.buffer_bytes(buffer), versioned, flags,
                                    of_host ? buffer_let_go : buffer_let_move);
  if (capsule && !of_host) buffer_let_sleep(self);
  return capsule;
}

PyObject *buffer_dlpack_device(PyObject *self, PyObject *unused)
{
  (void)unused;
  PyObject *function = arrays_function("dlpack_device");
  PyObject *pair = function ? PyObject_CallFunctionObjArgs(function, self, NULL) : NULL;
  Py_XDECREF(function);
  return pair;
}

/* hipmm._arrays orders the streams and checks the arguments, and tells the device and whose memory it is: of this Buffer, or of a
 * copy that it has made. */
PyObject *buffer_dlpack(PyObject *self, PyObject *args, PyObject *names)
{
  int versioned;
  struct dl_device device;
  if (PyTuple_Size(args)) return PyErr_SetString(PyExc_TypeError, "__dlpack__() takes keyword arguments only"), NULL;
  if (buffer_hold(self)) return NULL; /* before the memory is looked at */
  PyObject *function = arrays_function("prepare_dlpack"), *one = PyTuple_New(1), *facts = NULL, *capsule = NULL;
  PyObject *owner = self;
  if (one) PyTuple_SetItem(one, 0, Py_NewRef(self));
  if (function && one) facts = PyObject_Call(function, one, names);
  bool is_ready = facts && PyArg_ParseTuple(facts, "iipO", &device.type, &device.id, &versioned, &owner);
  if (is_ready && (owner == self || !buffer_hold(owner))) {
    capsule = dlpack_export_buffer(owner, device, versioned, owner == self ? 0 : DLPACK_COPIED);
    if (!capsule && owner != self) buffer_let_go(owner);
  }
  if (!capsule || owner != self) buffer_let_go(self);
  Py_XDECREF(facts);
  Py_XDECREF(one);
  Py_XDECREF(function);
  return capsule;
}

/* ---- In ---- */

/* An array without elements is in any order. */
bool dlpack_is_c_order(const struct dl_tensor *tensor)
{
  uint64_t step = 1;
  for (int i = 0; i < tensor->ndim; i++)
    if (!tensor->shape[i]) return true;
  for (int i = tensor->ndim; tensor->strides && i-- > 0; step *= (uint64_t)tensor->shape[i])
    if (tensor->shape[i] > 1 && (uint64_t)tensor->strides[i] != step) return false;
  return true;
}

static unsigned dlpack_element_bits(const struct dl_tensor *tensor)
{
  return (unsigned)tensor->dtype.bits * tensor->dtype.lanes;
}

/* An array without elements may have any other lengths. */
static bool dlpack_fits(const struct dl_tensor *tensor)
{
  uint64_t bytes = (dlpack_element_bits(tensor) + 7) / 8;
  bool fits = true;
  for (int i = 0; i < tensor->ndim; i++) {
    if (!tensor->shape[i]) return true;
    fits = !__builtin_mul_overflow(bytes, (uint64_t)tensor->shape[i], &bytes) && fits;
  }
  return fits && bytes <= PY_SSIZE_T_MAX;
}

/* Whether `data` of this device is an address: elsewhere, as with OpenCL and Vulkan, it is a handle. */
static bool dlpack_has_address(struct dl_device device)
{
  return dlpack_is_of_host(device) || device.type == DLPACK_CUDA || device.type == DLPACK_ROCM ||
         device.type == DLPACK_EXTENSION || device.type == DLPACK_CUDA_MANAGED;
}

/* What is wrong with a tensor; NULL: nothing. */
static const char *dlpack_blame(const struct dl_tensor *tensor)
{
  if (!dlpack_has_address(tensor->device)) return "is on a device whose addresses hipmm does not know";
  if (!dlpack_element_bits(tensor)) return "has elements of no bits";
  if (tensor->ndim < 0 || tensor->ndim > DLPACK_MOST_DIMENSIONS) return "has a wrong number of dimensions";
  if (tensor->ndim && !tensor->shape) return "has dimensions without lengths";
  for (int i = 0; i < tensor->ndim; i++)
    if (tensor->shape[i] < 0) return "has a negative length";
  if (!dlpack_fits(tensor)) return "has more bytes than there are addresses";
  return tensor->data || !dlpack_bytes(tensor, 0) ? NULL : "has bytes, but no address";
}

static const struct dl_tensor *dlpack_check(const struct dl_tensor *tensor)
{
  const char *blame = dlpack_blame(tensor);
  if (blame) PyErr_Format(PyExc_BufferError, "the DLPack tensor %s", blame);
  return blame ? NULL : tensor;
}

bool dlpack_is_packed(const struct dl_tensor *tensor, uint64_t flags)
{
  return dlpack_element_bits(tensor) % 8 && !(flags & DLPACK_PADDED);
}

uint64_t dlpack_bytes(const struct dl_tensor *tensor, uint64_t flags)
{
  uint64_t count = 1, bits = dlpack_element_bits(tensor);
  for (int i = 0; i < tensor->ndim; i++) count *= (uint64_t)tensor->shape[i];
  if (dlpack_is_packed(tensor, flags)) return count / 8 * bits + (count % 8 * bits + 7) / 8;
  return count * ((bits + 7) / 8);
}

const struct dl_tensor *dlpack_tensor(PyObject *capsule, uint64_t *flags_out)
{
  *flags_out = 0;
  if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
    const struct dl_versioned *versioned = PyCapsule_GetPointer(capsule, "dltensor_versioned");
    if (versioned->major == 1) *flags_out = versioned->flags;
    if (versioned->major == 1) return dlpack_check(&versioned->tensor);
    return PyErr_Format(PyExc_BufferError, "a DLPack tensor of version %u; hipmm knows version 1", versioned->major),
           NULL;
  }
  if (PyCapsule_IsValid(capsule, "dltensor"))
    return dlpack_check(&((struct dl_managed *)PyCapsule_GetPointer(capsule, "dltensor"))->tensor);
  return PyErr_SetString(PyExc_TypeError, "not a DLPack capsule, or a used one"), NULL;
}

/* (address, bytes, whether it is memory of the host): of a capsule, which stays the caller's. */
PyObject *dlpack_open(PyObject *unused, PyObject *capsule)
{
  (void)unused;
  uint64_t flags;
  const struct dl_tensor *tensor = dlpack_tensor(capsule, &flags);
  if (!tensor) return NULL;
  if (!dlpack_is_c_order(tensor))
    return PyErr_SetString(PyExc_ValueError, "the array is not contiguous in C order; copy it first"), NULL;
  return Py_BuildValue("NKO", PyLong_FromVoidPtr((char *)tensor->data + tensor->byte_offset),
                       (unsigned long long)dlpack_bytes(tensor, flags),
                       tensor->device.type == DLPACK_CPU ? Py_True : Py_False);
}
