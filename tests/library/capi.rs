//! The C interface over a simulated kernel: lengths of other releases, NULL, memory around answers.

use core::ffi::{c_char, c_int, c_void};
use core::ptr::{null, null_mut};
use std::sync::Arc;

use rustix::io::Errno;
use uverbs::capi::mlx5::{_mlx5dv_query_port, mlx5dv_devx_general_cmd, mlx5dv_open_device};
use uverbs::capi::verbs::{
    _ibv_query_comp_cntr_caps, _ibv_query_gid_ex, _ibv_query_gid_table, abi, ibv_close_device,
    ibv_free_device_list, ibv_get_async_event, ibv_get_device_guid, ibv_get_device_index,
    ibv_get_device_name, ibv_get_pkey_index, ibv_open_device, ibv_query_gid, ibv_query_gid_type,
    ibv_query_pkey, ibv_query_port_speed, ibv_read_sysfs_file, simulated, uverbs_query_device_ex,
    uverbs_query_port,
};
use uverbs::context::Context;
use uverbs::driver::DriverId;
use uverbs::gid::GidEntry;
use uverbs::simulated::{SimulatedKernel, UserMemory};
use uverbs::uapi::device::{method, object};

use crate::kernel::{Tables, answer, attributes, entry, kernel_entry, table, value};

mod lives;

const GUARD: u8 = 0xa5;

/// The tables of [`Tables`], and answers about ports and devices in which every byte says where it
/// is.
#[derive(Debug)]
struct Device(Tables);

/// Byte `place` of an answer; never zero.
fn pattern(place: usize) -> u8 {
    u8::try_from(place % 251).unwrap() + 1
}

impl SimulatedKernel for Device {
    fn ioctl(&self, request: &mut [u8], memory: &UserMemory<'_>) -> Result<(), Errno> {
        let of = u16::from_ne_bytes(request[2..4].try_into().unwrap());
        let (asked, list) = attributes(request);
        match (of, asked) {
            (object::ASYNC_EVENT, _) => Ok(()),
            (_, method::INVOKE_WRITE) => {
                let room = list.iter().find(|attribute| attribute.id == 1).unwrap().len;
                let bytes: Vec<u8> = (0..room).map(pattern).collect();
                answer(request, memory, 1, &bytes)
            }
            (_, method::QUERY_PORT) => {
                if value(&list, 0) != 1 {
                    return Err(Errno::INVAL);
                }
                let room = list.iter().find(|attribute| attribute.id == 1).unwrap().len;
                let mut bytes: Vec<u8> = (0..room).map(pattern).collect();
                let length = u32::try_from(self.0.ports[0].len()).unwrap();
                bytes[16..20].copy_from_slice(&length.to_ne_bytes());
                answer(request, memory, 1, &bytes)
            }
            _ => self.0.ioctl(request, memory),
        }
    }
}

/// An open device; closed when it goes out of scope.
struct Opened(*mut abi::Context);

impl Opened {
    fn with(ports: Vec<Vec<Option<GidEntry>>>) -> Self {
        Self::of(DriverId::RXE, ports)
    }

    fn of(driver: DriverId, ports: Vec<Vec<Option<GidEntry>>>) -> Self {
        let tables = Tables { first: 1, ports, calls: Arc::default() };
        let kernel = Box::new(Device(tables));
        Self(simulated(Context::simulated("sim0", 1..=1, driver, kernel).unwrap()))
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // SAFETY: open, and used by nobody else.
        assert_eq!(unsafe { ibv_close_device(self.0) }, 0);
    }
}

/// Calls `query` with memory of every length up to `most`, and returns what it wrote. Checks that it writes
/// all of that memory or nothing, and nothing outside it.
fn lengths(most: usize, query: impl Fn(*mut c_void, usize) -> c_int) -> Vec<Option<Vec<u8>>> {
    (0..=most)
        .map(|length| {
            let mut memory = vec![GUARD; length + 64];
            let status = query(memory[32..].as_mut_ptr().cast(), length);
            assert!(memory[..32].iter().all(|byte| *byte == GUARD), "in front of {length}");
            assert!(memory[32 + length..].iter().all(|byte| *byte == GUARD), "behind {length}");
            let written = memory[32..32 + length].to_vec();
            if status == 0 {
                return Some(written);
            }
            assert!(written.iter().all(|byte| *byte == GUARD), "{length}: an error wrote");
            assert_eq!(status, Errno::INVAL.raw_os_error());
            None
        })
        .collect()
}

