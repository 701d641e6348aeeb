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

// umad_get_ca and umad_release_ca

#[test]
fn a_ca_with_all_its_fields() {
    let tree = Tree::new();
    tree.device("mlx5_0", CA).port("mlx5_0", 1).port("mlx5_0", 3);
    tree.file("mlx5_0/hw_rev", "a2").file("mlx5_0/hca_type", "MT4115");
    for name in [Some("mlx5_0"), None] {
        let (status, mut ca) = ca_of(&tree, name);
        assert_eq!(status, 0);
        assert_eq!(text_of(&ca.ca_name), "mlx5_0");
        assert_eq!((ca.node_type, ca.numports), (1, 3));
        assert_eq!(text_of(&ca.fw_ver), "20.31.1014");
        assert_eq!(text_of(&ca.ca_type), "MT4115");
        assert_eq!(text_of(&ca.hw_ver), "a2");
        assert_eq!(ca.node_guid.to_be(), 0x0011_22ff_fe33_4400);
        assert_eq!(ca.system_guid.to_be(), 0x0011_22ff_fe33_4401);
        let there = ca.ports.map(|port| !port.is_null());
        assert_eq!(there[..5], [false, true, false, true, false]);
        assert_eq!(there[5..], [false; 5]);
        // SAFETY: not NULL, so a port.
        let port = unsafe { &*ca.ports[3] };
        assert_eq!((port.portnum, text_of(&port.ca_name)), (3, "mlx5_0"));
        assert_eq!(pkeys_of(port), [0xffff]);
        assert_eq!(release(&mut ca), 0);
        assert!(ca.ports.iter().all(|port| port.is_null()));
        // The rest stays, and a second release finds nothing.
        assert_eq!((release(&mut ca), ca.numports, text_of(&ca.ca_name)), (0, 3, "mlx5_0"));
    }
}

#[test]
fn a_ca_that_fails_is_zero_and_may_be_released() {
    let tree = Tree::new();
    let fails = |name, errno| {
        let (status, mut ca) = ca_of(&tree, name);
        assert_eq!(status, minus(errno));
        assert!(zeroed_ca(&ca), "{ca:?}");
        assert_eq!(release(&mut ca), 0);
    };
    fails(None, Errno::NODEV);
    tree.device("d", CA).port("d", 1).port("d", 2);
    fails(Some("e"), Errno::NOENT);
    tree.remove("d/ports/2/lid");
    fails(Some("d"), Errno::IO);
    tree.remove("d/ports");
    fails(Some("d"), Errno::NOENT);
    tree.file("d/node_guid", "0011");
    fails(Some("d"), Errno::INVAL);
    fails(None, Errno::NOENT);
}

#[test]
fn no_structure() {
    let tree = Tree::new();
    tree.device("d", CA).port("d", 1);
    // SAFETY: NULL is allowed.
    let status = unsafe { get_ca(&tree.sysfs(), Some("d"), null_mut()) };
    assert_eq!(status, minus(Errno::INVAL));
    // SAFETY: NULL is allowed.
    let status = unsafe { get_port(&tree.sysfs(), Some("d"), 1, null_mut()) };
    assert_eq!(status, minus(Errno::INVAL));
    // SAFETY: NULL is allowed.
    assert_eq!(unsafe { umad_release_ca(null_mut()) }, minus(Errno::NODEV));
    // SAFETY: NULL is allowed.
    assert_eq!(unsafe { umad_release_port(null_mut()) }, minus(Errno::NODEV));
    free(null_mut());
}

#[test]
fn a_copy_of_a_ca_releases_as_well() {
    let tree = Tree::new();
    tree.device("d", CA).port("d", 1).port("d", 2);
    let (_, ca) = ca_of(&tree, Some("d"));
    let mut copy = ca;
    // A port taken out, and one released on its own.
    let taken = core::mem::replace(&mut copy.ports[2], null_mut());
    // SAFETY: a port of ours.
    assert_eq!(unsafe { umad_release_port(copy.ports[1]) }, 0);
    assert_eq!(release(&mut copy), 0);
    // SAFETY: released by nobody yet.
    assert_eq!(pkeys_of(unsafe { &*taken }), [0xffff]);
    // SAFETY: as above.
    assert_eq!(unsafe { umad_release_port(taken) }, 0);
    // SAFETY: memory of `malloc`, which nobody else has.
    unsafe { nix::libc::free(taken.cast()) };
}

#[test]
fn a_release_stays_within_the_ports() {
    let tree = Tree::new();
    tree.device("d", CA).port("d", 1);
    for numports in [10, 1000, c_int::MAX] {
        let (_, mut ca) = ca_of(&tree, Some("d"));
        ca.numports = numports;
        assert_eq!(release(&mut ca), 0);
        assert!(ca.ports[1].is_null());
    }
    // Ports beyond the number are not looked at.
    let (_, mut ca) = ca_of(&tree, Some("d"));
    for numports in [0, -1, c_int::MIN] {
        ca.numports = numports;
        assert_eq!(release(&mut ca), 0);
        assert!(!ca.ports[1].is_null());
    }
    ca.numports = 1;
    assert_eq!(release(&mut ca), 0);
    assert_eq!(release(&mut UmadCa::NONE.clone()), 0);
}

