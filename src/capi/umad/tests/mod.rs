//! What the tests share; arrays of names and of port GUIDs.

mod host;
mod lists;
mod structures;

use core::ffi::{CStr, c_int};
use core::mem::MaybeUninit;
use core::ptr::{null, null_mut};

use rustix::io::Errno;

use super::*;
use crate::umad::tests::tree::Tree;

const CA: &str = "1: CA";

fn minus(errno: Errno) -> c_int {
    -errno.raw_os_error()
}

/// What a program has on its stack.
fn garbage<T>() -> T {
    let mut value = MaybeUninit::<T>::uninit();
    // SAFETY: room for one value.
    unsafe { value.as_mut_ptr().write_bytes(0xab, 1) };
    // SAFETY: the structures of C take any bytes.
    unsafe { value.assume_init() }
}

fn zeroed_ca(ca: &UmadCa) -> bool {
    format!("{ca:?}") == format!("{:?}", UmadCa::NONE)
}

fn zeroed_port(port: &UmadPort) -> bool {
    format!("{port:?}") == format!("{:?}", UmadPort::NONE)
}

fn text_of(array: &[u8]) -> &str {
    CStr::from_bytes_until_nul(array).unwrap().to_str().unwrap()
}

fn ca_of(tree: &Tree, name: Option<&str>) -> (c_int, UmadCa) {
    let mut ca = garbage();
    // SAFETY: `ca` has room for a CA.
    let status = unsafe { get_ca(&tree.sysfs(), name, &raw mut ca) };
    (status, ca)
}

fn port_of(tree: &Tree, name: Option<&str>, number: c_int) -> (c_int, UmadPort) {
    let mut port = garbage();
    // SAFETY: `port` has room for a port.
    let status = unsafe { get_port(&tree.sysfs(), name, number, &raw mut port) };
    (status, port)
}

fn pkeys_of(port: &UmadPort) -> &[u16] {
    // SAFETY: the structure says so.
    unsafe { core::slice::from_raw_parts(port.pkeys, port.pkeys_size as usize) }
}

fn release(ca: &mut UmadCa) -> c_int {
    // SAFETY: filled by `get_ca`.
    unsafe { umad_release_ca(ca) }
}

/// Names in the order of the list.
fn names_of(head: *const UmadDeviceNode) -> Vec<String> {
    let mut names = Vec::new();
    let mut place = head;
    // SAFETY: a list of ours.
    while let Some(node) = unsafe { place.as_ref() } {
        // SAFETY: every node of ours has a name.
        names.push(unsafe { CStr::from_ptr(node.ca_name) }.to_str().unwrap().to_owned());
        place = node.next;
    }
    names
}