#[test]
fn a_port_of_any_release_s_length() {
    let opened = Opened::with(vec![table(1, 4, 1)]);
    let answers = lengths(80, |memory, length| {
        // SAFETY: an open context, and `length` bytes.
        unsafe { uverbs_query_port(opened.0, 1, memory.cast(), length) }
    });
    let whole = answers.last().unwrap().clone().unwrap();
    assert_eq!(whole[..4], u32::from(pattern(26)).to_ne_bytes(), "state");
    assert_eq!(whole[12..16], 4u32.to_ne_bytes(), "gid_tbl_len");
    assert_eq!(whole[46..50], [37, 38, 40, 41].map(pattern), "link_layer, flags, port_cap_flags2");
    assert_ne!(whole[52..56], [0; 4], "the newest field");
    assert_eq!(whole[56..], [0; 24], "beyond what is known");
    for (length, answer) in answers.iter().enumerate() {
        let answer = answer.as_ref().expect("every length is served");
        let known = length.min(56);
        assert_eq!(answer[..known], whole[..known], "{length}");
    }
}

/// The kernel does not know the question. Of rdma-core's providers only mlx5's asks it.
#[test]
fn a_port_s_speed_on_an_older_kernel() {
    for (driver, errno) in
        [(DriverId::RXE, Errno::OPNOTSUPP), (DriverId::MLX5, Errno::PROTONOSUPPORT)]
    {
        let opened = Opened::of(driver, vec![table(1, 4, 1)]);
        let mut speed = 77;
        // SAFETY: an open context, and room for a speed.
        let status = unsafe { ibv_query_port_speed(opened.0, 1, &raw mut speed) };
        assert_eq!((status, speed), (errno.raw_os_error(), 77), "{driver}");
    }
}

#[test]
fn attributes_of_any_release_s_length() {
    /// Where attributes end, by the structure's declaration. On i686 a number of 64 bits is aligned to
    /// four bytes.
    const ENDS: [usize; 16] = if align_of::<u64>() == 8 {
        [232, 264, 272, 280, 288, 296, 328, 332, 344, 348, 368, 372, 384, 390, 396, 400]
    } else {
        [228, 252, 260, 268, 276, 284, 308, 312, 324, 328, 348, 352, 360, 366, 372, 376]
    };
    let [first, timestamp, xrc_odp] = [ENDS[0], ENDS[2] - 8, ENDS[14] - 4];
    let opened = Opened::with(vec![table(1, 4, 1)]);
    let answers = lengths(450, |memory, length| {
        // SAFETY: an open context, and `length` bytes.
        unsafe { uverbs_query_device_ex(opened.0, null(), memory.cast(), length) }
    });
    let whole = answers.last().unwrap().clone().unwrap();
    for (length, answer) in answers.iter().enumerate() {
        let Some(answer) = answer else {
            assert!(length < first, "{length} is enough");
            continue;
        };
        let end = ENDS.into_iter().rfind(|end| *end <= length).unwrap();
        assert_eq!(answer[..end], whole[..end], "{length}");
        assert!(answer[end..].iter().all(|byte| *byte == 0), "{length}: half a field");
    }
    // The positions: GUIDs in network order, numbers where the declaration has them.
    assert_eq!(whole[64..72], (8..16).map(pattern).collect::<Vec<_>>());
    assert_eq!(whole[96..100], (40..44).map(pattern).collect::<Vec<_>>(), "vendor_id");
    assert_eq!(
        whole[timestamp..][..8],
        (208..216).map(pattern).collect::<Vec<_>>(),
        "timestamp_mask"
    );
    assert_eq!(whole[xrc_odp..][..4], (296..300).map(pattern).collect::<Vec<_>>(), "xrc_odp_caps");
    let comp_mask = 1u32;
    // SAFETY: an open context, a mask in place of the structure of just that, and no memory to fill.
    let status =
        unsafe { uverbs_query_device_ex(opened.0, (&raw const comp_mask).cast(), null_mut(), 400) };
    assert_eq!(status, Errno::INVAL.raw_os_error());
}

/// An entry as a C program has it.
fn c_entry(port: u32, index: u32) -> abi::GidEntry {
    let entry = entry(port, index);
    abi::GidEntry {
        gid: entry.gid().to_bytes(),
        gid_index: entry.index(),
        port_num: entry.port(),
        gid_type: entry.gid_type().0,
        ndev_ifindex: 0,
    }
}