// umad_get_port and umad_release_port

#[test]
fn a_port_with_all_its_fields() {
    let tree = Tree::new();
    tree.device("d", CA).port("d", 1).set("d", 1, "pkeys/1", "0x7fff");
    for (name, number) in [(Some("d"), 1), (Some("d"), 0), (None, 1), (None, 0)] {
        let (status, mut port) = port_of(&tree, name, number);
        assert_eq!((status, text_of(&port.ca_name), port.portnum), (0, "d", 1));
        assert_eq!((port.base_lid, port.lmc, port.sm_lid, port.sm_sl), (42, 2, 17, 3));
        assert_eq!((port.state, port.phys_state, port.rate), (4, 5, 2));
        assert_eq!(port.capmask.to_be_bytes(), 0x10000u32.to_ne_bytes());
        assert_eq!(port.gid_prefix.to_ne_bytes(), [0xfe, 0x80, 0, 0, 0, 0, 0, 0]);
        assert_eq!(port.port_guid.to_ne_bytes(), [0, 0x11, 0x22, 0xff, 0xfe, 0x33, 0, 1]);
        assert_eq!(pkeys_of(&port), [0xffff, 0x7fff]);
        assert_eq!(text_of(&port.link_layer), "InfiniBand");
        for _ in 0..2 {
            // SAFETY: filled by `get_port`.
            assert_eq!(unsafe { umad_release_port(&raw mut port) }, 0);
            assert_eq!((port.pkeys, port.pkeys_size, port.portnum), (null_mut(), 0, 1));
        }
    }
}

#[test]
fn a_port_that_fails_is_zero_and_may_be_released() {
    let tree = Tree::new();
    let fails = |name, number, errno| {
        let (status, mut port) = port_of(&tree, name, number);
        assert_eq!(status, minus(errno));
        assert!(zeroed_port(&port), "{port:?}");
        // SAFETY: zero is allowed.
        assert_eq!(unsafe { umad_release_port(&raw mut port) }, 0);
    };
    fails(None, 0, Errno::NODEV);
    tree.device("d", CA).port("d", 1);
    fails(Some("d"), 2, Errno::IO);
    fails(Some("d"), -1, Errno::IO);
    fails(Some("e"), 1, Errno::IO);
    fails(Some("e"), 0, Errno::NODEV);
    tree.unreadable("d/ports/1/pkeys/0");
    fails(Some("d"), 1, Errno::IO);
}

// umad_get_ca_device_list, umad_sort_ca_device_list and umad_free_ca_device_list

#[test]
fn a_list_of_devices() {
    const LONG: &str = "a-name-of-more-than-twenty-bytes";
    let tree = Tree::new();
    assert_eq!(get_ca_device_list(&tree.sysfs()), Ok(null_mut()));
    assert_eq!(get_ca_device_list(&Tree::without_rdma().sysfs()), Ok(null_mut()));
    for name in ["m", "b", LONG, "z", "a"] {
        tree.device(name, CA);
    }
    let mut head = get_ca_device_list(&tree.sysfs()).unwrap();
    let names = names_of(head);
    assert_eq!(names, strict::get_ca_device_list(&tree.sysfs()).unwrap());
    // SAFETY: a list of ours.
    assert_eq!(unsafe { umad_sort_ca_device_list(&raw mut head, 0) }, 0);
    assert_eq!(names_of(head), ["a", LONG, "b", "m", "z"]);
    free(head);
    tree.unreadable("");
    assert_eq!(get_ca_device_list(&tree.sysfs()), Err(Errno::LOOP));
}

#[test]
fn sorting_by_bytes() {
    let names = ["mlx5_2", "a", "mlx5_10", "", "Z", "\u{fc}", "a", "_"];
    let sorted = ["", "Z", "_", "a", "a", "mlx5_10", "mlx5_2", "\u{fc}"];
    for size in [0, names.len()] {
        let mut head = list_of(&names);
        // SAFETY: a list of ours.
        assert_eq!(unsafe { umad_sort_ca_device_list(&raw mut head, size) }, 0);
        assert_eq!(names_of(head), sorted);
        free(head);
    }
}

#[test]
fn sorting_counts_the_nodes() {
    let sort = |names: &[&str], size| {
        let before = list_of(names);
        let mut head = before;
        // SAFETY: a list of ours.
        let status = unsafe { umad_sort_ca_device_list(&raw mut head, size) };
        let after = names_of(head);
        free(head);
        assert!(status == 0 || (before == head && after == names));
        (status, after.concat())
    };
    let invalid = Errno::INVAL.raw_os_error();
    let order = |text: &str, status| (status, text.to_owned());
    assert_eq!(sort(&["b", "a"], 2), order("ab", 0));
    // A size of 1 is not looked at.
    assert_eq!(sort(&["b", "a"], 1), order("ba", 0));
    assert_eq!(sort(&["c", "b", "a"], 2), order("cba", invalid));
    assert_eq!(sort(&["c", "b", "a"], 4), order("cba", invalid));
    assert_eq!(sort(&["b"], 2), order("b", invalid));
    assert_eq!(sort(&["b"], 0), order("b", 0));
    assert_eq!(sort(&[], 0), order("", 0));
    assert_eq!(sort(&[], 1), order("", 0));
    assert_eq!(sort(&[], 2), order("", invalid));
    assert_eq!(sort(&["b", "a"], usize::MAX), order("ba", Errno::NOMEM.raw_os_error()));
    for (size, status) in [(0, invalid), (1, 0), (2, invalid)] {
        // SAFETY: NULL is allowed.
        assert_eq!(unsafe { umad_sort_ca_device_list(null_mut(), size) }, status);
    }
}

