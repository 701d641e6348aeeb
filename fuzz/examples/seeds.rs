//! Writes the first corpora: `cargo run --example seeds`. What fuzzing finds is added beside them.

use std::fs;
use std::path::Path;

fn save(target: &str, name: &str, bytes: &[u8]) -> std::io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    fs::create_dir_all(&folder)?;
    fs::write(folder.join(name), bytes)
}

/// An attribute of netlink.
fn attribute(kind: u16, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(payload.len() + 4).unwrap_or(u16::MAX);
    let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
    bytes.extend_from_slice(payload);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// Messages as the target `netlink` takes them: a length in front of each.
fn messages(contents: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = vec![1];
    for content in contents {
        bytes.push(u8::try_from(content.len()).unwrap_or(u8::MAX));
        bytes.extend_from_slice(content);
    }
    bytes
}

fn main() -> std::io::Result<()> {
    for target in ["encoder", "hostile_kernel", "sysfs", "c_arguments"] {
        for seed in 0..12 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut bytes = vec![0; 40 << (seed % 5)];
            random.fill(&mut bytes);
            save(target, &format!("seed-{seed}"), &bytes)?;
        }
    }
    let device = [
        attribute(1, &3u32.to_ne_bytes()),
        attribute(2, b"rxe0\0"),
        attribute(3, &2u32.to_ne_bytes()),
        attribute(6, &[0x11; 8]),
        attribute(14, &[1]),
    ]
    .concat();
    let node = [attribute(69, b"uverbs0\0"), attribute(70, &59_328u64.to_ne_bytes())].concat();
    let mut link = vec![0; 16];
    link[4] = 2;
    link.extend(attribute(3, b"eth0\0"));
    link.extend(attribute(1, &[2, 0, 0, 0, 0, 1]));
    link.extend(attribute(5, &1u32.to_ne_bytes()));
    link.extend(attribute(18, &attribute(1, b"vlan\0")));
    let mut address = vec![0; 8];
    address[4] = 2;
    address.extend(attribute(1, &[10, 0, 0, 1]));
    save("netlink", "device-and-node", &messages(&[device, node]))?;
    save("netlink", "link-and-address", &messages(&[link, address]))?;
    save("netlink", "a-device-told", &[[0x80].as_slice(), &[7; 24], b"mlx5"].concat())?;
    // Two questions, answered in the wrong order among other's words; and a list in two parts.
    let answers = [[0x10, 2, 9], [0x12, 1, 6], [0x33, 1, 6], [0x10, 1, 8]].concat();
    save("netlink", "two-answers", &[[0xc2].as_slice(), &answers].concat())?;
    let list = [[0x10, 1, 5], [0x88, 1, 0], [0x30, 2, 6], [0x10, 2, 7], [0x08, 2, 0]].concat();
    save("netlink", "a-list-that-changed", &[[0xc0].as_slice(), &list].concat())?;
    for (name, line) in [
        ("selector", "xmlx5_0:1"),
        ("selector-slash", "xmlx5_0/1"),
        ("guid", "x0011:22ff:fe33:4455"),
        ("guid-number", "x0x001122fffe334455"),
        ("address", "x::ffff:192.168.77.1"),
        ("address-long", "xfe80:0000:0000:0000:0011:22ff:fe33:4455"),
        ("hca-list", "x^=mlx5_0:1,mlx5_1::0:0"),
        ("net-devices", "xmlx5_[0-3]:1"),
        ("subnets", "x^10.0.0.0/8,fd00::/16"),
        ("range", "xfd00::/8"),
        ("index", "x0x3"),
        ("conf", "x# pinned\nNCCL_IB_GID_INDEX=3\n"),
        ("choose", "cchoose\0mlx5_0:1\0--like\0nccl-2.26\0--explain\0--cidr\x0010.0.0.0/8"),
        ("env", "cenv\0nccl\0--json"),
        ("gids", "cgids\0mlx5_0:1\0--type\0v2\0--ip\x0010.0.0.1"),
        ("cidr", "cgids\0--cidr\x0010.0.0.0/8\0--netdev\0eth0"),
        ("gid", "cgid\0mlx5_0:1\x003\0--json"),
        ("mlx5", "cmlx5\0vport\0mlx5_0:1"),
        ("help", "cgids\0--help"),
    ] {
        save("syntax", name, line.as_bytes())?;
    }
    let host = snapshot("node1");
    let other = host.replace("node1", "node2").replace("10.0.0.1", "10.0.0.2");
    for (name, text) in [
        ("a-host", host.clone()),
        ("two-hosts", format!("{host}\n{other}\n")),
        ("lines", host.replace(',', ",\n")),
        ("torn", format!("{}\n{other}", &host[..host.len() / 2])),
        ("bad", format!("\n{}\n{other}", host.replace("ioctl", "x"))),
        ("nothing", "\n".to_owned()),
    ] {
        save("snapshots", name, text.as_bytes())?;
    }
    Ok(())
}

/// A host with something in every list.
fn snapshot(name: &str) -> String {
    let problem = r#"{"error":"host: no","errno":5}"#;
    let netdev = r#"{"index":2,"name":"eth0"}"#;
    let row = format!(
        r#"{{"port":1,"index":3,"gid":"::ffff:10.0.0.1","gid_type":2,"ifindex":2,"source":"ioctl","netdev":{netdev},"type_is_hidden":false}}"#
    );
    let attributes = r#"{"state":4,"phys_state":5,"link_layer":2,"lid":0,"sm_lid":0,"sm_sl":0,"lmc":0,"gid_tbl_len":16,"pkey_tbl_len":1,"port_cap_flags":0,"active_width":2,"active_speed":32}"#;
    let port = format!(
        r#"{{"number":1,"attributes":[{attributes},"sysfs"],"effective":{problem},"guid":"0x001122fffe334455","netdev":{netdev},"pkeys":[[0,65535]]}}"#
    );
    let device = format!(
        r#"{{"name":"mlx5_0","index":0,"node_type":1,"driver":1,"node_guid":"0x0002c90300000004","sys_image_guid":"0x0002c90300000004","node":{{"name":"uverbs0","path":"/dev/infiniband/uverbs0","number":59328}},"access":true,"ports":[{port}],"gids":[{row}]}}"#
    );
    let interface = r#"{"index":2,"name":"eth0","is_up":true,"is_lower_up":true,"mtu":1500,"mac":"02:11:22:33:44:55","addresses":[["10.0.0.1",24]]}"#;
    let absence = r#"{"reason":"other_namespace","device":"mlx5_9","node":"uverbs9"}"#;
    let setting =
        r#"{"name":"NCCL_IB_GID_INDEX","value":"4","file":"/etc/nccl.conf","since":"2.23"}"#;
    format!(
        r#"{{"schema_version":1,"host":"{name}","kernel":"6.12.0","modules":["ib_core"],"has_netlink":true,"devices":[{device}],"absences":[{absence}],"interfaces":[{interface}],"settings":[{setting}],"problems":[{problem}]}}"#
    )
}
