//! `umad_get_ca_device_list`, sorting it and freeing it.

use super::*;

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
