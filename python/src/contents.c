/* SPDX-License-Identifier: MIT */
/* contents.c: the bytes of a Buffer: copies to and from the host and other arrays, views, pickling. Methods of the type,
 * whose table and documentation are in buffer.c; DLPack is in dlpack.c, NumPy in hipmm/_arrays.py. */
#include "buffer.h"

/* ---- Copies ---- */

/* Checks that `bytes` (or all up to the end) from `offset` lie in the buffer. */
static int contents_range(const struct buffer *self, PyObject *first, PyObject *size, size_t *offset, size_t *bytes)
{
  size_t all = api.buffer_bytes(self->buffer);
  *offset = 0;
  if (first && size_from(first, "offset", offset)) return -1;
  *bytes = *offset <= all ? all - *offset : 0;
  if (size && size != Py_None && size_from(size, "nbytes", bytes)) return -1;
  if (*offset <= all && *bytes <= all - *offset) return 0;
  PyErr_Format(PyExc_IndexError, "%zu bytes at offset %zu are not within a Buffer of %zu bytes", *bytes, *offset, all);
  return -1;
}

/* Whether elements are references to objects of Python, whose bytes mean nothing elsewhere and must not be overwritten. A
 * format has the names of fields between colons. What has no format, such as NumPy's dates, has no objects. */
static bool contents_has_objects(PyObject *object)
{
  Py_buffer view;
  bool is_name = false, found = false;
  if (PyBytes_Check(object) || PyByteArray_Check(object)) return false;
  if (PyObject_GetBuffer(object, &view, PyBUF_FULL_RO)) {
    PyErr_Clear();
    return false;
  }
  for (const char *c = view.format; c && *c && !found; c++) {
    if (*c == ':') is_name = !is_name;
    found = *c == 'O' && !is_name;
  }
  PyBuffer_Release(&view);
  return found;
}

static int contents_get_buffer(PyObject *object, Py_buffer *view, int flags)
{
  if (PyObject_GetBuffer(object, view, flags)) return -1;
  if (!contents_has_objects(object)) return 0;
  PyBuffer_Release(view);
  PyErr_SetString(PyExc_ValueError, "the array has objects of Python, which cannot be copied");
  return -1;
}

/* A copy from memory of any device does not wait; from memory of the host it does. */
static PyObject *contents_write_from(struct buffer *self, size_t offset, const void *source, size_t bytes, bool waits,
                                     hipmm_stream_t stream)
{
  enum hipmm_status status;
  if (buffer_begin(self, false)) return NULL;
  CALL(status, waits ? api.buffer_write(self->buffer, offset, source, bytes, stream)
                     : api.buffer_write_async(self->buffer, offset, source, bytes, stream));
  buffer_end(self, false);
  return call_result(status);
}

PyObject *buffer_write(PyObject *object, PyObject *args, PyObject *names)
{
  static char *words[] = {"source", "offset", "stream", NULL};
  struct buffer *self = (struct buffer *)object;
  PyObject *source, *first = NULL, *given = NULL, *result = NULL;
  size_t offset, room;
  hipmm_stream_t stream;
  Py_buffer view;
  if (!PyArg_ParseTupleAndKeywords(args, names, "O|OO:write", words, &source, &first, &given)) return NULL;
  if (contents_range(self, first, NULL, &offset, &room) || buffer_stream(self, given, &stream)) return NULL;
  if (contents_get_buffer(source, &view, PyBUF_SIMPLE)) return NULL;
  if ((size_t)view.len <= room)
    result = contents_write_from(self, offset, view.buf, (size_t)view.len, true, stream);
  else
    PyErr_Format(PyExc_IndexError, "%zd bytes at offset %zu are not within a Buffer of %zu bytes", view.len, offset,
                 api.buffer_bytes(self->buffer));
  PyBuffer_Release(&view);
  return result;
}

PyObject *buffer_write_device(PyObject *object, PyObject *args)
{
  struct buffer *self = (struct buffer *)object;
  PyObject *address, *size, *first, *given;
  size_t offset, bytes, room;
  hipmm_stream_t stream;
  if (!PyArg_ParseTuple(args, "OOOO", &address, &size, &first, &given)) return NULL;
  if (size_from(size, "nbytes", &bytes) || contents_range(self, first, size, &offset, &room)) return NULL;
  if (buffer_stream(self, given, &stream)) return NULL;
  void *source = PyLong_AsVoidPtr(address);
  if (!source && PyErr_Occurred()) return NULL;
  return bytes ? contents_write_from(self, offset, source, bytes, false, stream) : Py_NewRef(Py_None);
}

PyObject *buffer_read_device(PyObject *object, PyObject *args)
{
  struct buffer *self = (struct buffer *)object;
  PyObject *address, *size, *given;
  size_t offset, bytes;
  hipmm_stream_t stream;
  enum hipmm_status status;
  if (!PyArg_ParseTuple(args, "OOO", &address, &size, &given)) return NULL;
  if (contents_range(self, NULL, size, &offset, &bytes) || buffer_stream(self, given, &stream)) return NULL;
  void *target = PyLong_AsVoidPtr(address);
  if ((!target && PyErr_Occurred()) || buffer_begin(self, false)) return NULL;
  CALL(status, bytes ? api.buffer_read_async(self->buffer, offset, bytes, stream, target) : HIPMM_OK);
  buffer_end(self, false);
  return call_result(status);
}

static PyObject *contents_read_into(struct buffer *self, size_t offset, size_t bytes, void *target,
                                    hipmm_stream_t stream)
{
  enum hipmm_status status;
  if (buffer_begin(self, false)) return NULL;
  CALL(status, bytes ? api.buffer_read(self->buffer, offset, bytes, stream, target) : HIPMM_OK);
  buffer_end(self, false);
  return call_result(status);
}

