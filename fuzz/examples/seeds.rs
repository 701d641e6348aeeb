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
    Ok(())
}
