//! The default device and port.

use core::convert::Infallible;

use super::*;

#[test]
fn without_a_device_there_is_no_default() {
    for tree in [Tree::without_rdma(), Tree::new()] {
        tree.device("iwarp", "4: RNIC").port("iwarp", 1);
        fails(get_ca(&tree.sysfs(), None), Errno::NODEV);
        fails(guids(&tree, None), Errno::NODEV);
        fails(get_port(&tree.sysfs(), None, 0), Errno::NODEV);
        fails(get_port(&tree.sysfs(), None, 1), Errno::NODEV);
    }
    let tree = Tree::new();
    tree.unreadable("");
    fails(guids(&tree, None), Errno::NODEV);
}

#[test]
fn without_a_usable_device_the_default_is_mthca0() {
    let tree = Tree::new();
    tree.device("d", CA).port("d", 1).is("d", 1, 1, 3);
    fails(get_ca(&tree.sysfs(), None), Errno::NOENT);
    assert_eq!(guids(&tree, None).unwrap_err().value(), -1);
    fails(get_port(&tree.sysfs(), None, 0), Errno::IO);
    // The same for a device that fails as a whole.
    tree.remove("d").device("d", CA).port("d", 1).port("d", 10);
    fails(get_ca(&tree.sysfs(), None), Errno::NOENT);
    assert_eq!(guids(&tree, None).unwrap_err().value(), -1);
    // And for one whose name is too long.
    tree.remove("d").device(LONG, CA).port(LONG, 1);
    assert_eq!(guids(&tree, None).unwrap_err().value(), -1);
    // A mthca0 that is there is read, usable or not. Its port is 1.
    tree.device("mthca0", CA).port("mthca0", 1).is("mthca0", 1, 1, 3);
    assert_eq!(get_ca(&tree.sysfs(), None).unwrap().ca_name, *"mthca0");
    assert_eq!(default(&tree, 5), ("mthca0".to_owned(), 1));
}

#[test]
fn an_active_infiniband_port_is_preferred() {
    let names = ["a", "b", "c", "d"];
    for best in names {
        let tree = Tree::new();
        for name in names {
            tree.device(name, CA).port(name, 1).is(name, 1, 2, 5);
        }
        // Up, but Ethernet, or not active yet: none is better than the one that is active.
        tree.port(best, 2);
        let other = if best == "a" { "b" } else { "a" };
        tree.port(other, 1).set(other, 1, "link_layer", "Ethernet");
        assert_eq!(default(&tree, 0), (best.to_owned(), 2));
        assert_eq!(get_ca(&tree.sysfs(), None).unwrap().ca_name, *best);
        assert_eq!(guids(&tree, None).unwrap(), [0, 1, 2]);
    }
}

#[test]
fn within_a_device() {
    let chosen = |ports: &[(u8, u8, &str)]| {
        let tree = Tree::new();
        tree.device("d", CA);
        for (number, (state, phys_state, link_layer)) in (1..).zip(ports) {
            tree.port("d", number).is("d", number, *state, *phys_state);
            tree.set("d", number, "link_layer", link_layer);
        }
        get_port(&tree.sysfs(), Some("d"), 0).map(|port| port.portnum).map_err(|f| f.value())
    };
    let (ib, eth) = ("InfiniBand", "Ethernet");
    // Active comes before up, in any position.
    assert_eq!(chosen(&[(1, 2, ib), (2, 5, ib), (4, 5, ib), (4, 5, ib)]), Ok(3));
    // The first that is up.
    assert_eq!(chosen(&[(1, 2, ib), (2, 5, ib), (3, 5, ib)]), Ok(2));
    // Ethernet does not count where InfiniBand is up, or active.
    assert_eq!(chosen(&[(4, 5, eth), (2, 5, ib)]), Ok(2));
    assert_eq!(chosen(&[(4, 5, eth), (1, 2, ib), (4, 4, ib)]), Ok(3));
    // Neither: the first that is not disabled, of any link layer.
    assert_eq!(chosen(&[(4, 5, eth), (1, 2, ib)]), Ok(1));
    assert_eq!(chosen(&[(4, 3, eth), (1, 2, ib)]), Ok(2));
    assert_eq!(chosen(&[(1, 3, eth), (1, 2, eth)]), Ok(2));
    assert_eq!(chosen(&[(1, 3, ib), (4, 3, eth)]), Err(-Errno::NODEV.raw_os_error()));
    // Active counts even if disabled.
    assert_eq!(chosen(&[(4, 3, ib)]), Ok(1));
    assert_eq!(chosen(&[]), Err(-Errno::NODEV.raw_os_error()));
}

#[test]
fn a_roce_host_has_a_default() {
    let tree = Tree::new();
    tree.device("mlx5_0", CA).port("mlx5_0", 1).set("mlx5_0", 1, "link_layer", "Ethernet");
    assert_eq!(default(&tree, 0), ("mlx5_0".to_owned(), 1));
    assert_eq!(guids(&tree, None).unwrap(), [0, 1]);
    // But not for a wanted port, which must be InfiniBand: there is only mthca0.
    fails(get_port(&tree.sysfs(), None, 1), Errno::IO);
    tree.is("mlx5_0", 1, 1, 3);
    assert_eq!(guids(&tree, None).unwrap_err().value(), -1);
}

#[test]
fn a_wanted_port() {
    let tree = Tree::new();
    tree.device("a", CA).port("a", 1).device("b", CA).port("b", 1).port("b", 2);
    assert_eq!(default(&tree, 2), ("b".to_owned(), 2));
    // Not disabled will do, be it down.
    tree.is("b", 2, 1, 2);
    assert_eq!(default(&tree, 2), ("b".to_owned(), 2));
    tree.is("b", 2, 1, 3);
    fails(get_port(&tree.sysfs(), None, 2), Errno::IO);
    // An active one is better.
    tree.is("b", 2, 2, 5).port("a", 2);
    assert_eq!(default(&tree, 2), ("a".to_owned(), 2));
    // No device has it.
    fails(get_port(&tree.sysfs(), None, 9), Errno::IO);
    fails(get_port(&tree.sysfs(), None, 99), Errno::IO);
    // Without a name a negative number counts as no number.
    assert!(default(&tree, -1).1 > 0);
}

#[test]
fn of_equals_the_first_in_readdir_order() {
    let tree = Tree::new();
    for name in ["m", "b", "z", "a", "k", "y", "c", "x"] {
        tree.device(name, CA).port(name, 1);
    }
    let readdir = || get_ca_device_list(&tree.sysfs()).unwrap();
    assert_eq!(default(&tree, 0).0, readdir()[0]);
    for name in readdir() {
        tree.is(&name, 1, 1, 2);
    }
    assert_eq!(default(&tree, 0).0, readdir()[0]);
}

#[test]
fn the_first_active_else_the_first_remembered() {
    let names = ["z", "b", "a", "k"].map(str::to_owned);
    let of = |able: &[(&str, u32, bool)]| {
        let best = choice::device::<Infallible>(&names, |name| {
            let able = able.iter().find(|able| able.0 == name);
            Ok(able.map(|&(_, number, active)| Candidate { number, active }))
        });
        best.unwrap()
    };
    let found = |name: &str, number| Some((name.to_owned(), number));
    assert_eq!(of(&[]), None);
    assert_eq!(of(&[("a", 1, false), ("b", 2, false)]), found("b", 2));
    assert_eq!(of(&[("a", 1, true), ("b", 2, false)]), found("a", 1));
    assert_eq!(of(&[("z", 3, true), ("a", 1, true)]), found("z", 3));
}