/// A program of a newer release, on a newer kernel, gets all of its longer entries, however many.
#[test]
#[cfg(not(miri))]
fn entries_of_a_newer_release() {
    const SIZE: usize = 40;
    for slots in [100, 2500] {
        let opened = Opened::with(vec![table(1, slots, 1)]);
        let mut memory = vec![GUARD; SIZE * (slots as usize + 1)];
        // SAFETY: an open context, and memory for that many entries of that size.
        let count = unsafe {
            _ibv_query_gid_table(opened.0, memory.as_mut_ptr().cast(), slots as usize, 0, SIZE)
        };
        assert_eq!(usize::try_from(count), Ok(slots as usize));
        for (index, bytes) in (0..slots).zip(memory.chunks(SIZE)) {
            assert_eq!(bytes, kernel_entry(entry(1, index)), "{index} of {slots}");
        }
        assert!(memory[SIZE * slots as usize..].iter().all(|byte| *byte == GUARD), "beyond");
    }
}

/// Thousands of entries, for which Miri takes too long.
#[test]
#[cfg(not(miri))]
fn more_entries_than_one_request_names() {
    let opened = Opened::with(vec![table(1, 5000, 2)]);
    let ask = |room: usize, flags| {
        let mut entries = vec![c_entry(9, 9); room + 1];
        // SAFETY: an open context, and memory for `room` entries.
        let count =
            unsafe { _ibv_query_gid_table(opened.0, entries.as_mut_ptr(), room, flags, 32) };
        assert_eq!(entries[room], c_entry(9, 9), "beyond the room");
        entries.truncate(usize::try_from(count).unwrap_or(0));
        (count, entries)
    };
    let (count, entries) = ask(2500, 0);
    assert_eq!(count, 2500);
    assert!(entries.iter().zip((0..).step_by(2)).all(|(found, index)| *found == c_entry(1, index)));
    let invalid = -(Errno::INVAL.raw_os_error() as isize);
    assert_eq!(ask(2499, 0).0, invalid);
    assert_eq!(ask(0, 0).0, invalid);
    assert_eq!(ask(100, 0).0, invalid);
    // SAFETY: an open context; the product of the numbers is no length of memory.
    let status = unsafe { _ibv_query_gid_table(opened.0, entry_ptr(), usize::MAX / 32, 0, 64) };
    assert_eq!(status, invalid);
}

#[cfg(not(miri))]
fn entry_ptr() -> *mut abi::GidEntry {
    core::ptr::dangling_mut()
}

#[test]
fn empty_slots_are_told_in_each_function_s_way() {
    let opened = Opened::with(vec![table(1, 4, 2)]);
    let mut found = c_entry(9, 9);
    let mut ask = |port, index| {
        // SAFETY: an open context and an entry.
        let status = unsafe { _ibv_query_gid_ex(opened.0, port, index, &raw mut found, 0, 32) };
        (status, found)
    };
    assert_eq!(ask(1, 2), (0, c_entry(1, 2)));
    assert_eq!(ask(1, 1).0, Errno::NODATA.raw_os_error());
    assert_eq!(ask(1, 4).0, Errno::INVAL.raw_os_error());
    assert_eq!(ask(2, 0).0, Errno::INVAL.raw_os_error());

    let old = |index| {
        let (mut gid, mut gid_type) = ([GUARD; 16], 77);
        // SAFETY: an open context and 16 bytes.
        let first = unsafe { ibv_query_gid(opened.0, 1, index, &raw mut gid) };
        // SAFETY: an open context and an enum.
        let second =
            unsafe { ibv_query_gid_type(opened.0, 1, index.cast_unsigned(), &raw mut gid_type) };
        (first, gid, second, gid_type)
    };
    assert_eq!(old(0), (0, entry(1, 0).gid().to_bytes(), 0, 1));
    assert_eq!(old(1), (0, [0; 16], 0, 0));
    for beyond in [4, -1] {
        assert_eq!(old(beyond), (-1, [GUARD; 16], -1, 77));
        assert_eq!(nix::errno::Errno::last_raw(), Errno::INVAL.raw_os_error());
    }
}

