//! Sysfs trees: whatever is there, an answer or an error, and nothing that hangs; also while
//! somebody changes them.
#![expect(unsafe_code, reason = "it calls as C does")]

use core::mem::MaybeUninit;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use arbitrary::{Arbitrary, Unstructured};
use rustix::fs::{CWD, FileType, Mode};
use uverbs::capi::umad::{
    UmadCa, UmadPort, rooted, umad_free_ca_device_list, umad_release_ca, umad_release_port,
    umad_sort_ca_device_list,
};
use uverbs::host::Host;
use uverbs::sysfs::Sysfs;
use uverbs::umad;

use crate::guarded::Guarded;

#[derive(Arbitrary, Debug)]
struct Input {
    /// What is found in place of some files; all others are right.
    odd: Vec<(u8, Found)>,
    /// What else is there.
    strays: Vec<(u8, Vec<u8>, Found)>,
    /// What happens meanwhile, if anything.
    changes: Vec<(u8, Found)>,
    name: Option<Vec<u8>>,
    port: u8,
    index: u32,
    room: u8,
}

#[derive(Arbitrary, Debug)]
enum Found {
    Nothing,
    Sane(u8),
    Bytes(Vec<u8>),
    Huge(u8),
    Folder,
    Fifo,
    Loop,
    /// To another of the places.
    Link(u8),
    /// Out of the tree.
    Away,
}

/// Texts that are in such files.
const SANE: [&str; 22] = [
    "1: CA",
    "2: switch",
    "3: router",
    "4: RNIC",
    "0011:22ff:fe33:4455",
    "fe80:0000:0000:0000:0011:22ff:fe33:4455",
    "0000:0000:0000:0000:0000:0000:0000:0000",
    "4: ACTIVE",
    "1: DOWN",
    "RoCE v2",
    "IB/RoCE v1",
    "InfiniBand",
    "Ethernet",
    "0xffff",
    "100 Gb/sec (4X EDR)",
    "10 Gb/sec (4X)",
    "231:192",
    "4294967295:4294967295",
    "x0",
    "99999999999999999999",
    "-1",
    "",
];

const FILES: [(&str, &str); 24] = [
    ("infiniband/x0/node_type", "1: CA"),
    ("infiniband/x0/node_guid", "0011:22ff:fe33:4455"),
    ("infiniband/x0/sys_image_guid", "0011:22ff:fe33:4455"),
    ("infiniband/x0/fw_ver", "1.2.3"),
    ("infiniband/x0/hw_rev", "0"),
    ("infiniband/x0/hca_type", "MT4129"),
    ("infiniband/x0/ports/1/state", "4: ACTIVE"),
    ("infiniband/x0/ports/1/phys_state", "5: LinkUp"),
    ("infiniband/x0/ports/1/link_layer", "Ethernet"),
    ("infiniband/x0/ports/1/rate", "100 Gb/sec (4X EDR)"),
    ("infiniband/x0/ports/1/lid", "0x0"),
    ("infiniband/x0/ports/1/sm_lid", "0x0"),
    ("infiniband/x0/ports/1/sm_sl", "0"),
    ("infiniband/x0/ports/1/lid_mask_count", "0"),
    ("infiniband/x0/ports/1/cap_mask", "0x00010000"),
    ("infiniband/x0/ports/1/gids/0", "fe80:0000:0000:0000:0011:22ff:fe33:4455"),
    ("infiniband/x0/ports/1/gids/7", "0000:0000:0000:0000:0000:0000:0000:0000"),
    ("infiniband/x0/ports/1/gid_attrs/types/0", "RoCE v2"),
    ("infiniband/x0/ports/1/gid_attrs/types/7", "RoCE v2"),
    ("infiniband/x0/ports/1/gid_attrs/ndevs/0", "eth0"),
    ("infiniband/x0/ports/1/pkeys/0", "0xffff"),
    ("infiniband/x0/ports/1/pkeys/1", "0x0000"),
    ("infiniband_verbs/uverbs0/ibdev", "x0"),
    ("infiniband_verbs/uverbs0/dev", "231:192"),
];

