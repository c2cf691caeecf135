/* SPDX-License-Identifier: MIT */
/* view.c: the type View: an array of another library, as DLPack gives it, without a copy. The View consumes the capsule, so
 * it owns the tensor, and calls its deleter once, when the object dies. */
#include "dlpack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static PyTypeObject *view_type;

struct view {
  PyObject_HEAD const struct dl_tensor *tensor;
  void *managed; /* a dl_versioned, or a dl_managed */
  bool versioned;
  uint64_t flags;        /* of a dl_versioned */
  hipmm_stream_t stream; /* on which the contents are ready */
  PyObject *weakrefs;
};

/* ---- Life ---- */

/* hipmm._arrays.from_dlpack() calls it with (capsule, stream), for which the producer was asked. */
static PyObject *view_new(PyTypeObject *type, PyObject *args, PyObject *names)
{
  PyObject *capsule, *given;
  hipmm_stream_t stream;
  if (names || !PyArg_ParseTuple(args, "OO:View", &capsule, &given) || stream_from(given, &stream)) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "a View is made by hipmm.from_dlpack()");
    return NULL;
  }
  uint64_t flags;
  const struct dl_tensor *tensor = dlpack_tensor(capsule, &flags);
  if (!tensor) return NULL;
  bool versioned = PyCapsule_IsValid(capsule, "dltensor_versioned");
  void *managed = PyCapsule_GetPointer(capsule, versioned ? "dltensor_versioned" : "dltensor");
  struct view *self = (struct view *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
  if (!self) return NULL;
  if (PyCapsule_SetName(capsule, versioned ? "used_dltensor_versioned" : "used_dltensor")) {
    Py_DECREF(self); /* owns nothing yet */
    return NULL;
  }
  self->tensor = tensor;
  self->managed = managed;
  self->versioned = versioned;
  self->flags = flags;
  self->stream = stream;
  return (PyObject *)self;
}

/* A deleter may run code of Python: an exception under way is kept from it. */
static void view_dealloc(PyObject *object)
{
  struct view *self = (struct view *)object;
  PyTypeObject *type = Py_TYPE(object);
  PyObject *exception[3];
  if (self->weakrefs) PyObject_ClearWeakRefs(object);
  PyErr_Fetch(&exception[0], &exception[1], &exception[2]);
  struct dl_versioned *versioned = self->versioned ? self->managed : NULL;
  struct dl_managed *managed = self->versioned ? NULL : self->managed;
  if (versioned && versioned->deleter) versioned->deleter(versioned);
  if (managed && managed->deleter) managed->deleter(managed);
  PyErr_Restore(exception[0], exception[1], exception[2]);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF(type);
}

/* ---- Facts ---- */

static bool view_is_read_only(const struct view *self)
{
  return self->flags & DLPACK_READ_ONLY;
}

static uint64_t view_bytes(const struct view *self)
{
  return dlpack_bytes(self->tensor, self->flags);
}

static char *view_data(const struct view *self)
{
  return (char *)self->tensor->data + self->tensor->byte_offset;
}

static PyObject *view_get_ptr(PyObject *self, void *unused)
{
  (void)unused;
  return PyLong_FromVoidPtr(view_data((struct view *)self));
}

static PyObject *view_get_nbytes(PyObject *self, void *unused)
{
  (void)unused;
  return PyLong_FromUnsignedLongLong(view_bytes((struct view *)self));
}

/* A tuple of the shape, or of the strides times `unit`. */
static PyObject *view_tuple(const struct dl_tensor *tensor, const int64_t *numbers, uint64_t unit)
{
  PyObject *tuple = PyTuple_New(tensor->ndim);
  for (int i = 0; tuple && i < tensor->ndim; i++) {
    PyObject *number = PyLong_FromLongLong((int64_t)((uint64_t)numbers[i] * unit));
    if (!number || PyTuple_SetItem(tuple, i, number)) Py_CLEAR(tuple);
  }
  return tuple;
}

static PyObject *view_get_shape(PyObject *self, void *unused)
{
  (void)unused;
  const struct dl_tensor *tensor = ((struct view *)self)->tensor;
  return view_tuple(tensor, tensor->shape, 1);
}

/* As __array_interface__ has it: "|V2" for types of elements that it does not know, such as bfloat16. */
static PyObject *view_get_typestr(PyObject *self, void *unused)
{
  static const char kinds[] = {
      [DLPACK_INT] = 'i', [DLPACK_UNSIGNED] = 'u', [DLPACK_FLOAT] = 'f', [DLPACK_COMPLEX] = 'c', [DLPACK_BOOL] = 'b'};
  (void)unused;
  const struct dl_tensor *tensor = ((struct view *)self)->tensor;
  unsigned code = tensor->dtype.code, bits = (unsigned)tensor->dtype.bits * tensor->dtype.lanes;
  char kind = code < sizeof kinds && tensor->dtype.lanes == 1 ? kinds[code] : '\0';
  if (bits % 8)
    return PyErr_Format(PyExc_BufferError, "elements of %u bits have no type of __cuda_array_interface__", bits);
  return PyUnicode_FromFormat("%c%c%u", !kind || bits == 8 ? '|' : '<', kind ? kind : 'V', bits / 8);
}

