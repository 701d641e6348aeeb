//! `pkeys`, and ports in the forms of `ibstat` and `ibdev2netdev`. The virtual machine compares them with the
//! originals.

use serde_json::{Value, json};

use crate::snapshots::{DUAL, Fleet, VLAN, host, port};
use crate::tree::Tree;

#[test]
fn pkeys_of_all_ports() {
    let tree = Tree::new();
    tree.with_roce();
    let port = tree.with_infiniband().port_again(1);
    port.file("pkeys/1", "0x7fff");
    port.file("pkeys/2", "0x0000");
    port.file("pkeys/3", "0x8123");
    assert_eq!(
        tree.answer(&["pkeys"]),
        "\
DEVICE  PORT  INDEX  PKEY    MEMBERSHIP
mlx4_0  1     0      0xffff  full
mlx4_0  1     1      0x7fff  limited
mlx4_0  1     3      0x8123  full
mlx4_0  2     0      0xffff  full
mlx5_0  1     0      0xffff  full
"
    );
    let row = json!({
        "device": "mlx4_0", "port": 1, "index": 1, "pkey": "0x7fff", "membership": "limited",
    });
    assert_eq!(tree.json(&["pkeys", "mlx4_0:1"])["pkeys"][1], row);
    // What cannot be read is a problem, and hides no other port.
    port.file("pkeys/1", "none");
    let run = tree.uverbs(&["pkeys", "--no-header"]);
    assert_eq!((run.stdout.lines().count(), run.status), (2, 3), "{run:?}");
    assert!(run.stderr.contains("mlx4_0: query P_Keys of port 1"), "{run:?}");
}

#[test]
fn no_pkey_is_said() {
    let tree = Tree::new();
    tree.with_iwarp();
    let run = tree.uverbs(&["pkeys"]);
    assert_eq!(
        (run.stderr.as_str(), run.status),
        ("uverbs: no P_Key is in use in what was asked for\n", 0)
    );
    // A snapshot does not have those of Ethernet ports, which is not that there are none.
    let fleet = Fleet::new(&[host("node1", &[("mlx5_0", port(DUAL))])]);
    let run = fleet.uverbs(&["pkeys"]);
    let said = "uverbs: node1: a snapshot has no P_Keys of Ethernet ports: mlx5_0:1\n";
    assert_eq!((run.stderr.as_str(), run.status), (said, 1));
    // Of a port that could not be read it is not known that it is one.
    let mut one = host("node1", &[("mlx5_0", port(DUAL))]);
    let unread = json!({ "error": "mlx5_0: open: no", "errno": 5 });
    one["devices"][0]["ports"][0]["attributes"] = unread;
    let run = Fleet::new(&[one]).uverbs(&["pkeys"]);
    assert_eq!((run.stderr.as_str(), run.status), ("uverbs: node1: mlx5_0: open: no\n", 3));
}

/// As infiniband-diags prints it.
#[test]
fn ibstat_of_a_device_and_of_a_port() {
    let tree = Tree::new();
    let device = tree.with_infiniband();
    tree.with_iwarp();
    device.file("hca_type", "MT4099");
    device.port_again(2).file("rate", "2.5 Gb/sec (1X SDR)");
    let run = tree.uverbs(&["ports", "--format", "ibstat"]);
    assert_eq!(
        run.stdout,
        "\
CA 'mlx4_0'
\tCA type: MT4099
\tNumber of ports: 2
\tFirmware version: 28.39.2048
\tHardware version: \n\
\tNode GUID: 0x0002c90300000004
\tSystem image GUID: 0x0002c90300010004
\tPort 1:
\t\tState: Active
\t\tPhysical state: LinkUp
\t\tRate: 56
\t\tBase lid: 17
\t\tLMC: 0
\t\tSM lid: 1
\t\tCapability mask: 0x04010000
\t\tPort GUID: 0x0002c90300040001
\t\tLink layer: InfiniBand
\tPort 2:
\t\tState: Down
\t\tPhysical state: Polling
\t\tRate: 2.5
\t\tBase lid: 0
\t\tLMC: 0
\t\tSM lid: 0
\t\tCapability mask: 0x04010000
\t\tPort GUID: 0x0000000000000000
\t\tLink layer: InfiniBand
"
    );
    assert_eq!(run.stderr, "uverbs: iwarp0: ibstat shows no device of its type\n");
    let one = tree.answer(&["ports", "mlx4_0:2", "--format", "ibstat"]);
    assert!(
        one.starts_with("CA: 'mlx4_0'\nPort 2:\nState: Down\nPhysical state: Polling\n"),
        "{one}"
    );
    assert_eq!(one.lines().count(), 11, "{one}");
    // The tool reads what sysfs says of a speed that the kernel does not know.
    device.port_again(1).file("rate", "10 Gb/sec (4X SDR)");
    let one = tree.answer(&["ports", "mlx4_0:1", "--format", "ibstat"]);
    assert!(one.contains("\nRate: 10\n"), "{one}");
    // A name that this version does not know is not one that the kernel does not know.
    device.port_again(1).file("rate", "800 Gb/sec (4X NEW)");
    let run = tree.uverbs(&["ports", "mlx4_0:1", "--format", "ibstat"]);
    let unknown = "uverbs: mlx4_0: port 1 is not shown, as its rate is not known (errno 61)\n";
    assert_eq!((run.stdout.as_str(), run.stderr.as_str(), run.status), ("", unknown, 3));
    let run = tree.uverbs(&["ports", "mlx4_0", "--format", "ibstat"]);
    assert_eq!((run.stderr.as_str(), run.status), (unknown, 3));
    assert!(!run.stdout.contains("Port 1:") && run.stdout.contains("Port 2:"), "{run:?}");
    // A switch is no CA.
    tree.with_switch();
    let one = tree.answer(&["ports", "sw0:0", "--format", "ibstat"]);
    assert!(one.starts_with("Switch: 'sw0'\nPort 0:\nState: Active\n"), "{one}");
    // FDR10 is named, as its rate is QDR's.
    device.port_again(1).file("rate", "40 Gb/sec (4X FDR10)");
    let one = tree.answer(&["ports", "mlx4_0:1", "--format", "ibstat"]);
    assert!(one.contains("\nRate: 40 (FDR10)\n"), "{one}");
    // The tool fails where slot 0 is not there, which is not an empty slot.
    let folder = tree.path().join("class/infiniband/mlx4_0/ports/2/gids");
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::create_dir(&folder).unwrap();
    for name in ["mlx4_0", "mlx4_0:2"] {
        let run = tree.uverbs(&["ports", name, "--format", "ibstat"]);
        let why = "mlx4_0: port 2 is not shown, as it has no GID table, and so no GUID (errno 61)";
        assert!(run.stderr.contains(why) && run.status == 3, "{run:?}");
        assert!(!run.stdout.contains("Port 2:"), "{run:?}");
    }
}

