//! Sysfs trees of invented hosts.

use std::fs::{self, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A tree like `/sys`, as far as RDMA goes; removed when it is dropped.
#[derive(Debug)]
pub(crate) struct Tree(TempDir);

/// A device's folder.
#[derive(Debug)]
pub(crate) struct Device(PathBuf);

/// A port's folder.
#[derive(Debug)]
pub(crate) struct Port(PathBuf);

const EMPTY_GID: &str = "0000:0000:0000:0000:0000:0000:0000:0000";

/// The file is whole at once, as one of sysfs is: a program that watches the tree never reads a part of it.
pub(crate) fn write(path: impl AsRef<Path>, text: &str) {
    let path = path.as_ref();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let whole = tempfile::Builder::new().permissions(Permissions::from_mode(0o644)).tempfile();
    let mut whole = whole.unwrap();
    writeln!(whole, "{text}").unwrap();
    whole.persist(path).unwrap();
}

impl Tree {
    /// A host with the RDMA core and no device.
    pub(crate) fn new() -> Self {
        let tree = Self(TempDir::new().unwrap());
        fs::create_dir_all(tree.path().join("class/infiniband")).unwrap();
        tree
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Nothing says which devices had a node, so that one can go at once.
    pub(crate) fn without_nodes(&self) {
        fs::remove_dir_all(self.path().join("class/infiniband_verbs")).unwrap();
    }

    /// A device without ports; its GUIDs end in `number`, and its node is `uverbs{number}`.
    pub(crate) fn device(&self, name: &str, node_type: &str, number: u8) -> Device {
        let device = Device(self.path().join("class/infiniband").join(name));
        device.file("node_type", node_type);
        device.file("node_guid", &format!("0002:c903:0000:00{number:02x}"));
        device.file("sys_image_guid", &format!("0002:c903:0001:00{number:02x}"));
        device.file("fw_ver", "28.39.2048");
        fs::create_dir_all(device.0.join("ports")).unwrap();
        let node = self.path().join(format!("class/infiniband_verbs/uverbs{number}"));
        write(node.join("ibdev"), name);
        write(node.join("dev"), &format!("231:{}", 192 + u32::from(number)));
        device
    }

    /// `mlx5_0`: one RoCE port, a table of 12 slots with gaps, v1 and v2, a VLAN, IPv4.
    pub(crate) fn with_roce(&self) -> Device {
        let device = self.device("mlx5_0", "1: CA", 0);
        let port = device.port(1, "Ethernet", "100 Gb/sec (4X EDR)", 12);
        port.gid(0, LINK_LOCAL, "IB/RoCE v1", Some("eth0"));
        port.gid(1, LINK_LOCAL, "RoCE v2", Some("eth0"));
        port.gid(3, "0000:0000:0000:0000:0000:ffff:c0a8:4d01", "RoCE v2", Some("eth0"));
        port.gid(10, "0000:0000:0000:0000:0000:ffff:0a07:0001", "RoCE v2", Some("eth0.7"));
        device
    }

    /// `mlx4_0`: two InfiniBand ports, the second down and without its GID 0.
    pub(crate) fn with_infiniband(&self) -> Device {
        let device = self.device("mlx4_0", "1: CA", 4);
        let port = device.port(1, "InfiniBand", "56 Gb/sec (4X FDR)", 2);
        port.gid(0, "fe80:0000:0000:0000:0002:c903:0004:0001", "IB/RoCE v1", None);
        port.file("lid", "0x0011");
        port.file("sm_lid", "0x1");
        let port = device.port(2, "InfiniBand", "10 Gb/sec (4X)", 2);
        port.file("state", "1: DOWN");
        port.file("phys_state", "2: Polling");
        device
    }

    /// `iwarp0`: one port with one GID, and no P_Key table.
    pub(crate) fn with_iwarp(&self) -> Device {
        let device = self.device("iwarp0", "4: RNIC", 9);
        let port = device.port(1, "Ethernet", "25 Gb/sec (1X EDR)", 1);
        port.gid(0, "0011:2233:4455:0000:0000:0000:0000:0000", "IB/RoCE v1", None);
        fs::remove_dir_all(port.0.join("pkeys")).unwrap();
        device
    }

    /// `sw0`: a switch, whose one port is number 0.
    pub(crate) fn with_switch(&self) -> Device {
        let device = self.device("sw0", "2: switch", 12);
        let port = device.port(0, "InfiniBand", "100 Gb/sec (4X EDR)", 1);
        port.gid(0, "fe80:0000:0000:0000:0002:c903:000c:0000", "IB/RoCE v1", None);
        device
    }
}

/// The default GID of `mlx5_0`.
pub(crate) const LINK_LOCAL: &str = "fe80:0000:0000:0000:0011:22ff:fe33:4455";

impl Device {
    /// The whole device goes at once.
    pub(crate) fn remove(&self) {
        let away = TempDir::new().unwrap();
        fs::rename(&self.0, away.path().join("device")).unwrap();
    }

    pub(crate) fn file(&self, name: &str, text: &str) {
        write(self.0.join(name), text);
    }

    /// A port that is up, its table empty.
    pub(crate) fn port(&self, number: u32, link_layer: &str, rate: &str, slots: u32) -> Port {
        let port = Port(self.0.join("ports").join(number.to_string()));
        for (name, text) in [
            ("state", "4: ACTIVE"),
            ("phys_state", "5: LinkUp"),
            ("link_layer", link_layer),
            ("rate", rate),
            ("lid", "0x0"),
            ("sm_lid", "0x0"),
            ("sm_sl", "0"),
            ("lid_mask_count", "0"),
            ("cap_mask", "0x04010000"),
            ("pkeys/0", "0xffff"),
        ] {
            port.file(name, text);
        }
        for index in 0..slots {
            port.file(&format!("gids/{index}"), EMPTY_GID);
        }
        port
    }

    pub(crate) fn port_again(&self, number: u32) -> Port {
        Port(self.0.join("ports").join(number.to_string()))
    }
}

impl Port {
    pub(crate) fn file(&self, name: &str, text: &str) {
        write(self.0.join(name), text);
    }

    pub(crate) fn remove(&self, name: &str) {
        fs::remove_file(self.0.join(name)).unwrap();
    }

    pub(crate) fn remove_folder(&self, name: &str) {
        fs::remove_dir_all(self.0.join(name)).unwrap();
    }

    /// Makes a file one that the kernel refuses to read (`EINVAL`): the speed of the loopback interface.
    pub(crate) fn refuse(&self, name: &str) {
        const REFUSED: &str = "/sys/class/net/lo/speed";
        let errno = fs::read(REFUSED).map_err(|error| error.raw_os_error());
        assert_eq!(errno, Err(Some(22)), "this test needs {REFUSED}: mount /sys");
        self.remove(name);
        std::os::unix::fs::symlink(REFUSED, self.0.join(name)).unwrap();
    }

    /// The GID comes last: until then the entry is empty, whatever its type and its interface.
    pub(crate) fn gid(&self, index: u32, gid: &str, gid_type: &str, netdev: Option<&str>) {
        self.file(&format!("gid_attrs/types/{index}"), gid_type);
        if let Some(netdev) = netdev {
            self.file(&format!("gid_attrs/ndevs/{index}"), netdev);
        }
        self.file(&format!("gids/{index}"), gid);
    }
}
