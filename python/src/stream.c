/* SPDX-License-Identifier: MIT */
/* stream.c: streams: hipmm's own as a type, and those of frameworks as arguments. */
#include "extension.h"

PyTypeObject *stream_type;

struct stream {
  PyObject_HEAD hipmm_stream_t handle;
  int device;
  bool is_owned;   /* destroyed with the object */
  PyObject *owner; /* keeps the handle alive; may be NULL */
  PyObject *weakrefs;
};

/* ---- Streams of frameworks ---- */

static int stream_from_int(PyObject *number, hipmm_stream_t *stream_out)
{
  *stream_out = PyLong_AsVoidPtr(number);
  if (*stream_out || !PyErr_Occurred()) return 0;
  if (PyErr_ExceptionMatches(PyExc_OverflowError))
    PyErr_Format(PyExc_OverflowError, "%R is not the handle of a stream", number);
  return -1;
}

/* The CUDA stream protocol: (version, handle), from a method or an attribute. */
static int stream_from_protocol(PyObject *value, hipmm_stream_t *stream_out)
{
  int version;
  PyObject *handle, *pair = PyCallable_Check(value) ? PyObject_CallNoArgs(value) : Py_NewRef(value);
  int result = -1;
  if (pair && PyTuple_Check(pair) &&
      PyArg_ParseTuple(pair, "iO;__cuda_stream__ is a pair of version and handle", &version, &handle)) {
    if (version == 0)
      result = stream_from_int(handle, stream_out);
    else
      PyErr_Format(PyExc_NotImplementedError, "hipmm knows version 0 of __cuda_stream__, not version: '%d'", version);
  } else if (pair && !PyErr_Occurred()) {
    PyErr_SetString(PyExc_TypeError, "__cuda_stream__ is not a pair of version and handle");
  }
  Py_XDECREF(pair);
  return result;
}

/* An attribute that is an int, or is converted to one; 1 if there is none. */
static int stream_from_attribute(PyObject *object, const char *name, hipmm_stream_t *stream_out)
{
  PyObject *value = PyObject_GetAttrString(object, name);
  if (!value) {
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return -1;
    PyErr_Clear();
    return 1;
  }
  int result = 1;
  if (name[0] == '_')
    result = stream_from_protocol(value, stream_out);
  else if (PyLong_Check(value))
    result = stream_from_int(value, stream_out);
  Py_DECREF(value);
  return result;
}

int stream_from(PyObject *object, hipmm_stream_t *stream_out)
{
  /* PyTorch has `cuda_stream`, CuPy has `ptr`, as memory has; Numba's streams convert to int. */
  static const char *const attributes[] = {"__cuda_stream__", "cuda_stream"};
  if (!object || object == Py_None) {
    *stream_out = HIPMM_DEFAULT_STREAM;
    return 0;
  }
  if (PyObject_TypeCheck(object, stream_type)) {
    *stream_out = ((struct stream *)object)->handle;
    return 0;
  }
  if (PyLong_Check(object)) return stream_from_int(object, stream_out);
  for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
    int result = stream_from_attribute(object, attributes[i], stream_out);
    if (result <= 0) return result;
  }
  bool can_be_waited_for = !PyObject_TypeCheck(object, buffer_type) && PyObject_HasAttrString(object, "synchronize");
  if (can_be_waited_for) {
    int result = stream_from_attribute(object, "ptr", stream_out);
    if (result <= 0) return result;
  }
  if (can_be_waited_for && PyObject_HasAttrString(object, "__int__")) {
    PyObject *number = PyNumber_Long(object);
    int result = number ? stream_from_int(number, stream_out) : -1;
    Py_XDECREF(number);
    return result;
  }
  PyErr_Format(PyExc_TypeError,
               "%R is not a stream: give None, an int, a hipmm.Stream, or an object with __cuda_stream__, such as a "
               "stream of PyTorch, CuPy or Numba",
               object);
  return -1;
}

/* ---- The type ---- */

static PyObject *stream_new(PyTypeObject *type, PyObject *args, PyObject *names)
{
  static char *words[] = {"stream", "device", "non_blocking", NULL};
  PyObject *given = NULL, *device = NULL;
  int non_blocking = 0;
  if (!PyArg_ParseTupleAndKeywords(args, names, "|O$Op:Stream", words, &given, &device, &non_blocking)) return NULL;
  allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
  struct stream *self = (struct stream *)allocate(type, 0);
  if (!self) return NULL;
  enum hipmm_status status = HIPMM_OK;
  if (given && (!device || device == Py_None))
    self->device = PyObject_TypeCheck(given, stream_type) ? ((struct stream *)given)->device : -1;
  else if (device_from(device, &self->device))
    goto failed;
  if (given && stream_from(given, &self->handle)) goto failed;
  if (given) {
    self->owner = Py_NewRef(given);
  } else {
    CALL(status, api.stream_create(self->device, non_blocking ? HIPMM_STREAM_NON_BLOCKING : HIPMM_STREAM_SYNC_DEFAULT,
                                   &self->handle));
    self->is_owned = !status;
  }
  if (!status) return (PyObject *)self;
  call_raise();
failed:
  Py_DECREF(self);
  return NULL;
}

/* No tp_clear, as Buffer: see buffer.c. */
static int stream_traverse(struct stream *self, visitproc visit, void *arg)
{
  Py_VISIT(self->owner);
  Py_VISIT(Py_TYPE(self));
  return 0;
}

static void stream_dealloc(struct stream *self)
{
  PyObject_GC_UnTrack(self);
  if (self->weakrefs) PyObject_ClearWeakRefs((PyObject *)self);
  PyTypeObject *type = Py_TYPE(self);
  freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
  enum hipmm_status status;
  if (self->is_owned) CALL(status, api.stream_destroy(self->handle));
  Py_XDECREF(self->owner);
  release(self);
  Py_DECREF(type);
}