#[test]
fn sorting_a_nameless_node_and_a_ring() {
    let mut head = list_of(&["b", "a"]);
    // SAFETY: a node of ours.
    unsafe { (*head).ca_name = null() };
    // SAFETY: a list of two nodes, of which the first has no name.
    let last = unsafe { (*head).next };
    // SAFETY: as above.
    assert_eq!(unsafe { umad_sort_ca_device_list(&raw mut head, 0) }, 0);
    // SAFETY: as above.
    assert_eq!(unsafe { (*head).next }, last);
    // SAFETY: as above.
    unsafe { (*last).next = head };
    // SAFETY: a ring is not a list, but a size bounds what is read.
    let status = unsafe { umad_sort_ca_device_list(&raw mut head, 2) };
    assert_eq!(status, Errno::INVAL.raw_os_error());
    // SAFETY: as above.
    unsafe { (*last).next = null_mut() };
    free(head);
}

// The host's own functions

#[test]
fn errno_is_restored() {
    nix::errno::Errno::set_raw(77);
    let answer = guarded(1, || {
        set_errno(Errno::NOENT);
        2
    });
    assert_eq!((answer, nix::errno::Errno::last_raw()), (2, 77));
    let answer = guarded(1, || {
        set_errno(Errno::NOENT);
        std::panic::resume_unwind(Box::new(()))
    });
    assert_eq!((answer, nix::errno::Errno::last_raw()), (1, 77));
}

#[test]
fn errno_of_a_failure_stays() {
    let answer = |value| {
        nix::errno::Errno::set_raw(77);
        let answer = reasoned(-5, || {
            set_errno(Errno::NOENT);
            value
        });
        (answer, nix::errno::Errno::last_raw())
    };
    assert_eq!(answer(0), (0, 77));
    assert_eq!(answer(2), (2, 77));
    assert_eq!(answer(-1), (-1, Errno::NOENT.raw_os_error()));
}

#[test]
fn errno_tells_why_there_is_no_ca() {
    let reason = |status: c_int| {
        let errno = Errno::from_raw_os_error(nix::errno::Errno::last_raw());
        nix::errno::Errno::set_raw(77);
        (status, errno)
    };
    let mut ca: UmadCa = garbage();
    let mut port: UmadPort = garbage();
    nix::errno::Errno::set_raw(77);
    // SAFETY: all there.
    let status = unsafe { umad_get_ca(c"no such ca".as_ptr(), &raw mut ca) };
    assert_eq!((reason(status), zeroed_ca(&ca)), ((minus(Errno::NOENT), Errno::NOENT), true));
    // SAFETY: all there.
    let status = unsafe { umad_get_port(c"no such ca".as_ptr(), 1, &raw mut port) };
    assert_eq!((reason(status), zeroed_port(&port)), ((minus(Errno::IO), Errno::NOENT), true));
    // SAFETY: NULL is allowed.
    let status = unsafe { umad_get_ca_portguids(c"\xff".as_ptr(), null_mut(), 0) };
    assert_eq!(reason(status), (-1, Errno::NOENT));
    let head = umad_get_ca_device_list();
    assert_eq!(nix::errno::Errno::last_raw(), 0);
    free(head);
}

/// As a program does that reads again what it has.
#[test]
fn the_name_may_stand_in_the_structure() {
    let mut ca = UmadCa::NONE;
    ca.ca_name[..4].copy_from_slice(b"none");
    let name = ca.ca_name.as_ptr().cast();
    // SAFETY: a text that ends with a NUL.
    let name = unsafe { text(name) };
    let tree = Tree::new();
    tree.device("none", CA);
    // SAFETY: room for a CA.
    assert_eq!(unsafe { get_ca(&tree.sysfs(), name.as_deref(), &raw mut ca) }, 0);
    assert_eq!(text_of(&ca.ca_name), "none");
    // SAFETY: a text that is not UTF-8 is one.
    assert_eq!(unsafe { text(c"\xff".as_ptr()) }, Some(String::new()));
    // SAFETY: NULL is allowed.
    assert_eq!(unsafe { text(null()) }, None);
}

#[test]
fn the_level_of_debugging() {
    assert_eq!(umad_debug(-1), 0);
    assert_eq!((umad_debug(2), umad_debug(-1), umad_debug(c_int::MIN)), (2, 2, 2));
    assert_eq!((umad_debug(0), umad_debug(-1)), (0, 0));
    assert_eq!((umad_init(), umad_done()), (0, 0));
}
