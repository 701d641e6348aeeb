//! Lists of devices, as each program reads them.

use super::*;
use crate::choose::nccl::DeviceList;
use crate::choose::ucx::Devices;

const PORTS: [(&str, u32); 6] = [
    ("mlx5_0", 1),
    ("mlx5_1", 1),
    ("mlx5_1", 2),
    ("mlx5_10", 1),
    ("mlx5_bond_0", 1),
    ("bnxt_re0", 1),
];

fn taken(takes: impl Fn(&str, u32) -> bool) -> String {
    let ports = PORTS.into_iter().filter(|(device, port)| takes(device, *port));
    ports.map(|(device, port)| format!("{device}:{port}")).collect::<Vec<_>>().join(" ")
}

#[test]
fn nccl_device_lists() {
    use nccl::Release;
    const ALL: &str = "mlx5_0:1 mlx5_1:1 mlx5_1:2 mlx5_10:1 mlx5_bond_0:1 bnxt_re0:1";
    for (list, expected) in [
        ("", ALL),
        ("=", ALL),
        (":1", ALL),
        ("mlx5", "mlx5_0:1 mlx5_1:1 mlx5_1:2 mlx5_10:1 mlx5_bond_0:1"),
        ("mlx5_1", "mlx5_1:1 mlx5_1:2 mlx5_10:1"),
        ("=mlx5_1", "mlx5_1:1 mlx5_1:2"),
        ("=mlx5_1:1", "mlx5_1:1"),
        ("=mlx5_1:01", "mlx5_1:1"),
        ("mlx5_1:2", "mlx5_1:2"),
        ("^mlx5_1", "mlx5_0:1 mlx5_bond_0:1 bnxt_re0:1"),
        ("^=mlx5_1", "mlx5_0:1 mlx5_10:1 mlx5_bond_0:1 bnxt_re0:1"),
        ("^=mlx5_1:2", "mlx5_0:1 mlx5_1:1 mlx5_10:1 mlx5_bond_0:1 bnxt_re0:1"),
        ("=mlx5_0,bnxt_re0", "mlx5_0:1 bnxt_re0:1"),
        ("mlx5_0, mlx5_1", "mlx5_0:1"),
        ("=mlx5_0:", "mlx5_0:1"),
        ("=mlx5_0::0:0", "mlx5_0:1"),
        ("=mlx5_1:-1", "mlx5_1:1 mlx5_1:2"),
        ("^", ""),
        ("=^mlx5_1", ""),
        ("=mlx5_1:x", ""),
        ("=MLX5_0", ""),
        ("=mlx5_0;mlx5_1", ""),
        (" mlx5_0", ""),
    ] {
        let new = DeviceList::nccl(list, Release::V2_30_7);
        assert_eq!(taken(|device, port| new.takes(device, port)), expected, "{list:?}");
        let old = DeviceList::nccl(list, Release::V2_26);
        let expected = if list.starts_with("=mlx5_0:") { "" } else { expected };
        assert_eq!(taken(|device, port| old.takes(device, port)), expected, "{list:?}");
    }
    let many = format!("{}mlx5_0", "x,".repeat(32));
    assert_eq!(taken(|d, p| DeviceList::nccl(&many, Release::NEWEST).takes(d, p)), "");
}

#[test]
fn ucx_device_lists() {
    use ucx::Release;
    for (list, v1_18, v1_21, v1_22) in [
        ("mlx5_0:1,bnxt_re0:1", "mlx5_0:1 bnxt_re0:1", "=", "="),
        ("mlx5_0", "", "mlx5_0:1", "="),
        ("^mlx5_1:1", "", "mlx5_0:1 mlx5_1:2 mlx5_10:1 mlx5_bond_0:1 bnxt_re0:1", "="),
        ("^mlx5_1", "", "mlx5_0:1 mlx5_10:1 mlx5_bond_0:1 bnxt_re0:1", "="),
        ("mlx5_[0-1]:1", "", "", "mlx5_0:1 mlx5_1:1"),
        ("mlx5_[1-0]:1", "", "", ""),
        ("mlx5_[0-1]:[1-2]", "", "", ""),
        ("mlx5_1:2,mlx5_[0-0]", "mlx5_1:2", "mlx5_1:2", "mlx5_0:1 mlx5_1:2"),
        ("MLX5_0:1", "", "", ""),
        ("mlx5_1:02", "", "", ""),
    ] {
        let mut before = "";
        for (release, expected) in
            [(Release::V1_18, v1_18), (Release::V1_21, v1_21), (Release::V1_22, v1_22)]
        {
            let devices = Devices::new(list, release);
            let expected = if expected == "=" { before } else { expected };
            assert_eq!(taken(|d, p| devices.takes(d, p)), expected, "{list:?} {release:?}");
            before = expected;
        }
    }
    let ports = |list, release| {
        let devices = Devices::new(list, release);
        PORTS.iter().filter(|(device, port)| devices.takes(device, *port)).count()
    };
    assert_eq!((ports("all", Release::V1_18), ports("all", Release::V1_22)), (6, 6));
    assert_eq!((ports("x,all", Release::V1_18), ports("x,all", Release::V1_22)), (6, 0));
    assert_eq!(ports("mlx5_[0-4294967295]:1", Release::V1_22), 3, "it ends at 128");
}

/// A binary search in a long list and a walk through a short one give the same answer.
#[test]
fn a_list_of_any_length() {
    for more in [0, 60] {
        let own = ["b", "a:2", "c:1", "c:3"].map(str::to_owned);
        let list: Vec<String> = (0..more).map(|n| format!("x{n}:1")).chain(own).collect();
        let list = list.join(",");
        for (mark, is_in) in [("", true), ("^", false)] {
            let list = format!("{mark}{list}");
            let settings = nccl::Settings::new(Implementation::Nvshmem, |name| match name {
                "NVSHMEM_HCA_LIST" => Some(&list),
                "NVSHMEM_ENABLE_NIC_PE_MAPPING" => Some("1"),
                _ => None,
            });
            for (device, number, is_named) in [
                ("b", 1, true),
                ("b", 9, true),
                ("a", 2, true),
                ("a", 1, false),
                ("c", 1, true),
                ("c", 2, false),
                ("c", 3, true),
                ("d", 1, false),
            ] {
                let port = port("port 1 link_layer Ethernet gid_tbl_len 16", vec![]);
                let port = Port { device, number, ..port };
                let outcome = nccl::choose(&port, &settings).outcome;
                let is_left_out = outcome == Outcome::Ignored(Why::NotListed("NVSHMEM_HCA_LIST"));
                assert_eq!(is_left_out, is_named != is_in, "{list} {device}:{number}: {outcome}");
            }
        }
    }
}
