/* SPDX-License-Identifier: MIT */
/* buffer.c: the type Buffer, over struct hipmm_buffer. The C buffer owns the memory and a reference to its resource, so
 * a Buffer may be freed at any time: after hipmm.finalize(), and while the interpreter ends. */
#include "buffer.h"

PyTypeObject *buffer_type;

/* tp_alloc and tp_free of the type itself, which PyType_GetSlot() would look up at each call; and objects of the type
 * itself that died and wait for their next life, linked by `owner`. With the GIL. */
static allocfunc buffer_allocate;
static freefunc buffer_free;
static struct buffer *dead;
static int n_dead;

enum { DEAD_MOST = 64 };

struct hipmm_buffer *buffer_handle(PyObject *self)
{
  return ((struct buffer *)self)->buffer;
}

/* ---- One thread at a time: a view, or a call without the GIL, holds the block ---- */

int buffer_begin(struct buffer *self, bool moves)
{
  if (moves ? self->users == 0 : self->users >= 0) {
    struct hipmm_buffer *buffer = self->buffer;
    if (use_begin(&self->use, api.buffer_bytes(buffer) ? api.buffer_resource(buffer) : NULL, false)) return -1;
    self->users += moves ? -1 : 1;
    return 0;
  }
  PyErr_SetString(PyExc_BufferError, self->users < 0
                                         ? "another thread is changing the size of this Buffer"
                                         : "the memory of this Buffer is in use by a view (memoryview, DLPack) "
                                           "or by another thread, so its size cannot change");
  return -1;
}

void buffer_end(struct buffer *self, bool moves)
{
  self->users -= moves ? -1 : 1;
  use_end(&self->use);
}

int buffer_hold(PyObject *self)
{
  return buffer_begin((struct buffer *)self, false);
}

void buffer_let_go(PyObject *self)
{
  buffer_end((struct buffer *)self, false);
}

void buffer_let_sleep(PyObject *self)
{
  use_end(&((struct buffer *)self)->use);
}

void buffer_let_move(PyObject *self)
{
  ((struct buffer *)self)->users--;
}

int buffer_stream(const struct buffer *self, PyObject *given, hipmm_stream_t *stream_out)
{
  if (given && given != Py_None) return stream_from(given, stream_out);
  *stream_out = api.buffer_stream(self->buffer);
  return 0;
}

/* The collector of garbage looks only at a Buffer that refers to something, or may: one of a subclass. */
static void buffer_track(struct buffer *self)
{
  if (!PyObject_GC_IsTracked((PyObject *)self)) PyObject_GC_Track(self);
}

/* There is no tp_clear: a cycle has an object of Python that breaks it, and a Buffer frees its memory before its stream
 * may go. */
static int buffer_traverse(PyObject *object, visitproc visit, void *arg)
{
  struct buffer *self = (struct buffer *)object;
  Py_VISIT(self->stream);
  Py_VISIT(self->owner);
  Py_VISIT(Py_TYPE(object));
  return 0;
}

static void buffer_keep_stream(struct buffer *self, PyObject *given)
{
  if (!given || given == Py_None) return;
  PyObject *before = self->stream;
  self->stream = Py_NewRef(given);
  buffer_track(self);
  Py_XDECREF(before);
}

/* ---- Life ---- */

