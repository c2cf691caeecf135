/* SPDX-License-Identifier: MIT */
/* span.c: the type Span, over the functions of hipmm/span.h: addresses, and memory under a part of them. The class
 * hipmm.GrowingBuffer is made of it (hipmm/_growing.py). */
#include "dlpack.h"

struct span {
  PyObject_HEAD void *ptr;
  size_t bytes, granule;
  struct hipmm_resource *resource; /* a reference */
  hipmm_stream_t stream;           /* the last that uses the memory */
  PyObject *stream_object;         /* keeps it alive; NULL for the default stream */
  int views;                       /* of DLPack, under which no memory goes */
  PyObject *weakrefs;
  struct use use; /* of those of the host */
};

static PyTypeObject *span_type;

/* ---- Life ---- */

/* The current resource stays the Span's own, whichever is current later. */
static int span_open(struct span *self, size_t bytes, struct hipmm_resource *resource)
{
  enum hipmm_status status = HIPMM_OK;
  if (resource)
    api.resource_retain(resource);
  else
    CALL(status, api.resource_get_current(&resource));
  if (status) return call_raise(), -1;
  self->resource = resource;
  CALL(status, api.span_create(resource, bytes, &self->granule, &self->ptr));
  self->bytes = bytes;
  return status ? (call_raise(), -1) : 0;
}

