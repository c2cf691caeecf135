/* SPDX-License-Identifier: MIT */
/* dlpack.c: Buffers as DLPack tensors, and the facts of a DLPack capsule for hipmm._arrays. The structs are DLPack's, of
 * its ABI version 0 (capsule "dltensor") and 1 ("dltensor_versioned"). */
#include "extension.h"

#include <stdlib.h>
#include <string.h>

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

/* One block for either form of a Buffer's tensor. */
struct dlpack_export {
  union {
    struct dl_managed managed;
    struct dl_versioned versioned;
  };
  int64_t shape[1], strides[1];
};

enum { DLPACK_CPU = 1, DLPACK_UNSIGNED = 1 };

/* ---- Out ---- */

/* Consumers may drop a tensor on any thread, and after Python has ended. */
static void dlpack_drop(PyObject *buffer, void *export)
{
  if (Py_IsInitialized()) {
    PyGILState_STATE state = PyGILState_Ensure();
    buffer_let_go(buffer);
    Py_DECREF(buffer);
    PyGILState_Release(state);
  }
  free(export);
}

static void dlpack_delete(struct dl_managed *managed)
{
  dlpack_drop(managed->context, managed);
}

static void dlpack_delete_versioned(struct dl_versioned *versioned)
{
  dlpack_drop(versioned->context, versioned);
}

/* Of a capsule that no consumer has renamed. */
static void dlpack_destroy_capsule(PyObject *capsule)
{
  if (PyCapsule_IsValid(capsule, "dltensor"))
    dlpack_delete(PyCapsule_GetPointer(capsule, "dltensor"));
  else if (PyCapsule_IsValid(capsule, "dltensor_versioned"))
    dlpack_delete_versioned(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
}

static PyObject *dlpack_export(PyObject *self, struct dl_device device, bool versioned)
{
  struct hipmm_buffer *buffer = buffer_handle(self);
  struct dlpack_export *export = calloc(1, sizeof *export);
  if (!export) return PyErr_NoMemory();
  if (buffer_hold(self)) {
    free(export);
    return NULL;
  }
  export->shape[0] = (int64_t)api.buffer_bytes(buffer);
  export->strides[0] = 1;
  struct dl_tensor tensor = {.data = api.buffer_data(buffer),
                             .device = device,
                             .ndim = 1,
                             .shape = export->shape,
                             .strides = export->strides,
                             .dtype = {DLPACK_UNSIGNED, 8, 1}};
  if (versioned)
    export->versioned =
        (struct dl_versioned){.major = 1, .context = self, .deleter = dlpack_delete_versioned, .tensor = tensor};
  else
    export->managed = (struct dl_managed){.tensor = tensor, .context = self, .deleter = dlpack_delete};
  PyObject *capsule = PyCapsule_New(export, versioned ? "dltensor_versioned" : "dltensor", dlpack_destroy_capsule);
  if (capsule) {
    Py_INCREF(self);
  } else {
    buffer_let_go(self);
    free(export);
  }
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

/* hipmm._arrays orders the streams and checks the arguments, and tells the device. */
PyObject *buffer_dlpack(PyObject *self, PyObject *args, PyObject *names)
{
  int versioned;
  struct dl_device device;
  if (PyTuple_Size(args)) return PyErr_SetString(PyExc_TypeError, "__dlpack__() takes keyword arguments only"), NULL;
  PyObject *function = arrays_function("prepare_dlpack"), *one = PyTuple_New(1), *facts = NULL, *capsule = NULL;
  if (one) PyTuple_SetItem(one, 0, Py_NewRef(self));
  if (function && one) facts = PyObject_Call(function, one, names);
  if (facts && PyArg_ParseTuple(facts, "iip", &device.type, &device.id, &versioned))
    capsule = dlpack_export(self, device, versioned);
  Py_XDECREF(facts);
  Py_XDECREF(one);
  Py_XDECREF(function);
  return capsule;
}

/* ---- In ---- */

static bool dlpack_is_c_order(const struct dl_tensor *tensor)
{
  int64_t step = 1;
  for (int i = tensor->ndim; tensor->strides && i-- > 0; step *= tensor->shape[i])
    if (tensor->shape[i] > 1 && tensor->strides[i] != step) return false;
  return true;
}

/* (address, bytes, whether it is memory of the host): of a capsule, which stays the caller's. */
PyObject *dlpack_open(PyObject *unused, PyObject *capsule)
{
  (void)unused;
  const struct dl_tensor *tensor = NULL;
  if (PyCapsule_IsValid(capsule, "dltensor_versioned"))
    tensor = &((struct dl_versioned *)PyCapsule_GetPointer(capsule, "dltensor_versioned"))->tensor;
  else if (PyCapsule_IsValid(capsule, "dltensor"))
    tensor = &((struct dl_managed *)PyCapsule_GetPointer(capsule, "dltensor"))->tensor;
  if (!tensor) return PyErr_SetString(PyExc_TypeError, "not a DLPack capsule, or a used one"), NULL;
  if (!dlpack_is_c_order(tensor))
    return PyErr_SetString(PyExc_ValueError, "the array is not contiguous in C order; copy it first"), NULL;
  uint64_t bytes = ((uint64_t)tensor->dtype.bits * tensor->dtype.lanes + 7) / 8;
  for (int i = 0; i < tensor->ndim; i++) bytes *= (uint64_t)tensor->shape[i];
  return Py_BuildValue("NKO", PyLong_FromVoidPtr((char *)tensor->data + tensor->byte_offset), (unsigned long long)bytes,
                       tensor->device.type == DLPACK_CPU ? Py_True : Py_False);
}
