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

/// Empty entries are none, and `all` is all only if nothing follows it.
#[test]
fn ucx_lists_as_ucx_splits_them() {
    use ucx::Release;
    let outcome = |set: &str, release| {
        let rows = vec![row("1 0 fe80::1 v2 e"), row("1 1 ::ffff:10.0.0.1 v2 e")];
        let port = port("port 1 link_layer Ethernet gid_tbl_len 16", rows);
        let settings = ucx::Settings::new(release, of(&variables(set)));
        ucx::choose(&Port { device: "mlx5_0", ..port }, &settings).outcome
    };
    let refused = |name| Outcome::Fails(Why::BadValue(name));
    let (subnets, devices) = ("UCX_IB_ROCE_SUBNETS", "UCX_NET_DEVICES");
    for (set, expected) in [
        ("UCX_IB_ROCE_SUBNETS=10.0.0.0/8,", Outcome::Taken(1)),
        ("UCX_IB_ROCE_SUBNETS=,,10.0.0.0/8", Outcome::Taken(1)),
        ("UCX_IB_ROCE_SUBNETS=^all", Outcome::Taken(1)),
        ("UCX_IB_ROCE_SUBNETS=^", Outcome::Taken(1)),
        ("UCX_IB_ROCE_SUBNETS=", Outcome::Fails(Why::NoRow)),
        ("UCX_IB_ROCE_SUBNETS=all,10.0.0.0/8", refused(subnets)),
        ("UCX_IB_ROCE_SUBNETS=10.0.0.0", refused(subnets)),
        ("UCX_NET_DEVICES=all,", Outcome::Taken(1)),
        ("UCX_NET_DEVICES=,mlx5_0:1", Outcome::Taken(1)),
        ("UCX_NET_DEVICES=all,mlx5_0:1", refused(devices)),
        ("UCX_NET_DEVICES=", Outcome::Ignored(Why::NotListed(devices))),
        ("UCX_IB_FLID_ROUTE=bogus", refused("UCX_IB_FLID_ROUTE")),
    ] {
        assert_eq!(outcome(set, Release::NEWEST), expected, "{set}");
    }
    for set in ["UCX_NET_DEVICES=all,x", "UCX_NET_DEVICES=x,all", "UCX_IB_FLID_ROUTE=bogus"] {
        assert_eq!(outcome(set, Release::V1_15), Outcome::Taken(1), "{set}");
    }
    // What follows the 128th entry is not read.
    let others = "192.0.2.1/32,".repeat(127);
    let last = format!("UCX_IB_ROCE_SUBNETS={others}10.0.0.1/32,bogus");
    assert_eq!(outcome(&last, Release::NEWEST), Outcome::Taken(1));
    let after = format!("UCX_IB_ROCE_SUBNETS={others}192.0.2.1/32,10.0.0.1/32");
    assert_eq!(outcome(&after, Release::NEWEST), Outcome::Fails(Why::NoRow));
}

#[test]
fn nvshmem_device_lists() {
    let takes = |list: &str| {
        let settings = nccl::Settings::new(Implementation::Nvshmem, |name| match name {
            "NVSHMEM_HCA_LIST" => Some(list),
            "NVSHMEM_ENABLE_NIC_PE_MAPPING" => Some("yes"),
            _ => None,
        });
        taken(|device, number| {
            let port = port("port 1 link_layer Ethernet gid_tbl_len 16", vec![]);
            let outcome = nccl::choose(&Port { device, number, ..port }, &settings).outcome;
            outcome != Outcome::Ignored(Why::NotListed("NVSHMEM_HCA_LIST"))
        })
    };
    let all = takes("");
    let others = "x:1,".repeat(15);
    for (list, expected) in [
        ("mlx5_0", "mlx5_0:1"),
        ("mlx5_0:1", "mlx5_0:1"),
        ("mlx5_0:-1", "mlx5_0:1"),
        ("mlx5_0:", ""),
        ("mlx5_0:0", ""),
        ("mlx5_0:1:4,:1,mlx5_1:2", "mlx5_0:1 mlx5_1:2"),
        ("^", &all),
        (",", &all),
        ("^mlx5_1", "mlx5_0:1 mlx5_10:1 mlx5_bond_0:1 bnxt_re0:1"),
        (&format!("{others}mlx5_0"), "mlx5_0:1"),
        (&format!("{others}x:1,mlx5_0"), ""),
    ] {
        assert_eq!(takes(list), expected, "{list:?}");
    }
    assert_eq!(all.split(' ').count(), PORTS.len());
}
