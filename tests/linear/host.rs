//! A host, as a snapshot has it.

use serde_json::{Value, json};

fn attributes(state: u32) -> Value {
    json!([{
        "state": state, "phys_state": 5, "link_layer": 2, "lid": 0, "sm_lid": 0, "sm_sl": 0, "lmc": 0,
        "gid_tbl_len": 1_000_000, "pkey_tbl_len": 1, "port_cap_flags": 0, "max_mtu": 5, "active_mtu": 3,
        "active_width": 2, "active_speed": 32,
    }, "ioctl"])
}

pub(crate) fn port(number: usize) -> Value {
    json!({ "number": number, "attributes": attributes(4), "guid": null, "pkeys": null })
}

/// A row with an address of its own.
pub(crate) fn row(port: usize, index: usize, netdev: Option<usize>) -> Value {
    let [.., a, b, c] = index.to_be_bytes();
    json!({
        "port": port, "index": index, "gid": format!("::ffff:10.{a}.{b}.{c}"), "gid_type": "roce_v2",
        "ifindex": netdev.unwrap_or(7), "source": "ioctl", "type_is_hidden": false,
        "netdev": netdev.map(|index| json!({ "index": index, "name": format!("eth{index}") })),
    })
}

pub(crate) fn device(name: &str, ports: &[Value], gids: &[Value]) -> Value {
    json!({
        "name": name, "node_type": 1, "driver": 1, "node_guid": "0x0002c90300000004",
        "sys_image_guid": "0x0002c90300000004", "access": true, "ports": ports, "gids": gids,
        "node": { "name": "uverbs0", "path": "/dev/infiniband/uverbs0", "number": 1 },
        "node_mode": 0o20666,
    })
}

pub(crate) fn interface(index: usize, addresses: &[Value]) -> Value {
    json!({
        "index": index, "name": format!("eth{index}"), "is_up": true, "is_lower_up": true, "mtu": 1500,
        "addresses": addresses,
    })
}

pub(crate) fn host() -> Value {
    json!({
        "schema_version": 1, "host": "node", "kernel": "6.12.0", "shares_namespaces": true,
        "modules": ["ib_uverbs"], "has_netlink": true, "absences": [], "settings": [], "problems": [],
        "devices": [device("a", &[port(1)], &[row(1, 3, Some(2))])],
        "interfaces": [interface(2, &[json!(["10.0.0.3", 24])])],
    })
}

pub(crate) fn with_devices(count: usize) -> Value {
    let mut host = host();
    let own = |n| device(&format!("mlx5_{n}"), &[port(1)], &[row(1, n, Some(2))]);
    host["devices"] = (0..count).map(own).collect();
    host
}

pub(crate) fn with_rows(count: usize) -> Value {
    let mut host = host();
    host["devices"][0]["gids"] = (0..count).map(|n| row(1, n, Some(2))).collect();
    host
}
