// SPDX-License-Identifier: MIT
//! hipmm for Rust: device memory from a graph of resources (the project's README.md and doc/doors.md).
//!
//! ```no_run
//! let _hipmm = hipmm::Library::from_string(r#"{"stack": ["statistics", "pool", "device"]}"#)?;
//! let mut buffer = hipmm::Buffer::new(1 << 20)?; // freed with the value
//! buffer.write(0, b"hello")?;
//! # Ok::<(), hipmm::Error>(())
//! ```
//!
//! A [`Buffer`] uses memory of a device. The host reads and writes it by copies, which wait; [`Buffer::as_ptr`] is for kernels
//! and libraries of the device. [`sys`] has the C functions.
//!
//! # Threads
//!
//! All C functions are thread-safe, and a handle is tied to no thread: freeing switches to the handle's device and back.
//!
//! - `Library` is `Send` and `Sync`: it has no data. Initialisation is counted in the process.
//! - `Resource` is `Send` and `Sync`: its count of references is atomic, and each of its functions may run in several threads.
//! - `Stream` is `Send` and `Sync`: submitting work to one stream from two threads is safe; only the order is undefined.
//! - `Buffer` is `Send`, but not `Sync`: hipmm lets one thread at a time use a buffer, and even reading submits a copy.
#![allow(clippy::missing_safety_doc)]

#[allow(non_camel_case_types)]
pub mod sys;

use std::ffi::{c_void, CStr, CString};
use std::fmt;
use std::marker::PhantomData;
use std::ptr::{null_mut, NonNull};
use std::sync::Arc;

/// Why a call failed: a status `HIPMM_E_…`, and hipmm's message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub status: sys::Status,
    pub message: String,
}

impl Error {
    /// Whether memory, or a limit, is exhausted: the program may free some and try again.
    pub fn is_out_of_memory(&self) -> bool {
        matches!(self.status, sys::HIPMM_E_OUT_OF_MEMORY | sys::HIPMM_E_LIMIT)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

pub type Result<T> = std::result::Result<T, Error>;

/// The message is the calling thread's own, and stays until its next call that fails.
fn check(status: sys::Status) -> Result<()> {
    if status == sys::HIPMM_OK {
        return Ok(());
    }
    let message = unsafe { CStr::from_ptr(sys::hipmm_last_error_message()) };
    Err(Error { status, message: message.to_string_lossy().into_owned() })
}

fn text(text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| Error { status: sys::HIPMM_E_ARGUMENT, message: format!("{text:?} has a zero byte") })
}

/// A successful call has written a pointer that is not NULL.
fn handle<T>(status: sys::Status, written: *mut T) -> Result<NonNull<T>> {
    check(status)?;
    NonNull::new(written)
        .ok_or_else(|| Error { status: sys::HIPMM_E_INTERNAL, message: "hipmm returned no handle".to_string() })
}

/// One initialisation of hipmm, which ends with the value. Buffers and resources may live longer.
#[derive(Debug)]
pub struct Library(());

impl Library {
    /// Takes the graph from HIPMM_CONFIG, ./hipmm.json or the system's file.
    pub fn new() -> Result<Library> {
        check(unsafe { sys::hipmm_init() }).map(|()| Library(()))
    }

    pub fn from_file(path: &str) -> Result<Library> {
        let path = text(path)?;
        check(unsafe { sys::hipmm_init_from_file(path.as_ptr()) }).map(|()| Library(()))
    }

    pub fn from_string(json: &str) -> Result<Library> {
        let json = text(json)?;
        check(unsafe { sys::hipmm_init_from_string(json.as_ptr()) }).map(|()| Library(()))
    }

    /// A value by its path, such as `devices/0/pool/reserved_bytes`.
    pub fn query(&self, path: &str) -> Result<i64> {
        let (path, mut value) = (text(path)?, 0);
        check(unsafe { sys::hipmm_query(path.as_ptr(), &mut value) }).map(|()| value)
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        unsafe { sys::hipmm_finalize() };
    }
}

/// A resource of a device's stack, with a reference that keeps the stack.
#[derive(Debug)]
pub struct Resource(NonNull<sys::hipmm_resource>);

// As the crate's text on threads says.
unsafe impl Send for Resource {}
unsafe impl Sync for Resource {}

impl Resource {
    /// The device's current resource.
    pub fn of_device(device: i32) -> Result<Resource> {
        let mut resource = null_mut();
        handle(unsafe { sys::hipmm_resource_get_for_device(device, &mut resource) }, resource).map(Resource)
    }

    /// The resource of this name in the graph.
    pub fn by_name(device: i32, name: &str) -> Result<Resource> {
        let (name, mut resource) = (text(name)?, null_mut());
        handle(unsafe { sys::hipmm_resource_get_by_name(device, name.as_ptr(), &mut resource) }, resource).map(Resource)
    }

    pub fn device(&self) -> i32 {
        unsafe { sys::hipmm_resource_device(self.0.as_ptr()) }
    }

    /// The counters of the nearest `statistics` at or below the resource.
    pub fn statistics(&self) -> Result<sys::hipmm_statistics> {
        let mut statistics = sys::hipmm_statistics::default();
        check(unsafe { sys::hipmm_statistics_get(self.0.as_ptr(), &mut statistics) }).map(|()| statistics)
    }

