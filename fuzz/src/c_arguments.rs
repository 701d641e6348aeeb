//! Arguments of the C interface: NULL, lengths from 0 on, huge counts. The kernel is the model, so
//! what fails has written nothing.
#![expect(unsafe_code, reason = "it calls as C does")]

use core::ffi::{c_char, c_int};
use core::ptr::null_mut;
use std::ffi::CString;
use std::sync::LazyLock;

use arbitrary::{Arbitrary, Unstructured};
use uverbs::capi::mlx5::{mlx5dv_is_supported, mlx5dv_open_device};
use uverbs::capi::umad::{
    UmadDeviceNode, umad_release_ca, umad_release_port, umad_sort_ca_device_list,
};
use uverbs::capi::verbs::{
    ibv_close_device, ibv_free_device_list, ibv_get_async_event, ibv_import_device,
    ibv_open_device, ibv_read_sysfs_file,
};

use crate::c;
use crate::guarded::Guarded;
use crate::model::{Described, ModelKernel};

#[derive(Arbitrary, Debug)]
enum Input {
    Calls(Described, Vec<c::Call>),
    /// A file of sysfs with this content is read into so much memory.
    File {
        content: Vec<u8>,
        room: u8,
        nulls: u8,
    },
    /// A list with these names is sorted; `size` is added to their number.
    Sort {
        names: Vec<Option<Vec<u8>>>,
        size: Size,
        has_list: bool,
    },
    Nothing {
        fd: i32,
    },
}

#[derive(Arbitrary, Debug)]
enum Size {
    Zero,
    Right,
    Other(u8),
    Huge(usize),
}

/// Runs the target.
///
/// # Panics
/// If a promise is broken.
pub fn run(data: &[u8]) {
    let mut data = Unstructured::new(data);
    match Input::arbitrary(&mut data) {
        Ok(Input::Calls(described, calls)) => {
            let context = ModelKernel::for_c(&described.device()).expect("a context");
            c::run(context, calls.get(..12.min(calls.len())).unwrap_or_default(), true);
        }
        Ok(Input::File { content, room, nulls }) => file(&content, room.into(), nulls),
        Ok(Input::Sort { names, size, has_list }) => sort(names, &size, has_list),
        Ok(Input::Nothing { fd }) => nothing(fd),
        Err(_) => {}
    }
}

static FOLDER: LazyLock<tempfile::TempDir> =
    LazyLock::new(|| tempfile::tempdir().expect("a folder"));

fn file(content: &[u8], room: usize, nulls: u8) {
    let name = format!("{:?}", std::thread::current().id());
    std::fs::write(FOLDER.path().join(&name), content).expect("a file");
    let folder = FOLDER.path().to_str().and_then(|path| CString::new(path).ok()).expect("a path");
    let name = CString::new(name).expect("a name");
    let text = |bit: u8, text: &CString| {
        if nulls & bit == 0 { text.as_ptr() } else { core::ptr::null() }
    };
    let mut memory = Guarded::new(room);
    let at = memory.pointer::<c_char>(nulls & 4 != 0);
    // SAFETY: NULL or texts, NULL or `room` bytes.
    let length = unsafe { ibv_read_sysfs_file(text(1, &folder), text(2, &name), at, room) };
    memory.check();
    if nulls & 7 != 0 {
        assert_eq!(length, -1);
        return memory.check_untouched();
    }
    let line = content.strip_suffix(b"\n").unwrap_or(content);
    match usize::try_from(length) {
        Ok(0) => {}
        Ok(length) => {
            assert!(length < room);
            assert_eq!(memory.inside()[..length], content[..length]);
            assert_eq!(memory.inside()[length], 0);
            // Cut only at a newline that what was read ends with.
            assert!(length == line.len() || content.get(length) == Some(&b'\n'));
        }
        Err(_) => assert!(line.len() >= room),
    }
}

fn sort(names: Vec<Option<Vec<u8>>>, size: &Size, has_list: bool) {
    let texts: Vec<Option<CString>> = names
        .into_iter()
        .take(40)
        .map(|name| {
            name.map(|mut bytes| {
                bytes.retain(|byte| *byte != 0);
                CString::new(bytes).expect("no NUL is left")
            })
        })
        .collect();
    let mut nodes: Vec<UmadDeviceNode> = texts
        .iter()
        .map(|text| UmadDeviceNode {
            next: null_mut(),
            ca_name: text.as_ref().map_or(core::ptr::null(), |text| text.as_ptr()),
        })
        .collect();
    let count = nodes.len();
    let first = nodes.as_mut_ptr();
    for place in 1..count {
        let (node, next) = (first.wrapping_add(place - 1), first.wrapping_add(place));
        // SAFETY: a node of the vector, to which nothing else refers.
        unsafe { (*node).next = next };
    }
    let mut head = if count == 0 { null_mut() } else { first };
    let size = match *size {
        Size::Zero => 0,
        Size::Right => count,
        Size::Other(size) => size.into(),
        // More than any memory (`ENOMEM`, as libibumad). Below that the function asks `malloc` for
        // what it is told, and the sanitizer's ends the program instead of refusing.
        Size::Huge(size) => size.max(usize::MAX / 32),
    };
    let place = if has_list { &raw mut head } else { null_mut() };
    // SAFETY: NULL, or the head of a list whose names are NULL or texts.
    let status = unsafe { umad_sort_ca_device_list(place, size) };
    let mut seen = Vec::new();
    let mut node = head;
    // SAFETY: a node of the vector, or NULL behind the last.
    while let Some(found) = unsafe { node.as_ref() } {
        seen.push(if found.ca_name.is_null() {
            Vec::new()
        } else {
            // SAFETY: one of `texts`.
            unsafe { core::ffi::CStr::from_ptr(found.ca_name) }.to_bytes().to_vec()
        });
        node = found.next;
    }
    let mut expected: Vec<Vec<u8>> =
        texts.iter().map(|text| text.clone().unwrap_or_default().into_bytes()).collect();
    let is_sorted = has_list && size != 1 && (size == 0 || size == count);
    if is_sorted {
        expected.sort();
    }
    assert_eq!(seen, expected);
    assert_eq!(status == 0, is_sorted || size == 1, "{status} {size}");
}

/// NULL for everything, and files that are none.
fn nothing(fd: c_int) {
    // SAFETY: NULL is allowed.
    unsafe { ibv_free_device_list(null_mut()) };
    // SAFETY: NULL is allowed.
    assert_ne!(unsafe { ibv_close_device(null_mut()) }, 0);
    // SAFETY: NULL is allowed.
    assert!(unsafe { ibv_open_device(null_mut()) }.is_null());
    // SAFETY: NULL is allowed.
    assert!(unsafe { mlx5dv_open_device(null_mut(), null_mut()) }.is_null());
    // SAFETY: NULL is allowed.
    assert!(!unsafe { mlx5dv_is_supported(null_mut()) });
    // SAFETY: NULL is allowed.
    assert_eq!(unsafe { ibv_get_async_event(null_mut(), null_mut()) }, -1);
    // SAFETY: NULL is allowed.
    assert!(unsafe { umad_release_ca(null_mut()) } < 0);
    // SAFETY: NULL is allowed.
    assert!(unsafe { umad_release_port(null_mut()) } < 0);
    // Numbers that no file of this process has.
    let none = if fd < 0 { fd } else { fd | 0x4000_0000 };
    // SAFETY: no open file.
    assert!(unsafe { ibv_import_device(none) }.is_null());
}
