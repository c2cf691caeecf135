/* SPDX-License-Identifier: MIT */
/* store.c: functions of the module on the names of a store (hipmm/serve.h). The classes are in hipmm/_store.py. */
#include "dlpack.h"

/* The function that the messages go through is the table's. */
#define hipmm_share_import_pointer api.share_import_pointer
#include <hipmm/serve.h>

/* Names that differ stay different, also where they are no UTF-8. */
#define NAME_ERRORS "surrogateescape"

/* (resource, name, address of a block, its bytes, description) */
static PyObject *store_put(PyObject *module, PyObject *args)
{
  (void)module;
  PyObject *given, *name, *address, *size;
  struct hipmm_resource *resource;
  struct hipmm_serve_put_message put = {.struct_size = sizeof put};
  const char *description;
  char *bytes;
  Py_ssize_t description_bytes;
  void *ptr;
  enum hipmm_status status;
  if (!PyArg_ParseTuple(args, "OUOOy#", &given, &name, &address, &size, &description, &description_bytes)) return NULL;
  if (resource_from(given, &resource) || address_from(address, &ptr) || size_from(size, "nbytes", &put.bytes))
    return NULL;
  PyObject *encoded = PyUnicode_AsEncodedString(name, "utf-8", NAME_ERRORS);
  if (!encoded) return NULL;
  if (PyBytes_AsStringAndSize(encoded, &bytes, NULL)) {
    Py_DECREF(encoded);
    return NULL;
  }
  put.name = bytes;
  put.ptr = ptr;
  put.description = description;
  put.description_bytes = (size_t)description_bytes;
  CALL(status, hipmm_serve_put(resource, &put));
  Py_DECREF(encoded);
  return call_result(status);
}

/* (resource, index): (name, address, bytes, description, number of names) */
static PyObject *store_get(PyObject *module, PyObject *args)
{
  (void)module;
  PyObject *given;
  Py_ssize_t index;
  struct hipmm_resource *resource;
  struct hipmm_serve_get_message get = {.struct_size = sizeof get};
  enum hipmm_status status;
  if (!PyArg_ParseTuple(args, "On", &given, &index) || resource_from(given, &resource)) return NULL;
  get.index = (size_t)index;
  CALL(status, hipmm_serve_get(resource, &get));
  if (status) return call_raise();
  PyObject *name = PyUnicode_DecodeUTF8(get.name, (Py_ssize_t)strlen(get.name), NAME_ERRORS);
  return Py_BuildValue("NNny#n", name, PyLong_FromVoidPtr(get.ptr), (Py_ssize_t)get.bytes, get.description,
                       (Py_ssize_t)get.description_bytes, (Py_ssize_t)get.n_names);
}

/* (owner, address, bytes, DLPack's device, its number, whether the consumer knows DLPack 1.0): a capsule, for reading only */
static PyObject *store_export(PyObject *module, PyObject *args)
{
  (void)module;
  PyObject *owner, *address;
  Py_ssize_t bytes;
  int versioned;
  struct dl_tensor tensor = {.ndim = 1, .dtype = {DLPACK_UNSIGNED, 8, 1}};
  if (!PyArg_ParseTuple(args, "OOniip", &owner, &address, &bytes, &tensor.device.type, &tensor.device.id, &versioned) ||
      address_from(address, &tensor.data))
    return NULL;
  return dlpack_export(owner, &tensor, (size_t)bytes, versioned, DLPACK_READ_ONLY, NULL);
}

PyMethodDef store_methods[] = {{"store_put", store_put, METH_VARARGS, NULL},
                               {"store_get", store_get, METH_VARARGS, NULL},
                               {"store_export", store_export, METH_VARARGS, NULL},
                               {NULL, NULL, 0, NULL}};