    /// The handle for functions of [`sys`]. It is valid as long as the value.
    pub fn as_ptr(&self) -> *mut sys::hipmm_resource {
        self.0.as_ptr()
    }
}

impl Clone for Resource {
    fn clone(&self) -> Resource {
        unsafe { sys::hipmm_resource_retain(self.0.as_ptr()) };
        Resource(self.0)
    }
}

impl Drop for Resource {
    fn drop(&mut self) {
        unsafe { sys::hipmm_resource_release(self.0.as_ptr()) };
    }
}

/// A stream that hipmm made, destroyed with the value. A buffer shares the stream on which it will be freed.
#[derive(Debug)]
pub struct Stream {
    device: i32,
    stream: NonNull<c_void>,
}

unsafe impl Send for Stream {}
unsafe impl Sync for Stream {}

impl Stream {
    pub fn new(device: i32) -> Result<Arc<Stream>> {
        let mut stream = null_mut();
        let status = unsafe { sys::hipmm_stream_create(device, sys::HIPMM_STREAM_NON_BLOCKING, &mut stream) };
        handle(status, stream).map(|stream| Arc::new(Stream { device, stream }))
    }

    pub fn synchronize(&self) -> Result<()> {
        check(unsafe { sys::hipmm_stream_synchronize(self.device, self.stream.as_ptr()) })
    }

    /// The hipStream_t or cudaStream_t.
    pub fn as_ptr(&self) -> *mut c_void {
        self.stream.as_ptr()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        unsafe { sys::hipmm_stream_destroy(self.stream.as_ptr()) };
    }
}

/// Bytes of device memory, freed with the value on the buffer's stream. The contents are undefined at first.
#[derive(Debug)]
pub struct Buffer {
    buffer: NonNull<sys::hipmm_buffer>,
    stream: Option<Arc<Stream>>,
    not_sync: PhantomData<*mut ()>,
}

// Not Sync: one thread at a time may use a buffer.
unsafe impl Send for Buffer {}

impl Buffer {
    /// Allocates from the current device's current resource, on the default stream.
    pub fn new(bytes: usize) -> Result<Buffer> {
        Buffer::create(null_mut(), bytes, None)
    }

    /// Allocates from a resource, for use on a stream of its device (`None`: the default stream).
    pub fn with(resource: &Resource, bytes: usize, stream: Option<&Arc<Stream>>) -> Result<Buffer> {
        if let Some(stream) = stream.filter(|stream| stream.device != resource.device()) {
            let message = format!("the stream is of device {}, the resource of device {}", stream.device, resource.device());
            return Err(Error { status: sys::HIPMM_E_ARGUMENT, message });
        }
        Buffer::create(resource.as_ptr(), bytes, stream.cloned())
    }

    fn create(resource: *mut sys::hipmm_resource, bytes: usize, stream: Option<Arc<Stream>>) -> Result<Buffer> {
        let mut buffer = null_mut();
        let status = unsafe { sys::hipmm_buffer_create(resource, bytes, stream_of(&stream), &mut buffer) };
        handle(status, buffer).map(|buffer| Buffer { buffer, stream, not_sync: PhantomData })
    }

    /// Copies host memory into the buffer, and waits.
    pub fn write(&mut self, offset: usize, source: &[u8]) -> Result<()> {
        let (buffer, stream) = (self.buffer.as_ptr(), stream_of(&self.stream));
        check(unsafe { sys::hipmm_buffer_write(buffer, offset, source.as_ptr().cast(), source.len(), stream) })
    }

    /// Copies a part of the buffer to host memory, and waits.
    pub fn read(&self, offset: usize, target: &mut [u8]) -> Result<()> {
        let (buffer, stream) = (self.buffer.as_ptr(), stream_of(&self.stream));
        check(unsafe { sys::hipmm_buffer_read(buffer, offset, target.len(), stream, target.as_mut_ptr().cast()) })
    }

    /// Sets every byte.
    pub fn fill(&mut self, value: u8) -> Result<()> {
        let (buffer, stream) = (self.buffer.as_ptr(), stream_of(&self.stream));
        check(unsafe { sys::hipmm_buffer_fill(buffer, 0, value.into(), self.len(), stream) })
    }

    /// Keeps the contents up to the smaller size. [`Buffer::as_ptr`] may change.
    pub fn resize(&mut self, bytes: usize) -> Result<()> {
        check(unsafe { sys::hipmm_buffer_resize(self.buffer.as_ptr(), bytes, stream_of(&self.stream)) })
    }

    pub fn len(&self) -> usize {
        unsafe { sys::hipmm_buffer_bytes(self.buffer.as_ptr()) }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn device(&self) -> i32 {
        unsafe { sys::hipmm_buffer_device(self.buffer.as_ptr()) }
    }

    /// The device's address; null without bytes. Valid until the buffer is resized or dropped.
    pub fn as_ptr(&self) -> *mut c_void {
        unsafe { sys::hipmm_buffer_data(self.buffer.as_ptr()) }
    }

    /// Frees the memory and returns the error if that failed, which dropping cannot do. The memory is lost then.
    pub fn free(self) -> Result<()> {
        let mut this = std::mem::ManuallyDrop::new(self);
        let status = check(unsafe { sys::hipmm_buffer_destroy(this.buffer.as_ptr()) });
        drop(this.stream.take()); // after the free on it
        status
    }
}

fn stream_of(stream: &Option<Arc<Stream>>) -> *mut c_void {
    stream.as_ref().map_or(null_mut(), |stream| stream.as_ptr())
}

impl Drop for Buffer {
    /// The stream is dropped after this. A failure is in hipmm's log.
    fn drop(&mut self) {
        unsafe { sys::hipmm_buffer_destroy(self.buffer.as_ptr()) };
    }
}