/// As of a rate: the zeros are those of a port without a GID.
#[test]
fn ibstat_of_a_port_whose_guid_cannot_be_read() {
    let tree = Tree::new();
    tree.with_infiniband();
    let gids = tree.path().join("class/infiniband/mlx4_0/ports/1/gids/0");
    std::fs::remove_file(&gids).unwrap();
    std::fs::create_dir(&gids).unwrap();
    let run = tree.uverbs(&["ports", "--format", "ibstat"]);
    assert!(!run.stdout.contains("Port 1:") && run.stdout.contains("Port 2:"), "{run:?}");
    assert!(run.stderr.contains("ports/1/gids/0: EISDIR") && run.status == 3, "{run:?}");
    let run = tree.uverbs(&["ports", "mlx4_0:1", "--format", "ibstat"]);
    assert_eq!((run.stdout.as_str(), run.status), ("", 3), "{run:?}");
    let mut one = host("node1", &[("mlx5_0", port(DUAL))]);
    one["devices"][0]["ports"][0]["guid"] = json!({ "error": "mlx5_0: no", "errno": 5 });
    let run = Fleet::new(&[one]).uverbs(&["ports", "--format", "ibstat"]);
    assert!(!run.stdout.contains("Port 1:") && run.stdout.contains("CA 'mlx5_0'"), "{run:?}");
    assert_eq!((run.stderr.as_str(), run.status), ("uverbs: node1: mlx5_0: no\n", 3));
}

/// A port that is down may have no speed. Sysfs says SDR then.
#[test]
fn ibstat_of_a_port_without_a_speed() {
    let mut one = host("node1", &[("mlx5_0", port(DUAL))]);
    one["devices"][0]["ports"][0]["attributes"][0]["active_speed"] = json!(0);
    let run = Fleet::new(&[one]).uverbs(&["ports", "--format", "ibstat"]);
    assert!(run.stdout.contains("\n\t\tRate: 10\n") && run.status == 0, "{run:?}");
}

#[test]
fn ibdev2netdev_of_what_is_known() {
    let mut one = host("node1", &[("mlx5_0", port(DUAL)), ("mlx5_1", port(VLAN))]);
    let fleet = Fleet::new(std::slice::from_ref(&one));
    let words = ["ports", "--format", "ibdev2netdev"];
    let up = "mlx5_0 port 1 ==> eth0 (Up)\nmlx5_1 port 1 ==> eth0 (Up)\n";
    assert_eq!(fleet.uverbs(&words).stdout, up);
    one["interfaces"][0]["is_lower_up"] = false.into();
    one["devices"][1]["ports"][0]["netdev"] = json!(null);
    one["devices"][1]["gids"] = json!([]);
    let run = Fleet::new(&[one]).uverbs(&words);
    assert_eq!(run.stdout, "mlx5_0 port 1 ==> eth0 (Down)\n");
    assert!(run.stderr.contains("mlx5_1:1: no network interface of it is known here"), "{run:?}");
    assert_eq!(run.status, 0, "{run:?}");
}

