// SPDX-License-Identifier: MIT
//! buffer.rs: the crate on the software device. Run by tests/doors/rust.sh.
use hipmm::{sys, Buffer, Library, Resource, Stream};

const GRAPH: &str = r#"{"runtime": "software", "stack": ["statistics", "pool", "device"]}"#;

fn is_send<T: Send>() {}
fn is_sync<T: Sync>() {}

#[test]
fn refuses_and_serves() {
    // In one test: initialisation is the process's.
    assert_eq!(Buffer::new(1).unwrap_err().status, sys::HIPMM_E_STATE);
    let error = Library::from_file("missing.json").unwrap_err();
    assert_eq!(error.status, sys::HIPMM_E_IO);
    assert!(error.to_string().contains("missing.json"), "{error}");
    assert_eq!(Library::from_string("a\0b").unwrap_err().status, sys::HIPMM_E_ARGUMENT);
    assert_eq!(Library::from_string("{").unwrap_err().status, sys::HIPMM_E_SYNTAX);

    let library = Library::from_string(GRAPH).unwrap();
    let resource = Resource::of_device(0).unwrap();
    data_is_kept();
    buffers_move_between_threads(&resource);
    errors_leave_the_buffer(&resource);
    assert!(Resource::by_name(0, "pol").unwrap_err().message.contains("pool"));
    assert_eq!(Resource::by_name(0, "pool").unwrap().device(), 0);
    assert!(library.query("devices/0/pool/reserved_bytes").unwrap() > 0);
    assert_eq!(resource.statistics().unwrap().current_count, 0);

    // A buffer keeps its stack.
    let mut survivor = Buffer::new(100).unwrap();
    drop(resource);
    drop(library);
    assert_eq!(Buffer::new(1).unwrap_err().status, sys::HIPMM_E_STATE);
    survivor.write(0, b"still here").unwrap();
    survivor.free().unwrap();
}

fn data_is_kept() {
    let mut buffer = Buffer::new(300).unwrap();
    let numbers: Vec<u8> = (0..300).map(|i| (i % 251) as u8).collect();
    buffer.write(0, &numbers).unwrap();
    buffer.resize(100_000).unwrap();
    let mut part = [0; 200];
    buffer.read(100, &mut part).unwrap();
    assert_eq!(part[..], numbers[100..]);
    buffer.fill(7).unwrap();
    buffer.read(99_800, &mut part).unwrap();
    assert_eq!(part, [7; 200]);
    let empty = Buffer::new(0).unwrap();
    assert!(empty.is_empty() && empty.as_ptr().is_null());
}

fn buffers_move_between_threads(resource: &Resource) {
    is_send::<Buffer>();
    is_send::<Resource>();
    is_sync::<Resource>();
    is_send::<Stream>();
    is_sync::<Stream>();
    let before = resource.statistics().unwrap();
    let stream = Stream::new(0).unwrap();
    let buffers: Vec<Buffer> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4u8)
            .map(|number| {
                let (resource, stream) = (resource.clone(), &stream);
                scope.spawn(move || {
                    let mut buffer = Buffer::with(&resource, 5000, Some(stream)).unwrap();
                    buffer.fill(number).unwrap();
                    buffer
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    drop(stream); // the buffers share it
    assert_eq!(resource.statistics().unwrap().current_count - before.current_count, 4);
    for (number, buffer) in buffers.iter().enumerate() {
        let mut bytes = [255; 5000];
        buffer.read(0, &mut bytes).unwrap();
        assert!(bytes.iter().all(|&byte| usize::from(byte) == number));
    }
    std::thread::spawn(move || drop(buffers)).join().unwrap();
    assert_eq!(resource.statistics().unwrap().current_count, before.current_count);
}

fn errors_leave_the_buffer(resource: &Resource) {
    let mut buffer = Buffer::with(resource, 64, None).unwrap();
    buffer.fill(3).unwrap();
    assert_eq!(buffer.write(60, b"too long").unwrap_err().status, sys::HIPMM_E_ARGUMENT);
    let error = buffer.resize(1 << 45).unwrap_err();
    assert!(error.is_out_of_memory() && !error.message.is_empty(), "{error}");
    let mut bytes = [0; 64];
    buffer.read(0, &mut bytes).unwrap();
    assert_eq!(bytes, [3; 64]);
    buffer.free().unwrap();
}