static PyObject *view_get_read_only(PyObject *self, void *unused)
{
  (void)unused;
  return PyBool_FromLong(view_is_read_only((struct view *)self));
}

static PyObject *view_get_stream(PyObject *self, void *unused)
{
  (void)unused;
  return PyLong_FromVoidPtr(((struct view *)self)->stream);
}

/* ---- For others ---- */

/* Memory of the host is a device's on the software device only. Where there is no such interface, hasattr() is false. */
static PyObject *view_array_interface(PyObject *object, void *unused)
{
  const struct view *self = (struct view *)object;
  const struct dl_tensor *tensor = self->tensor;
  const char *runtime = api.runtime();
  if (tensor->device.type == DLPACK_CPU && (!runtime || strcmp(runtime, "software") != 0))
    return PyErr_SetString(PyExc_AttributeError, "the array is in memory of the host"), NULL;
  if ((unsigned)tensor->dtype.bits * tensor->dtype.lanes % 8)
    return PyErr_SetString(PyExc_AttributeError, "the elements are no whole numbers of bytes"), NULL;
  PyObject *type = view_get_typestr(object, unused), *shape = type ? view_get_shape(object, unused) : NULL;
  uint64_t bytes = (uint64_t)tensor->dtype.bits * tensor->dtype.lanes / 8;
  PyObject *strides = dlpack_is_c_order(tensor) ? Py_NewRef(Py_None) : view_tuple(tensor, tensor->strides, bytes);
  if (!type || !shape || !strides) {
    Py_XDECREF(type);
    Py_XDECREF(shape);
    Py_XDECREF(strides);
    return NULL;
  }
  return Py_BuildValue("{s:(NO),s:N,s:N,s:N,s:i,s:N}", "data", PyLong_FromVoidPtr(view_data(self)),
                       view_is_read_only(self) ? Py_True : Py_False, "shape", shape, "strides", strides, "typestr",
                       type, "version", 3, "stream",
                       PyLong_FromVoidPtr(self->stream ? self->stream : HIPMM_LEGACY_STREAM));
}

static PyObject *view_dlpack_device(PyObject *self, PyObject *unused)
{
  (void)unused;
  const struct dl_device *device = &((struct view *)self)->tensor->device;
  return Py_BuildValue("ii", device->type, device->id);
}

/* hipmm._arrays checks the arguments and orders the streams. */
static PyObject *view_dlpack(PyObject *object, PyObject *args, PyObject *names)
{
  struct view *self = (struct view *)object;
  int versioned;
  if (PyTuple_Size(args)) return PyErr_SetString(PyExc_TypeError, "__dlpack__() takes keyword arguments only"), NULL;
  PyObject *function = arrays_function("prepare_view"), *one = PyTuple_New(1), *answer = NULL, *capsule = NULL;
  if (one) PyTuple_SetItem(one, 0, Py_NewRef(object));
  if (function && one) answer = PyObject_Call(function, one, names);
  versioned = answer ? PyObject_IsTrue(answer) : -1;
  if (versioned == 0 && self->flags & (DLPACK_READ_ONLY | DLPACK_PADDED))
    PyErr_Format(PyExc_BufferError, "the array is %s, which only DLPack 1.0 can say: pass max_version=(1, 0)",
                 view_is_read_only(self) ? "read-only" : "of padded elements");
  else if (versioned >= 0)
    capsule = dlpack_export(object, self->tensor, 0, versioned, self->flags, NULL);
  Py_XDECREF(answer);
  Py_XDECREF(one);
  Py_XDECREF(function);
  return capsule;
}

/* Of the types that the buffer protocol has, as NumPy writes them; NULL: another one. */
static char *view_format(const struct dl_tensor *tensor)
{
  static const struct {
    unsigned code, bits;
    char *format;
  } formats[] = {{DLPACK_INT, 8, "b"},        {DLPACK_INT, 16, "h"},      {DLPACK_INT, 32, "i"},
                 {DLPACK_INT, 64, "l"},       {DLPACK_UNSIGNED, 8, "B"},  {DLPACK_UNSIGNED, 16, "H"},
                 {DLPACK_UNSIGNED, 32, "I"},  {DLPACK_UNSIGNED, 64, "L"}, {DLPACK_FLOAT, 16, "e"},
                 {DLPACK_FLOAT, 32, "f"},     {DLPACK_FLOAT, 64, "d"},    {DLPACK_COMPLEX, 64, "Zf"},
                 {DLPACK_COMPLEX, 128, "Zd"}, {DLPACK_BOOL, 8, "?"}};
  for (size_t i = 0; tensor->dtype.lanes == 1 && i < sizeof formats / sizeof *formats; i++)
    if (formats[i].code == tensor->dtype.code && formats[i].bits == tensor->dtype.bits) return formats[i].format;
  return NULL;
}

/* The lengths, and then the strides in bytes, as the flags of the request want them. Elements without a format are bytes in
 * one more dimension; packed ones are bytes in one. */