/// The script reads the interface of GID 0, and no other. A port of a bond is not that of its GIDs.
#[test]
fn ibdev2netdev_names_the_interface_of_gid_0() {
    let mut one = host("node1", &[("mlx5_bond_0", port(DUAL)), ("mlx5_1", port(DUAL))]);
    let words = ["ports", "--format", "ibdev2netdev"];
    let bond = json!({ "index": 3, "name": "bond0" });
    one["interfaces"][1]["name"] = "bond0".into();
    one["devices"][0]["gids"][0]["netdev"] = bond.clone();
    one["devices"][1]["gids"][1]["netdev"] = bond;
    let text = "mlx5_1 port 1 ==> eth0 (Up)\nmlx5_bond_0 port 1 ==> bond0 (Up)\n";
    assert_eq!(Fleet::new(std::slice::from_ref(&one)).uverbs(&words).stdout, text);
    // The state is that of the interface that is named.
    one["interfaces"][1]["is_lower_up"] = false.into();
    one["devices"][1]["gids"].as_array_mut().unwrap().remove(0);
    let text = "mlx5_1 port 1 ==> eth0 (Up)\nmlx5_bond_0 port 1 ==> bond0 (Down)\n";
    assert_eq!(Fleet::new(std::slice::from_ref(&one)).uverbs(&words).stdout, text);
    // The table that cannot be read is a problem: the interface may be another.
    one["devices"][0]["gids"] = json!({ "error": "mlx5_bond_0: query GID table: no", "errno": 5 });
    let run = Fleet::new(&[one]).uverbs(&words);
    let text = "mlx5_1 port 1 ==> eth0 (Up)\n";
    assert_eq!((run.stdout.as_str(), run.status), (text, 3), "{run:?}");
    assert!(run.stderr.contains("mlx5_bond_0: query GID table: no"), "{run:?}");
}

/// An interface of GID 0 that is not known is not the port's own.
#[test]
fn ibdev2netdev_names_no_other_than_that_of_gid_0() {
    let words = ["ports", "--format", "ibdev2netdev"];
    let asked = |change: &dyn Fn(&mut Value)| {
        let mut one = host("node1", &[("mlx5_0", port(DUAL))]);
        let row = &mut one["devices"][0]["gids"][0];
        row["netdev"] = Value::Null;
        change(row);
        let run = Fleet::new(&[one]).uverbs(&words);
        let said = "mlx5_0:1: it is not known here which network interface GID 0 has";
        assert_eq!(run.stderr.contains(said), run.status == 1, "{run:?}");
        (run.stdout, run.status)
    };
    let own = ("mlx5_0 port 1 ==> eth0 (Up)\n".to_owned(), 0);
    // Its index, or its name, is that of the port's own.
    assert_eq!(asked(&|_| ()), own);
    let named = |row: &mut Value, name: &str| {
        (row["ifindex"], row["sysfs_netdev"]) = (Value::Null, name.into());
    };
    assert_eq!(asked(&|row| named(row, "eth0")), own);
    assert_eq!(asked(&|row| row["ifindex"] = Value::Null), own);
    // It is another one's.
    assert_eq!(asked(&|row| row["ifindex"] = 9.into()), (String::new(), 1));
    let bond = "mlx5_0 port 1 ==> bond0 (NA)\n".to_owned();
    assert_eq!(asked(&|row| named(row, "bond0")), (bond, 0));
    let unread = |row: &mut Value| {
        (row["ifindex"], row["netdev_is_unread"]) = (Value::Null, true.into());
    };
    assert_eq!(asked(&unread), (String::new(), 1));
}

/// Of a sysfs tree only the names of GIDs' interfaces are known, as the script reads them.
#[test]
fn ibdev2netdev_of_a_tree() {
    let tree = Tree::new();
    tree.with_roce();
    tree.with_iwarp();
    let other = tree.device("mlx5_1", "1: CA", 1);
    let port = other.port(1, "Ethernet", "100 Gb/sec (4X EDR)", 2);
    port.gid(1, crate::tree::LINK_LOCAL, "RoCE v2", Some("eth1"));
    let run = tree.uverbs(&["ports", "--format", "ibdev2netdev"]);
    assert_eq!((run.stdout.as_str(), run.status), ("mlx5_0 port 1 ==> eth0 (NA)\n", 1), "{run:?}");
    for name in ["iwarp0:1", "mlx5_1:1"] {
        let said = format!("{name}: network interfaces are not known");
        assert!(run.stderr.contains(&said), "{run:?}");
    }
}

/// An InfiniBand port has no interface; IPoIB has its GUID in the hardware address.
#[test]
fn ibdev2netdev_of_ipoib() {
    let mut one = host("node1", &[("mlx5_0", port(&[]))]);
    let own = &mut one["devices"][0]["ports"][0];
    (own["netdev"], own["attributes"][0]["link_layer"]) = (Value::Null, 1.into());
    one["interfaces"][0]["name"] = "ib0".into();
    let words = ["ports", "--format", "ibdev2netdev"];
    one["interfaces"][0]["port_guid"] = "0x001122fffe334456".into();
    assert_eq!(Fleet::new(std::slice::from_ref(&one)).uverbs(&words).stdout, "");
    one["interfaces"][0]["port_guid"] = "0x001122fffe334455".into();
    assert_eq!(Fleet::new(&[one]).uverbs(&words).stdout, "mlx5_0 port 1 ==> ib0 (Up)\n");
}