/// Folders that may be in the place of folders, or get strange names.
const FOLDERS: [&str; 9] = [
    "infiniband",
    "infiniband/x0",
    "infiniband/x0/ports",
    "infiniband/x0/ports/1",
    "infiniband/x0/ports/1/gids",
    "infiniband/x0/ports/1/gid_attrs/types",
    "infiniband/x0/ports/1/gid_attrs",
    "infiniband/x0/ports/1/pkeys",
    "infiniband_verbs",
];

fn place(root: &Path, which: u8) -> PathBuf {
    let which = usize::from(which) % (FILES.len() + FOLDERS.len());
    let name = FILES.get(which).map_or_else(|| FOLDERS[which - FILES.len()], |(name, _)| name);
    root.join("class").join(name)
}

/// Puts what was found in the place of what is there. What does not work does not matter.
fn put(root: &Path, path: &Path, found: &Found) {
    let is_folder = path.symlink_metadata().is_ok_and(|it| it.is_dir());
    let _ = if is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    let _ = match found {
        Found::Nothing => Ok(()),
        Found::Sane(which) => {
            let text = SANE[usize::from(*which) % SANE.len()];
            fs::write(path, format!("{text}\n"))
        }
        Found::Bytes(bytes) => fs::write(path, bytes),
        Found::Huge(byte) => fs::write(path, vec![*byte; 100_000]),
        Found::Folder => fs::create_dir_all(path),
        Found::Fifo => rustix::fs::mknodat(CWD, path, FileType::Fifo, Mode::RUSR, 0)
            .map_err(std::io::Error::from),
        Found::Loop => symlink(path, path),
        Found::Link(which) => symlink(place(root, *which), path),
        Found::Away => symlink("/dev/null", path),
    };
}

/// Runs the target.
///
/// # Panics
/// If a promise is broken.
pub fn run(data: &[u8]) {
    let mut data = Unstructured::new(data);
    let Ok(input) = Input::arbitrary(&mut data) else { return };
    let memory = Path::new("/dev/shm");
    let tree = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    let tree = tree.expect("a folder");
    let root = tree.path();
    for (name, text) in FILES {
        let path = root.join("class").join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        fs::write(&path, format!("{text}\n")).expect("a file");
    }
    for (which, found) in input.odd.iter().take(12) {
        put(root, &place(root, *which), found);
    }
    for (which, name, found) in input.strays.iter().take(6) {
        // A name that stays in its folder; the system refuses the others.
        let name: Vec<u8> =
            name.iter().take(40).copied().filter(|byte| !b"/\0".contains(byte)).collect();
        if !name.is_empty() && name != b"." && name != b".." {
            let folder = FOLDERS[usize::from(*which) % FOLDERS.len()];
            let path = root.join("class").join(folder).join(OsStr::from_bytes(&name));
            put(root, &path, found);
        }
    }
    let is_still = input.changes.is_empty();
    std::thread::scope(|scope| {
        if !is_still {
            scope.spawn(|| {
                for (which, found) in input.changes.iter().take(16) {
                    put(root, &place(root, *which), found);
                }
            });
        }
        read(root, &input, is_still);
    });
}

