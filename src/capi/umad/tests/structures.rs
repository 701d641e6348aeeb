//! `umad_get_ca`, `umad_get_port`, and releasing what they fill.

use super::*;

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