/* Span(nbytes, stream, resource) */
static PyObject *span_new(PyTypeObject *type, PyObject *args, PyObject *names)
{
  PyObject *size, *given, *from;
  size_t bytes;
  hipmm_stream_t stream;
  struct hipmm_resource *resource;
  (void)names; /* of the class made of it */
  if (!PyArg_ParseTuple(args, "OOO:Span", &size, &given, &from)) return NULL;
  if (size_from(size, "maximum", &bytes) || stream_from(given, &stream) || resource_from(from, &resource)) return NULL;
  struct span *self = (struct span *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
  if (!self) return NULL;
  self->stream = stream;
  self->stream_object = given == Py_None ? NULL : Py_NewRef(given);
  if (!span_open(self, bytes, resource)) return (PyObject *)self;
  Py_DECREF(self);
  return NULL;
}

/* A failure leaves the memory to the pool, which frees it when it is destroyed. */
static void span_dealloc(PyObject *object)
{
  struct span *self = (struct span *)object;
  PyTypeObject *type = Py_TYPE(object);
  enum hipmm_status status;
  if (self->weakrefs) PyObject_ClearWeakRefs(object);
  if (self->ptr) CALL(status, api.span_destroy(self->ptr, self->stream));
  if (self->resource) api.resource_release(self->resource);
  Py_XDECREF(self->stream_object);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF(type);
}

/* ---- Memory ---- */

static PyObject *span_commit(PyObject *object, PyObject *args)
{
  Py_ssize_t offset, bytes;
  enum hipmm_status status;
  if (!PyArg_ParseTuple(args, "nn", &offset, &bytes)) return NULL;
  CALL_ALLOCATE(status, api.span_commit(((struct span *)object)->ptr, (size_t)offset, (size_t)bytes), (size_t)bytes);
  return call_result(status);
}

static PyObject *span_decommit(PyObject *object, PyObject *args)
{
  const struct span *self = (struct span *)object;
  Py_ssize_t offset, bytes;
  enum hipmm_status status;
  if (!PyArg_ParseTuple(args, "nn", &offset, &bytes)) return NULL;
  CALL(status, api.span_decommit(self->ptr, (size_t)offset, (size_t)bytes, self->stream));
  return call_result(status);
}

static void span_drop_view(PyObject *object)
{
  ((struct span *)object)->views--;
}

static void span_drop_host_view(PyObject *object)
{
  span_drop_view(object);
  use_end(&((struct span *)object)->use);
}

/* (bytes from the start, DLPack's device, its number, whether the consumer knows DLPack 1.0): a capsule. While a view of the host
 * lives, the resource cannot sleep. */
static PyObject *span_export(PyObject *object, PyObject *args)
{
  struct span *self = (struct span *)object;
  Py_ssize_t bytes;
  struct dl_device device;
  int versioned;
  if (!PyArg_ParseTuple(args, "niip", &bytes, &device.type, &device.id, &versioned)) return NULL;
  bool is_of_host = dlpack_is_of_host(device);
  struct dl_tensor tensor = {.data = self->ptr, .device = device, .ndim = 1, .dtype = {DLPACK_UNSIGNED, 8, 1}};
  if (is_of_host && use_begin(&self->use, self->resource, false)) return NULL;
  PyObject *capsule =
      dlpack_export(object, &tensor, (size_t)bytes, versioned, 0, is_of_host ? span_drop_host_view : span_drop_view);
  if (capsule)
    self->views++;
  else if (is_of_host)
    use_end(&self->use);
  return capsule;
}

/* ---- Facts ---- */

static PyObject *span_get_ptr(PyObject *self, void *unused)
{
  (void)unused;
  return PyLong_FromVoidPtr(((struct span *)self)->ptr);
}

static PyObject *span_get_maximum(PyObject *self, void *unused)
{
  (void)unused;
  return PyLong_FromSize_t(((struct span *)self)->bytes);
}

static PyObject *span_get_granule(PyObject *self, void *unused)
{
  (void)unused;
  return PyLong_FromSize_t(((struct span *)self)->granule);
}

static PyObject *span_get_device(PyObject *self, void *unused)
{
  (void)unused;
  return PyLong_FromLong(api.resource_device(((struct span *)self)->resource));
}

static PyObject *span_get_stream(PyObject *self, void *unused)
{
  (void)unused;
  return PyLong_FromVoidPtr(((struct span *)self)->stream);
}

static PyObject *span_get_resource(PyObject *self, void *unused)
{
  (void)unused;
  struct hipmm_resource *resource = ((struct span *)self)->resource;
  api.resource_retain(resource);
  return resource_wrap(resource);
}

static PyObject *span_get_views(PyObject *self, void *unused)
{
  (void)unused;
  return PyLong_FromLong(((struct span *)self)->views);
}

/* ---- The type ---- */

static PyMethodDef span_methods[] = {{"_commit", span_commit, METH_VARARGS, NULL},
                                     {"_decommit", span_decommit, METH_VARARGS, NULL},
                                     {"_export", span_export, METH_VARARGS, NULL},
                                     {NULL, NULL, 0, NULL}};

static PyGetSetDef span_properties[] = {
    {"ptr", span_get_ptr, NULL, "The address, which never changes.", NULL},
    {"maximum", span_get_maximum, NULL, "The bytes that it may grow to.", NULL},
    {"granule", span_get_granule, NULL, "The bytes of memory that come and go as one.", NULL},
    {"device", span_get_device, NULL, "The device.", NULL},
    {"stream", span_get_stream, NULL, "The handle of the last stream that uses the memory.", NULL},
    {"resource", span_get_resource, NULL, "The Resource that the memory is from.", NULL},
    {"_views", span_get_views, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL}};

static PyMemberDef span_members[] = WEAK_REFERENCES(struct span);

static PyType_Slot span_slots[] = {{Py_tp_new, (void *)span_new},   {Py_tp_dealloc, (void *)span_dealloc},
                                   {Py_tp_members, span_members},   {Py_tp_methods, span_methods},
                                   {Py_tp_getset, span_properties}, {0, NULL}};

static PyType_Spec span_spec = {"hipmm._hipmm.Span", sizeof(struct span), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                                span_slots};

int span_init(PyObject *module)
{
  span_type = (PyTypeObject *)PyType_FromSpec(&span_spec);
  return span_type ? PyModule_AddObjectRef(module, "Span", (PyObject *)span_type) : -1;
}