fn read(root: &Path, input: &Input, is_still: bool) {
    let dev = root.join("dev");
    let mut host = Host::rooted(root, &dev);
    let mut names = vec!["x0".to_owned()];
    match host.list() {
        Ok(listing) => {
            for device in listing.devices {
                assert!(!device.name.contains('/') && device.ports().count() <= 1 << 16);
                if let Some(node) = &device.node {
                    assert_eq!(node.path.parent(), Some(&*dev));
                }
                names.push(device.name);
            }
            for problem in listing.problems {
                assert!(!problem.to_string().is_empty());
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    let _ = host.absence();
    let sysfs = host.sysfs().clone();
    names.truncate(3);
    names.extend(input.name.as_ref().map(|name| String::from_utf8_lossy(name).into_owned()));
    let port = u32::from(input.port) % 3;
    for name in &names {
        queries(&sysfs, name, port, input.index % 9, is_still);
        let _ = sysfs.query_gid_ex(name, port, input.index);
        c_functions(&sysfs, Some(name), input);
    }
    let _ = (umad::ca_names(&sysfs), umad::port_guids(&sysfs, None));
    let _ = (umad::default_port(&sysfs, None), umad::strict::get_cas_names(&sysfs, 3));
    c_functions(&sysfs, None, input);
    c_list(&sysfs);
}

fn queries(sysfs: &Sysfs, name: &str, port: u32, index: u32, is_still: bool) {
    let table = sysfs.query_gid_table(name);
    for found in table.iter().flatten() {
        assert!(!found.entry.gid().is_zero());
        let (port, index) = (found.entry.port(), found.entry.index());
        let again = sysfs.query_gid_ex(name, port, index);
        if is_still {
            assert_eq!(again.ok().flatten().as_ref(), Some(found));
        }
    }
    if let Err(error) = table {
        assert!(!error.to_string().is_empty() && error.errno() > 0);
    }
    let _ = sysfs.query_gid_ex(name, port, index);
    if let Ok(port) = sysfs.query_port(name, port) {
        let _ = (format!("{port:?}"), port.rate());
    }
    let all = sysfs.query_pkeys(name, port);
    for (index, pkey) in all.iter().flatten() {
        let again = sysfs.query_pkey(name, port, *index);
        if is_still {
            assert_eq!(again.ok(), Some(*pkey));
        }
        let _ = (pkey.to_string(), pkey.is_valid(), pkey.is_full_member());
    }
    let _ = (umad::ca(sysfs, name).map(|ca| format!("{ca:?}")), umad::port(sysfs, name, port));
    let _ = (umad::port_guids(sysfs, Some(name)), umad::default_port(sysfs, Some(name)));
}

fn c_functions(sysfs: &Sysfs, name: Option<&str>, input: &Input) {
    let room = usize::from(input.room) % 14;
    let max = i32::try_from(room).unwrap_or(0);
    let mut memory = Guarded::new(room * 8);
    // SAFETY: room for so many GUIDs.
    let guids =
        unsafe { rooted::get_ca_portguids(sysfs, name, memory.pointer(input.room > 200), max) };
    memory.check();
    assert!(guids <= max);
    let mut memory = Guarded::new(room * 20);
    // SAFETY: room for so many names.
    let names = unsafe { rooted::get_cas_names(sysfs, memory.pointer(false), max) };
    memory.check();
    assert!((0..=max).contains(&names));

    let mut ca = MaybeUninit::<UmadCa>::uninit();
    // SAFETY: room for a CA.
    let status = unsafe { rooted::get_ca(sysfs, name, ca.as_mut_ptr()) };
    assert!(status <= 0);
    // Released after a failure too: it is all zero then. Twice does no harm.
    for _ in 0..2 {
        // SAFETY: `get_ca` fills it in any case.
        assert_eq!(unsafe { umad_release_ca(ca.as_mut_ptr()) }, 0);
    }
    let mut port = MaybeUninit::<UmadPort>::uninit();
    let number = i32::from(input.port) % 4 - 1;
    // SAFETY: room for a port.
    let status = unsafe { rooted::get_port(sysfs, name, number, port.as_mut_ptr()) };
    assert!(status <= 0);
    // SAFETY: `get_port` fills it in any case.
    let filled = unsafe { port.assume_init_mut() };
    if !filled.pkeys.is_null() {
        let count = usize::try_from(filled.pkeys_size).unwrap_or(0);
        // SAFETY: as many as the structure says.
        let pkeys = unsafe { core::slice::from_raw_parts(filled.pkeys, count) };
        let _ = pkeys.iter().fold(0u16, |sum, pkey| sum ^ pkey);
    }
    // SAFETY: filled by `get_port`.
    assert_eq!(unsafe { umad_release_port(filled) }, 0);
}

fn c_list(sysfs: &Sysfs) {
    if let Some(mut head) = rooted::get_ca_device_list(sysfs) {
        // SAFETY: a list.
        assert_eq!(unsafe { umad_sort_ca_device_list(&raw mut head, 0) }, 0);
        // SAFETY: a list that is not used any more.
        unsafe { umad_free_ca_device_list(head) };
    }
}