static struct buffer *buffer_make(PyTypeObject *type)
{
  struct buffer *self = dead;
  if (type != buffer_type) return (struct buffer *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
  if (!self) {
    self = (struct buffer *)buffer_allocate(type, 0);
    if (self) PyObject_GC_UnTrack(self);
    return self;
  }
  dead = (struct buffer *)self->owner;
  n_dead--;
  self->owner = NULL;
  return (struct buffer *)PyObject_Init((PyObject *)self, type);
}

static void buffer_unmake(struct buffer *self)
{
  PyTypeObject *type = Py_TYPE(self);
  if (type != buffer_type) {
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
  } else if (n_dead < DEAD_MOST) {
    self->stream = NULL;
    self->users = 0;
    self->owner = (PyObject *)dead;
    dead = self;
    n_dead++;
  } else {
    buffer_free(self);
  }
  Py_DECREF(type);
}

/* The object for a C buffer, which it takes over. */
static PyObject *buffer_wrap(PyTypeObject *type, struct hipmm_buffer *buffer, PyObject *stream)
{
  struct buffer *self = buffer_make(type);
  if (!self) {
    api.buffer_destroy(buffer);
    return NULL;
  }
  self->buffer = buffer;
  buffer_keep_stream(self, stream);
  return (PyObject *)self;
}

static PyObject *buffer_create(PyTypeObject *type, PyObject *size, PyObject *given, PyObject *from)
{
  size_t bytes;
  hipmm_stream_t stream;
  struct hipmm_resource *resource;
  struct hipmm_buffer *buffer;
  enum hipmm_status status;
  if (size_from(size, "nbytes", &bytes) || stream_from(given, &stream) || resource_from(from, &resource)) return NULL;
  if (!api.buffer_try_create(resource, bytes, stream, &buffer)) {
    CALL_ALLOCATE(status, api.buffer_create(resource, bytes, stream, &buffer), bytes);
    if (status) return call_raise();
  }
  return buffer_wrap(type, buffer, given);
}

static PyObject *buffer_new(PyTypeObject *type, PyObject *args, PyObject *names)
{
  static char *words[] = {"nbytes", "stream", "resource", NULL};
  PyObject *size, *stream = NULL, *resource = NULL;
  if (!names && PyTuple_Size(args) == 1)
    size = PyTuple_GetItem(args, 0);
  else if (!PyArg_ParseTupleAndKeywords(args, names, "O|OO:Buffer", words, &size, &stream, &resource))
    return NULL;
  return buffer_create(type, size, stream, resource);
}

static void buffer_dealloc(PyObject *object)
{
  struct buffer *self = (struct buffer *)object;
  if (self->stream || self->owner || Py_TYPE(object) != buffer_type) PyObject_GC_UnTrack(object);
  if (self->weakrefs) PyObject_ClearWeakRefs(object);
  call_destroy_buffer(self->buffer);
  Py_XDECREF(self->stream);
  Py_XDECREF(self->owner);
  buffer_unmake(self);
}

static PyObject *buffer_copy(PyObject *object, PyObject *args, PyObject *names)
{
  static char *words[] = {"stream", "resource", NULL};
  struct buffer *self = (struct buffer *)object;
  PyObject *given = NULL, *from = NULL;
  hipmm_stream_t stream;
  struct hipmm_resource *resource;
  struct hipmm_buffer *buffer;
  enum hipmm_status status;
  if (!PyArg_ParseTupleAndKeywords(args, names, "|OO:copy", words, &given, &from)) return NULL;
  if (buffer_stream(self, given, &stream) || resource_from(from, &resource) || buffer_begin(self, false)) return NULL;
  struct use *target = resource ? resource_use(from) : &self->use; /* the copy is written there */
  if (!resource) resource = api.buffer_resource(self->buffer);
  if (use_begin(target, resource, false)) return buffer_end(self, false), NULL;
  CALL_ALLOCATE(status, api.buffer_copy(self->buffer, resource, stream, &buffer), api.buffer_bytes(self->buffer));
  use_end(target);
  buffer_end(self, false);
  return status ? call_raise() : buffer_wrap(Py_TYPE(object), buffer, given && given != Py_None ? given : self->stream);
}

/* ---- Size ---- */

typedef enum hipmm_status (*buffer_resizer)(struct hipmm_buffer *buffer, size_t bytes, hipmm_stream_t stream);

static PyObject *buffer_change(PyObject *object, PyObject *args, PyObject *names, buffer_resizer resize)
{
  static char *words[] = {"nbytes", "stream", NULL};
  struct buffer *self = (struct buffer *)object;
  PyObject *size, *given = NULL;
  size_t bytes;
  hipmm_stream_t stream;
  enum hipmm_status status;
  if (!PyArg_ParseTupleAndKeywords(args, names, "O|O", words, &size, &given)) return NULL;
  if (size_from(size, "nbytes", &bytes) || buffer_stream(self, given, &stream) || buffer_begin(self, true)) return NULL;
  CALL_ALLOCATE(status, resize(self->buffer, bytes, stream), bytes);
  if (!status) buffer_keep_stream(self, given);
  buffer_end(self, true);
  return call_result(status);
}

static PyObject *buffer_resize(PyObject *self, PyObject *args, PyObject *names)
{
  return buffer_change(self, args, names, api.buffer_resize);
}

static PyObject *buffer_reserve(PyObject *self, PyObject *args, PyObject *names)
{
  return buffer_change(self, args, names, api.buffer_reserve);
}

static PyObject *buffer_shrink(PyObject *object, PyObject *args, PyObject *names)
{
  static char *words[] = {"stream", NULL};
  struct buffer *self = (struct buffer *)object;
  PyObject *given = NULL;
  hipmm_stream_t stream;
  enum hipmm_status status;
  if (!PyArg_ParseTupleAndKeywords(args, names, "|O:shrink_to_fit", words, &given)) return NULL;
  if (buffer_stream(self, given, &stream) || buffer_begin(self, true)) return NULL;
  CALL(status, api.buffer_shrink_to_fit(self->buffer, stream));
  if (!status) buffer_keep_stream(self, given);
  buffer_end(self, true);
  return call_result(status);
}

/* ---- Facts ---- */

static PyObject *buffer_get_ptr(PyObject *self, void *unused)
{
  (void)unused;
  return PyLong_FromVoidPtr(api.buffer_data(buffer_handle(self)));
}

static PyObject *buffer_get_nbytes(PyObject *self, void *unused)
{
  (void)unused;
  return PyLong_FromSize_t(api.buffer_bytes(buffer_handle(self)));
}

static PyObject *buffer_get_capacity(PyObject *self, void *unused)
{
  (void)unused;
  return PyLong_FromSize_t(api.buffer_capacity_bytes(buffer_handle(self)));
}

static PyObject *buffer_get_device(PyObject *self, void *unused)
{
  (void)unused;
  return PyLong_FromLong(api.buffer_device(buffer_handle(self)));
}

static PyObject *buffer_get_stream(PyObject *self, void *unused)
{
  (void)unused;
  return PyLong_FromVoidPtr(api.buffer_stream(buffer_handle(self)));
}

static PyObject *buffer_get_resource(PyObject *self, void *unused)
{
  (void)unused;
  struct hipmm_resource *resource = api.buffer_resource(buffer_handle(self));
  if (!resource) Py_RETURN_NONE;
  api.resource_retain(resource);
  return resource_wrap(resource);
}

static PyObject *buffer_get_owner(PyObject *self, void *unused)
{
  (void)unused;
  PyObject *owner = ((struct buffer *)self)->owner;
  return Py_NewRef(owner ? owner : Py_None);
}

static int buffer_set_owner(PyObject *self, PyObject *owner, void *unused)
{
  (void)unused;
  PyObject *before = ((struct buffer *)self)->owner;
  ((struct buffer *)self)->owner = Py_XNewRef(owner);
  buffer_track((struct buffer *)self);
  Py_XDECREF(before);
  return 0;
}

static PyObject *buffer_get_stream_object(PyObject *self, void *unused)
{
  (void)unused;
  PyObject *stream = ((struct buffer *)self)->stream;
  return Py_NewRef(stream ? stream : Py_None);
}

static Py_ssize_t buffer_length(PyObject *self)
{
  return (Py_ssize_t)api.buffer_bytes(buffer_handle(self));
}

static PyObject *buffer_repr(PyObject *self)
{
  const struct hipmm_buffer *buffer = buffer_handle(self);
  const void *data = api.buffer_data(buffer);
  if (!data) return PyUnicode_FromFormat("<hipmm.Buffer of 0 bytes on device %d>", api.buffer_device(buffer));
  return PyUnicode_FromFormat("<hipmm.Buffer of %zu bytes at %p on device %d>", api.buffer_bytes(buffer), data,
                              api.buffer_device(buffer));
}

/* ---- The type ---- */

#define KEYWORDS(function) (PyCFunction)(void (*)(void))(function), METH_VARARGS | METH_KEYWORDS

static PyMethodDef buffer_methods[] = {
    {"resize", KEYWORDS(buffer_resize),
     "resize(nbytes, stream=None)\n--\n\nChanges the size to `nbytes` bytes; beyond the capacity, moves the contents "
     "to a new block. New bytes are undefined. Raises BufferError while a view of the memory lives, and "
     "hipmm.MemoryError: the Buffer is then as it was."},
    {"reserve", KEYWORDS(buffer_reserve),
     "reserve(nbytes, stream=None)\n--\n\nGrows the capacity to at least `nbytes` bytes. Raises as resize() does."},
    {"shrink_to_fit", KEYWORDS(buffer_shrink),
     "shrink_to_fit(stream=None)\n--\n\nMakes the capacity equal to the size. Raises as resize() does."},
    {"write", KEYWORDS(buffer_write),
     "write(source, offset=0, stream=None)\n--\n\nCopies host memory (bytes, an array of NumPy, …) to the Buffer at "
     "`offset` bytes, and waits. Raises IndexError beyond the Buffer's end."},
    {"read", KEYWORDS(buffer_read),
     "read(offset=0, nbytes=None, into=None, stream=None)\n--\n\nCopies `nbytes` bytes (None: up to the end) from "
     "`offset` bytes on to the host, and waits: returns bytes, or `into`, which is writable host memory. Raises "
     "IndexError beyond the Buffer's end."},
    {"fill", KEYWORDS(buffer_fill),
     "fill(value, offset=0, nbytes=None, stream=None)\n--\n\nSets `nbytes` bytes (None: up to the end) from "
     "`offset` bytes on to `value`, 0 to 255. Does not wait, unless only the host can access the memory. Raises "
     "IndexError beyond the Buffer's end."},
    {"copy", KEYWORDS(buffer_copy),
     "copy(stream=None, resource=None)\n--\n\nA Buffer with the same contents, on `stream` (None: the Buffer's), by "
     "default of the same resource. Does not wait. Raises hipmm.MemoryError."},
    {"synchronize", buffer_synchronize, METH_NOARGS,
     "synchronize()\n--\n\nWaits for the Buffer's stream. Raises hipmm.DeviceError."},
    {"to_numpy", KEYWORDS(buffer_to_numpy),
     "to_numpy(dtype=\"u1\", shape=None, stream=None)\n--\n\nThe contents as a new array of NumPy, of this dtype "
     "and shape (None: one dimension), whose bytes must fit into the Buffer; waits."},
    {"copy_of", (PyCFunction)(void (*)(void))buffer_copy_of, METH_VARARGS | METH_KEYWORDS | METH_CLASS,
     "copy_of(source, stream=None, resource=None)\n--\n\nA Buffer with a copy of `source`: host memory (bytes, an "
     "array of NumPy, …), or an array on a device (__cuda_array_interface__, DLPack), in C order. Raises "
     "TypeError for what is no memory, ValueError for another order, and hipmm.MemoryError."},
    {"__array__", KEYWORDS(buffer_array), NULL},
    {"__dlpack__", KEYWORDS(buffer_dlpack), NULL},
    {"__dlpack_device__", buffer_dlpack_device, METH_NOARGS, NULL},
    {"__reduce_ex__", buffer_reduce, METH_VARARGS, NULL},
    {"__bytes__", buffer_bytes, METH_NOARGS, NULL},
    {"_write_device", buffer_write_device, METH_VARARGS, NULL},
    {"_read_device", buffer_read_device, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL}};

static PyGetSetDef buffer_properties[] = {
    {"ptr", buffer_get_ptr, NULL, "The address; 0 for an empty Buffer.", NULL},
    {"nbytes", buffer_get_nbytes, NULL, "The size in bytes.", NULL},
    {"capacity", buffer_get_capacity, NULL, "The size of the block in bytes.", NULL},
    {"device", buffer_get_device, NULL, "The device.", NULL},
    {"stream", buffer_get_stream, NULL, "The handle of the stream on which the memory will be freed.", NULL},
    {"resource", buffer_get_resource, NULL, "The Resource that the memory is from.", NULL},
    {"_owner", buffer_get_owner, buffer_set_owner, NULL, NULL},
    {"_stream_object", buffer_get_stream_object, NULL, NULL, NULL},
    {"__cuda_array_interface__", buffer_array_interface, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL}};

static PyMemberDef buffer_members[] = WEAK_REFERENCES(struct buffer);

static PyType_Slot buffer_slots[] = {
    {Py_tp_doc,
     "Buffer(nbytes, stream=None, resource=None)\n--\n\nDevice memory with an owner: `nbytes` bytes, whose "
     "contents are undefined, for use on `stream` (None: the default stream), from `resource` (None: the one in "
     "force on the current device). The memory is freed on the same stream when the object dies. Raises "
     "hipmm.MemoryError."},
    {Py_tp_new, (void *)buffer_new},
    {Py_tp_dealloc, (void *)buffer_dealloc},
    {Py_tp_traverse, (void *)buffer_traverse},
    {Py_tp_members, buffer_members},
    {Py_tp_repr, (void *)buffer_repr},
    {Py_tp_methods, buffer_methods},
    {Py_tp_getset, buffer_properties},
    {Py_sq_length, (void *)buffer_length},
    {Py_bf_getbuffer, (void *)buffer_get_view},
    {Py_bf_releasebuffer, (void *)buffer_release_view},
    {0, NULL}};

static PyType_Spec buffer_spec = {"hipmm.Buffer", sizeof(struct buffer), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, buffer_slots};

int buffer_init(PyObject *module)
{
  buffer_type = (PyTypeObject *)PyType_FromSpec(&buffer_spec);
  if (!buffer_type) return -1;
  buffer_allocate = (allocfunc)PyType_GetSlot(buffer_type, Py_tp_alloc);
  buffer_free = (freefunc)PyType_GetSlot(buffer_type, Py_tp_free);
  return PyModule_AddObjectRef(module, "Buffer", (PyObject *)buffer_type);
}