fn list_of(names: &[&str]) -> *mut UmadDeviceNode {
    memory::list(&names.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap()
}

fn free(head: *mut UmadDeviceNode) {
    // SAFETY: a list of ours, which no test uses after this.
    unsafe { umad_free_ca_device_list(head) };
}

// umad_get_cas_names

fn cas_of(tree: &Tree, cas: &mut [CaName], max: c_int) -> c_int {
    assert!(max <= c_int::try_from(cas.len()).unwrap());
    // SAFETY: there is room for all.
    unsafe { get_cas_names(&tree.sysfs(), cas.as_mut_ptr(), max) }
}

#[test]
fn names_fill_an_array() {
    let tree = Tree::new();
    tree.device("b", CA).device("a", CA).device("iwarp", "4: RNIC").device("c", CA);
    let mut cas = [[0xab; 20]; 4];
    assert_eq!(cas_of(&tree, &mut cas, 4), 3);
    assert_eq!(cas.each_ref().map(|name| name[..2] == *b"b\0"), [false, true, false, false]);
    assert_eq!((text_of(&cas[0]), text_of(&cas[2]), cas[3]), ("a", "c", [0xab; 20]));
    let mut cas = [[0xab; 20]; 3];
    assert_eq!(cas_of(&tree, &mut cas, 2), 2);
    assert_eq!((text_of(&cas[1]), cas[2]), ("b", [0xab; 20]));
}

#[test]
fn no_name_is_written_where_there_is_no_room() {
    for tree in [Tree::new(), Tree::without_rdma()] {
        tree.device("d", CA);
        let mut cas = [[0xab; 20]];
        for max in [0, -1, c_int::MIN] {
            assert_eq!(cas_of(&tree, &mut cas, max), 0);
            assert_eq!(cas_of(&Tree::without_rdma(), &mut cas, max), 0);
        }
        assert_eq!(cas, [[0xab; 20]]);
    }
    let mut cas = [[0xab; 20]];
    assert_eq!(cas_of(&Tree::without_rdma(), &mut cas, 1), 1);
    assert_eq!(text_of(&cas[0]), "mthca0");
}

#[test]
fn no_array_of_names() {
    let tree = Tree::new();
    // SAFETY: NULL is allowed.
    let names = |max| unsafe { get_cas_names(&tree.sysfs(), null_mut(), max) };
    assert_eq!((names(0), names(5)), (0, 0));
    tree.device("d", CA);
    assert_eq!((names(0), names(5)), (0, -1));
}

// umad_get_ca_portguids

#[test]
fn port_guids_fill_an_array() {
    let tree = Tree::new();
    tree.device("d", CA).port("d", 1).port("d", 2);
    let guids = |name, room| {
        let mut guids = [u64::MAX; 10];
        let sysfs = tree.sysfs();
        // SAFETY: there is room for 10, and none asks for more.
        let count = unsafe { get_ca_portguids(&sysfs, name, guids.as_mut_ptr(), room) };
        let written = guids.iter().rposition(|guid| *guid != u64::MAX).map_or(0, |last| last + 1);
        (count, guids[..written].iter().map(|guid| guid.to_be()).collect::<Vec<_>>())
    };
    let all = vec![0, 0x0011_22ff_fe33_0001, 0x0011_22ff_fe33_0002];
    for room in 3..=10 {
        assert_eq!(guids(Some("d"), room), (3, all.clone()));
    }
    assert_eq!(guids(None, 10), (3, all));
    for room in [2, 1, 0, -1, c_int::MIN] {
        assert_eq!(guids(Some("d"), room), (minus(Errno::NOMEM), vec![]));
    }
    assert_eq!(guids(Some("e"), 10), (-1, vec![]));
    // A room beyond what any CA has is not looked at.
    let mut guids = [0; 3];
    let sysfs = tree.sysfs();
    // SAFETY: 3 are written, as above.
    let count = unsafe { get_ca_portguids(&sysfs, Some("d"), guids.as_mut_ptr(), c_int::MAX) };
    assert_eq!(count, 3);
}

#[test]
fn port_guids_without_an_array() {
    let tree = Tree::new();
    // SAFETY: NULL is allowed.
    let count = |name, max| unsafe { get_ca_portguids(&tree.sysfs(), name, null_mut(), max) };
    assert_eq!(count(None, 0), minus(Errno::NODEV));
    tree.device("d", CA).port("d", 1);
    assert_eq!((count(Some("d"), 0), count(Some("d"), 10), count(Some("d"), -1)), (0, 0, 0));
    assert_eq!((count(None, 0), count(Some("e"), 0)), (0, -1));
}

#[test]
fn ten_ports_fit() {
    let tree = Tree::new();
    tree.device("d", CA);
    for number in 0..10 {
        tree.port("d", number);
    }
    let mut guids = [0u64; 10];
    // SAFETY: there is room for 10.
    let count = unsafe { get_ca_portguids(&tree.sysfs(), None, guids.as_mut_ptr(), 10) };
    assert_eq!((count, guids[9].to_be()), (10, 0x0011_22ff_fe33_0009));
    let (status, mut ca) = ca_of(&tree, None);
    assert_eq!((status, ca.numports), (0, 9));
    assert!(ca.ports.iter().all(|port| !port.is_null()));
    assert_eq!(release(&mut ca), 0);
    assert!(ca.ports.iter().all(|port| port.is_null()));
}