#[test]
#[expect(clippy::multiple_unsafe_ops_per_block, reason = "one reason for all")]
fn null_is_answered_with_an_error() {
    let invalid = Errno::INVAL.raw_os_error();
    let opened = Opened::with(vec![table(1, 4, 1)]);
    // SAFETY: NULL is allowed everywhere.
    unsafe {
        for context in [null_mut(), opened.0] {
            assert_eq!(uverbs_query_port(context, 1, null_mut(), 56), invalid);
            assert_eq!(uverbs_query_device_ex(context, null(), null_mut(), 400), invalid);
            assert_eq!(_ibv_query_gid_ex(context, 1, 0, null_mut(), 0, 32), invalid);
            assert_eq!(_ibv_query_gid_table(context, null_mut(), 1, 0, 32), -invalid as isize);
            assert_eq!(ibv_query_gid(context, 1, 0, null_mut()), -1);
            assert_eq!(ibv_query_gid_type(context, 1, 0, null_mut()), -1);
            assert_eq!(ibv_query_pkey(context, 1, 0, null_mut()), -1);
            assert_eq!(ibv_query_port_speed(context, 1, null_mut()), invalid);
            assert_eq!(ibv_get_async_event(context, null_mut()), -1);
        }
        assert_eq!(ibv_get_pkey_index(null_mut(), 1, 0), -1);
        assert_eq!(_mlx5dv_query_port(null_mut(), 1, null_mut(), 40), invalid);
        assert_eq!(mlx5dv_devx_general_cmd(null_mut(), null(), 16, null_mut(), 16), invalid);
        assert_eq!(ibv_close_device(null_mut()), invalid);
        assert!(ibv_open_device(null_mut()).is_null());
        assert!(mlx5dv_open_device(null_mut(), null_mut()).is_null());
        assert!(ibv_get_device_name(null_mut()).is_null());
        assert_eq!(ibv_get_device_guid(null_mut()), 0);
        assert_eq!(ibv_get_device_index(null_mut()), -1);
        ibv_free_device_list(null_mut());
        assert_eq!(ibv_read_sysfs_file(null(), c"x".as_ptr(), null_mut(), 8), -1);
        let mut caps = [GUARD; 24];
        let status = _ibv_query_comp_cntr_caps(opened.0, caps.as_mut_ptr().cast(), 16);
        assert_eq!(status, Errno::OPNOTSUPP.raw_os_error());
        assert_eq!((&caps[..16], &caps[16..]), (&[0; 16][..], &[GUARD; 8][..]));
    }
}

/// Where the functions are that inline code of verbs.h, and rdma-core's library, call of a context:
/// `ops` in `struct ibv_context`, and `priv` in the `struct verbs_context` around it.
#[test]
#[expect(clippy::multiple_unsafe_ops_per_block, reason = "one reason for all")]
fn what_this_library_does_not_have_fails_and_does_not_crash() {
    type Function<T> = unsafe extern "C" fn() -> T;
    const UNSUPPORTED: c_int = Errno::OPNOTSUPP.raw_os_error();
    let opened = Opened::with(vec![table(1, 4, 1)]);
    let ops = opened.0.cast::<*mut c_void>().wrapping_add(1);
    // bind_mw, dealloc_mw, req_notify_cq, post_srq_recv, post_send, post_recv; and poll_cq.
    let numbers = [8, 9, 12, 20, 25, 26, 11];
    for place in 2..32 {
        nix::errno::Errno::set_raw(0);
        // SAFETY: one of the 32 functions of a context, and those behind the first two want nothing.
        unsafe {
            if numbers.contains(&place) {
                let function = ops.wrapping_add(place).cast::<Function<c_int>>().read();
                let expected = if place == 11 { -UNSUPPORTED } else { UNSUPPORTED };
                assert_eq!(function(), expected, "{place}");
            } else {
                let function = ops.wrapping_add(place).cast::<Function<*mut c_void>>().read();
                assert!(function().is_null(), "{place}");
            }
        }
        assert_eq!(nix::errno::Errno::last_raw(), UNSUPPORTED, "{place}");
    }
    // In front of a context are 11 functions, a number of 64 bits and a size; then comes `priv`.
    let distance = 13 * size_of::<usize>() + 8;
    let private = opened.0.wrapping_byte_sub(distance).cast::<*mut c_void>();
    // SAFETY: a pointer to words.
    let private = unsafe { private.read() }.cast::<Option<Function<*mut c_void>>>();
    assert!(!private.is_null());
    // The functions of rdma-core 65 end with word 80 or so. In no release they begin before word 2.
    for place in 0..256 {
        // SAFETY: one of the words: zero, or a function that makes nothing.
        let made = unsafe { private.wrapping_add(place).read().map(|own| own()) };
        assert_eq!(made, (place >= 2).then(null_mut), "{place}");
    }
}