/* The device to name in a call; -1 with an exception. */
static int stream_device(const struct stream *self)
{
  int device = self->device;
  return device < 0 && device_from(NULL, &device) ? -1 : device;
}

static PyObject *stream_synchronize(struct stream *self, PyObject *unused)
{
  (void)unused;
  enum hipmm_status status;
  int device = stream_device(self);
  if (device < 0) return NULL;
  CALL(status, api.stream_synchronize(device, self->handle));
  return call_result(status);
}

static PyObject *stream_query(struct stream *self, PyObject *unused)
{
  (void)unused;
  enum hipmm_status status;
  int done, device = stream_device(self);
  if (device < 0) return NULL;
  CALL(status, api.stream_query(device, self->handle, &done));
  return status ? call_raise() : PyBool_FromLong(done);
}

static PyObject *stream_wait(struct stream *self, PyObject *other)
{
  hipmm_stream_t stream;
  if (stream_from(other, &stream)) return NULL;
  int device = stream_device(self), other_device = device;
  if (device >= 0 && PyObject_TypeCheck(other, stream_type)) other_device = stream_device((struct stream *)other);
  if (device < 0 || other_device < 0) return NULL;
  enum hipmm_status status;
  CALL(status, api.stream_wait(device, self->handle, other_device, stream));
  return call_result(status);
}

static PyObject *stream_protocol(struct stream *self, PyObject *unused)
{
  (void)unused;
  return Py_BuildValue("iN", 0, PyLong_FromVoidPtr(self->handle));
}

static PyObject *stream_get_handle(struct stream *self, void *unused)
{
  (void)unused;
  return PyLong_FromVoidPtr(self->handle);
}

static PyObject *stream_get_device(struct stream *self, void *unused)
{
  (void)unused;
  int device = stream_device(self);
  return device < 0 ? NULL : PyLong_FromLong(device);
}

static PyObject *stream_get_is_default(struct stream *self, void *unused)
{
  (void)unused;
  return PyBool_FromLong(api.stream_is_default(self->handle));
}

static PyObject *stream_compare(PyObject *left, PyObject *right, int operation)
{
  if ((operation != Py_EQ && operation != Py_NE) || !PyObject_TypeCheck(left, stream_type) ||
      !PyObject_TypeCheck(right, stream_type))
    return Py_NewRef(Py_NotImplemented);
  const struct stream *a = (struct stream *)left, *b = (struct stream *)right;
  bool same_device = a->device == b->device || a->device < 0 || b->device < 0;
  return PyBool_FromLong((a->handle == b->handle && same_device) == (operation == Py_EQ));
}

static Py_hash_t stream_hash(struct stream *self)
{
  Py_hash_t hash = (Py_hash_t)((uintptr_t)self->handle + ((uintptr_t)self->handle >> 4) * 31);
  return hash == -1 ? -2 : hash;
}

static PyObject *stream_repr(struct stream *self)
{
  if (!self->handle) return PyUnicode_FromString("<hipmm.Stream default>");
  if (self->device < 0) return PyUnicode_FromFormat("<hipmm.Stream %p>", self->handle);
  return PyUnicode_FromFormat("<hipmm.Stream %p on device %d>", self->handle, self->device);
}

static PyMethodDef stream_methods[] = {
    {"synchronize", (PyCFunction)(void (*)(void))stream_synchronize, METH_NOARGS,
     "synchronize()\n--\n\nWaits until all work that was submitted so far has completed."},
    {"query", (PyCFunction)(void (*)(void))stream_query, METH_NOARGS,
     "query()\n--\n\nWhether all of this work has completed. Does not wait."},
    {"wait", (PyCFunction)(void (*)(void))stream_wait, METH_O,
     "wait(other, /)\n--\n\nMakes later work wait for the work that was submitted to `other` so far. The thread does "
     "not "
     "wait."},
    {"__cuda_stream__", (PyCFunction)(void (*)(void))stream_protocol, METH_NOARGS, "(0, handle)"},
    {NULL, NULL, 0, NULL}};

static PyGetSetDef stream_properties[] = {
    {"handle", (getter)stream_get_handle, NULL, "The runtime's handle, as an int.", NULL},
    {"device", (getter)stream_get_device, NULL, "The device.", NULL},
    {"is_default", (getter)stream_get_is_default, NULL, "Whether it is the device's default stream.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

static PyMemberDef stream_members[] = WEAK_REFERENCES(struct stream);

static PyType_Slot stream_slots[] = {
    {Py_tp_doc, "Stream(stream=None, *, device=None, non_blocking=False)\n--\n\n"
                "A new stream on a device (None: the current one), or hipmm's view of another stream. A new stream is "
                "destroyed with the object; Buffers keep it alive."},
    {Py_tp_new, (void *)stream_new},
    {Py_tp_dealloc, (void *)stream_dealloc},
    {Py_tp_traverse, (void *)stream_traverse},
    {Py_tp_members, stream_members},
    {Py_tp_repr, (void *)stream_repr},
    {Py_tp_hash, (void *)stream_hash},
    {Py_tp_richcompare, (void *)stream_compare},
    {Py_tp_methods, stream_methods},
    {Py_tp_getset, stream_properties},
    {0, NULL}};

static PyType_Spec stream_spec = {"hipmm.Stream", sizeof(struct stream), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, stream_slots};

int stream_init(PyObject *module)
{
  stream_type = (PyTypeObject *)PyType_FromSpec(&stream_spec);
  return stream_type ? PyModule_AddObjectRef(module, "Stream", (PyObject *)stream_type) : -1;
}