static PyObject *contents_read_view(struct buffer *self, size_t offset, PyObject *size, PyObject *into,
                                    hipmm_stream_t stream)
{
  Py_buffer view;
  PyObject *result = NULL, *first = PyLong_FromSize_t(offset);
  size_t bytes;
  if (contents_get_buffer(into, &view, PyBUF_WRITABLE)) goto end;
  if (!contents_range(self, first, size, &offset, &bytes)) {
    if (bytes <= (size_t)view.len)
      result = contents_read_into(self, offset, bytes, view.buf, stream);
    else
      PyErr_Format(PyExc_ValueError, "%zu bytes do not fit into %zd", bytes, view.len);
  }
  PyBuffer_Release(&view);
  if (result) {
    Py_DECREF(result);
    result = Py_NewRef(into);
  }
end:
  Py_XDECREF(first);
  return result;
}

PyObject *buffer_read(PyObject *object, PyObject *args, PyObject *names)
{
  static char *words[] = {"offset", "nbytes", "into", "stream", NULL};
  struct buffer *self = (struct buffer *)object;
  PyObject *first = NULL, *size = NULL, *into = Py_None, *given = NULL;
  size_t offset, bytes;
  hipmm_stream_t stream;
  if (!PyArg_ParseTupleAndKeywords(args, names, "|OOOO:read", words, &first, &size, &into, &given)) return NULL;
  if (contents_range(self, first, size, &offset, &bytes) || buffer_stream(self, given, &stream)) return NULL;
  if (into != Py_None) return contents_read_view(self, offset, size, into, stream);
  PyObject *result = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)bytes);
  if (!result) return NULL;
  PyObject *done = contents_read_into(self, offset, bytes, PyBytes_AsString(result), stream);
  if (!done) Py_CLEAR(result);
  Py_XDECREF(done);
  return result;
}

PyObject *buffer_fill(PyObject *object, PyObject *args, PyObject *names)
{
  static char *words[] = {"value", "offset", "nbytes", "stream", NULL};
  struct buffer *self = (struct buffer *)object;
  PyObject *first = NULL, *size = NULL, *given = NULL;
  unsigned char value;
  size_t offset, bytes;
  hipmm_stream_t stream;
  enum hipmm_status status;
  if (!PyArg_ParseTupleAndKeywords(args, names, "b|OOO:fill", words, &value, &first, &size, &given)) return NULL;
  if (contents_range(self, first, size, &offset, &bytes) || buffer_stream(self, given, &stream)) return NULL;
  if (buffer_begin(self, false)) return NULL;
  CALL(status, bytes ? api.buffer_fill(self->buffer, offset, value, bytes, stream) : HIPMM_OK);
  buffer_end(self, false);
  return call_result(status);
}

PyObject *buffer_synchronize(PyObject *object, PyObject *unused)
{
  (void)unused;
  const struct hipmm_buffer *buffer = buffer_handle(object);
  enum hipmm_status status;
  CALL(status, api.stream_synchronize(api.buffer_device(buffer), api.buffer_stream(buffer)));
  return call_result(status);
}

/* ---- What hipmm._arrays does: NumPy, arrays of other libraries, pickling ---- */

PyObject *buffer_to_numpy(PyObject *self, PyObject *args, PyObject *names)
{
  return arrays_call("to_numpy", self, args, names);
}

PyObject *buffer_copy_of(PyObject *type, PyObject *args, PyObject *names)
{
  return arrays_call("copy_of", type, args, names);
}

PyObject *buffer_array(PyObject *self, PyObject *args, PyObject *names)
{
  return arrays_call("array", self, args, names);
}

PyObject *buffer_reduce(PyObject *self, PyObject *args)
{
  return arrays_call("reduce", self, args, NULL);
}

PyObject *buffer_bytes(PyObject *self, PyObject *unused)
{
  (void)unused;
  return PyObject_CallMethod(self, "read", NULL);
}

/* ---- Views ---- */

/* The memory is ready for the host when the stream has come to its end. */
int buffer_get_view(PyObject *object, Py_buffer *view, int flags)
{
  struct buffer *self = (struct buffer *)object;
  view->obj = NULL;
  if (buffer_begin(self, false)) return -1; /* before the check, so that what it finds holds */
  PyObject *function = arrays_function("check_host_access");
  PyObject *checked = function ? PyObject_CallFunctionObjArgs(function, object, NULL) : NULL;
  Py_XDECREF(function);
  Py_XDECREF(checked);
  PyObject *done = checked ? buffer_synchronize(object, NULL) : NULL;
  Py_XDECREF(done);
  static char none[1];
  void *data = api.buffer_data(self->buffer);
  int result =
      done ? PyBuffer_FillInfo(view, object, data ? data : none, (Py_ssize_t)api.buffer_bytes(self->buffer), 0, flags)
           : -1;
  if (result) buffer_end(self, false);
  return result;
}

void buffer_release_view(PyObject *object, Py_buffer *view)
{
  (void)view;
  buffer_end((struct buffer *)object, false);
}

PyObject *buffer_array_interface(PyObject *object, void *unused)
{
  (void)unused;
  const struct hipmm_buffer *buffer = buffer_handle(object);
  hipmm_stream_t stream = api.buffer_stream(buffer);
  return Py_BuildValue("{s:(NO),s:(n),s:O,s:s,s:i,s:N}", "data", PyLong_FromVoidPtr(api.buffer_data(buffer)), Py_False,
                       "shape", (Py_ssize_t)api.buffer_bytes(buffer), "strides", Py_None, "typestr", "|u1", "version",
                       3, "stream", PyLong_FromVoidPtr(stream ? stream : HIPMM_LEGACY_STREAM));
}