#[test]
fn another_driver_s_device_is_not_asked_mlx5_s_questions() {
    let opened = Opened::with(vec![table(1, 4, 1)]);
    let mut memory = [GUARD; 64];
    let at = memory.as_mut_ptr().cast();
    let unsupported = Errno::OPNOTSUPP.raw_os_error();
    // SAFETY: an open context, and 64 bytes.
    assert_eq!(unsafe { _mlx5dv_query_port(opened.0, 1, at, 40) }, unsupported);
    // SAFETY: an open context, and two times 32 bytes.
    let status = unsafe { mlx5dv_devx_general_cmd(opened.0, at, 32, at.wrapping_add(32), 32) };
    assert_eq!(status, unsupported);
    assert_eq!(memory, [GUARD; 64]);
}

/// Miri has no `fstat`.
#[test]
#[cfg(not(miri))]
fn only_devices_are_imported() {
    let file = tempfile::tempfile().unwrap();
    for (fd, errno) in [
        (-1, Errno::INVAL),
        (c_int::MAX, Errno::INVAL),
        (std::os::fd::AsRawFd::as_raw_fd(&file), Errno::INVAL),
    ] {
        // SAFETY: none of them becomes the context's.
        assert!(unsafe { uverbs::capi::verbs::ibv_import_device(fd) }.is_null());
        assert_eq!(nix::errno::Errno::last_raw(), errno.raw_os_error(), "{fd}");
    }
}

#[test]
fn sysfs_files_fit_with_their_nul_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = std::ffi::CString::new(folder.path().to_str().unwrap()).unwrap();
    let read = |text: &str, size: usize| {
        std::fs::write(folder.path().join("file"), text).unwrap();
        let mut memory = [GUARD; 16];
        // SAFETY: two texts, and `size` bytes of more.
        let length = unsafe {
            ibv_read_sysfs_file(path.as_ptr(), c"file".as_ptr(), memory.as_mut_ptr().cast(), size)
        };
        assert!(memory[size..].iter().all(|byte| *byte == GUARD));
        (length, memory)
    };
    let (length, memory) = read("roce\n", 8);
    assert_eq!((length, &memory[..5]), (4, &b"roce\0"[..]));
    let (length, memory) = read("roce", 5);
    assert_eq!((length, &memory[..5]), (4, &b"roce\0"[..]));
    assert_eq!(read("roce\n", 5).0, 4);
    assert_eq!(read("roce", 4).0, -1);
    assert_eq!(read("roce\n", 4).0, -1);
    assert_eq!(read("", 4).0, 0);
    assert_eq!(read("x", 0).0, 0, "nothing was asked for");
    // A slash at the beginning makes no other folder of it, and no folder is not this process's.
    let whole = std::ffi::CString::new(format!("{}/file", folder.path().display())).unwrap();
    let length = |dir: &std::ffi::CStr, file: &std::ffi::CStr| {
        // SAFETY: two texts, and room for one byte.
        unsafe { ibv_read_sysfs_file(dir.as_ptr(), file.as_ptr(), [0; 1].as_mut_ptr(), 1) }
    };
    std::fs::write(folder.path().join("file"), "\n").unwrap();
    assert_eq!(length(&path, c"/file"), 0);
    assert_eq!(length(c"", &whole), 0);
    assert_eq!(length(c"/nowhere", &whole), -1);
    let relative = whole.to_bytes_with_nul().get(1..).unwrap();
    assert_eq!(length(c"", std::ffi::CStr::from_bytes_with_nul(relative).unwrap()), 0);
    // The answer may take the place of the file's name.
    std::fs::write(folder.path().join("file"), "roce\n").unwrap();
    let mut memory = *b"file\0___";
    let file = memory.as_mut_ptr().cast::<c_char>();
    // SAFETY: two texts, and the memory of the second, which has room for the answer.
    let length = unsafe { ibv_read_sysfs_file(path.as_ptr(), file, file, 8) };
    assert_eq!((length, &memory[..5]), (4, &b"roce\0"[..]));
    std::fs::remove_file(folder.path().join("file")).unwrap();
    // SAFETY: two texts, and no memory is used.
    let length =
        unsafe { ibv_read_sysfs_file(path.as_ptr(), c"file".as_ptr(), [0; 1].as_mut_ptr(), 1) };
    assert_eq!(length, -1);
    assert_eq!(nix::errno::Errno::last_raw(), Errno::NOENT.raw_os_error());
}