static int view_describe(const struct view *self, Py_buffer *view, int flags)
{
  const struct dl_tensor *tensor = self->tensor;
  bool packed = dlpack_is_packed(tensor, self->flags);
  Py_ssize_t bytes = ((Py_ssize_t)tensor->dtype.bits * tensor->dtype.lanes + 7) / 8;
  char *format = view_format(tensor);
  int n = packed ? 0 : tensor->ndim, ndim = n + (format ? 0 : 1);
  Py_ssize_t *shape = malloc(2 * (size_t)(ndim + 1) * sizeof *shape), step = format ? bytes : 1;
  if (!shape) return PyErr_NoMemory(), -1;
  for (int i = 0; i < ndim; i++) shape[i] = i < n ? (Py_ssize_t)tensor->shape[i] : packed ? view->len : bytes;
  for (int i = ndim; i-- > 0; step *= shape[i]) shape[ndim + i] = step;
  view->internal = shape;
  view->itemsize = format ? bytes : 1;
  view->ndim = ndim;
  view->shape = shape;
  view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? shape + ndim : NULL;
  view->format = !(flags & PyBUF_FORMAT) ? NULL : format ? format : "B";
  return 0;
}

static void view_release_buffer(PyObject *object, Py_buffer *view)
{
  (void)object;
  free(view->internal);
}

static int view_get_buffer(PyObject *object, Py_buffer *view, int flags)
{
  const struct view *self = (struct view *)object;
  view->obj = NULL;
  if (!dlpack_is_of_host(self->tensor->device) || !dlpack_is_c_order(self->tensor)) {
    PyErr_SetString(PyExc_BufferError,
                    "only an array in memory of the host, in C order, has the buffer protocol; copy it "
                    "with hipmm.Buffer.copy_of()");
    return -1;
  }
  static char none[1];
  char *data = view_data(self);
  if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS && self->tensor->ndim > 1) {
    PyErr_SetString(PyExc_BufferError, "the array is in C order, not in Fortran's");
    return -1;
  }
  if (PyBuffer_FillInfo(view, object, data ? data : none, (Py_ssize_t)view_bytes(self), view_is_read_only(self), flags))
    return -1;
  view->internal = NULL;
  if (!(flags & PyBUF_ND) || !view_describe(self, view, flags)) return 0;
  PyBuffer_Release(view);
  return -1;
}

static PyObject *view_repr(PyObject *object)
{
  const struct view *self = (struct view *)object;
  char words[80];
  snprintf(words, sizeof words, "<hipmm.View of %llu bytes at %p on DLPack device (%d, %d)>",
           (unsigned long long)view_bytes(self), (void *)view_data(self), (int)self->tensor->device.type,
           (int)self->tensor->device.id);
  return PyUnicode_FromString(words);
}

/* ---- The type ---- */

static PyMethodDef view_methods[] = {
    {"__array__", (PyCFunction)(void (*)(void))buffer_array, METH_VARARGS | METH_KEYWORDS, NULL},
    {"__dlpack__", (PyCFunction)(void (*)(void))view_dlpack, METH_VARARGS | METH_KEYWORDS, NULL},
    {"__dlpack_device__", view_dlpack_device, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL}};

static PyGetSetDef view_properties[] = {
    {"ptr", view_get_ptr, NULL, "The address of the first element.", NULL},
    {"nbytes", view_get_nbytes, NULL, "The size of the elements in bytes.", NULL},
    {"shape", view_get_shape, NULL, "The lengths, as a tuple.", NULL},
    {"typestr", view_get_typestr, NULL, "The type of the elements, such as \"<f4\".", NULL},
    {"read_only", view_get_read_only, NULL, "Whether the contents must not be changed.", NULL},
    {"stream", view_get_stream, NULL, "The handle of the stream on which the contents are ready.", NULL},
    {"__cuda_array_interface__", view_array_interface, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL}};

static PyMemberDef view_members[] = WEAK_REFERENCES(struct view);

static PyType_Slot view_slots[] = {
    {Py_tp_doc,
     "An array of another library without a copy, from hipmm.from_dlpack(). It keeps the array's memory, and "
     "gives that to others by DLPack, __cuda_array_interface__ and, for memory of the host, the buffer "
     "protocol. The memory goes back to its library when the View dies."},
    {Py_tp_new, (void *)view_new},
    {Py_tp_dealloc, (void *)view_dealloc},
    {Py_tp_members, view_members},
    {Py_tp_repr, (void *)view_repr},
    {Py_tp_methods, view_methods},
    {Py_tp_getset, view_properties},
    {Py_bf_getbuffer, (void *)view_get_buffer},
    {Py_bf_releasebuffer, (void *)view_release_buffer},
    {0, NULL}};

static PyType_Spec view_spec = {"hipmm.View", sizeof(struct view), 0, Py_TPFLAGS_DEFAULT, view_slots};

int view_init(PyObject *module)
{
  view_type = (PyTypeObject *)PyType_FromSpec(&view_spec);
  return view_type ? PyModule_AddObjectRef(module, "View", (PyObject *)view_type) : -1;
}
