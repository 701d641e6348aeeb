//! `read_snapshot [FILE]`: which GID to use on each port of the hosts whose snapshots are in a file, or on stdin.
//!
//! `uverbs snapshot` writes them. Only one host is in memory at a time.

use std::error::Error;
use std::fs::File;
use std::io::{BufRead, BufReader, stdin};

use uverbs::choose::{self, Wish};
use uverbs::inventory::{SnapshotError, Snapshots};

fn main() -> Result<(), Box<dyn Error>> {
    match std::env::args().nth(1) {
        Some(path) => show(BufReader::new(File::open(path)?), |line| println!("{line}"))?,
        None => show(stdin().lock(), |line| println!("{line}"))?,
    }
    Ok(())
}

/// Gives a line for each port of each host.
fn show(reader: impl BufRead, mut print: impl FnMut(String)) -> Result<(), SnapshotError> {
    for host in Snapshots::new(reader) {
        let host = host?;
        let name = host.host.as_deref().unwrap_or("?");
        for port in choose::ports(&host) {
            let outcome = choose::recommend(&port, &Wish::default()).outcome;
            print(format!("{name} {}:{} {outcome}", port.device, port.number));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use uverbs::device::Device;
    use uverbs::gid::{Gid, GidEntry, GidRecord, GidType};
    use uverbs::host::Source;
    use uverbs::inventory::{DeviceRecord, Inventory, PortRecord};
    use uverbs::port::{LinkLayer, PortAttributes, PortState};

    fn host(name: &str) -> Inventory {
        let mut attributes = PortAttributes::default();
        (attributes.state, attributes.link_layer) = (PortState::ACTIVE, LinkLayer::ETHERNET);
        attributes.gid_tbl_len = 8;
        let mut port = PortRecord::new(1);
        port.attributes = Some(Ok((attributes, Source::Ioctl)));
        let gid = Gid::from(std::net::Ipv4Addr::new(10, 0, 0, 1));
        let entry = GidEntry::new(1, 3, gid).with_type(GidType::ROCE_V2);
        let mut device = Device::named("mlx5_0");
        device.port_count = 1;
        let mut record = DeviceRecord::new(device);
        record.ports.push(port);
        record.gids = Some(Ok(vec![GidRecord::from(entry).into()]));
        let mut host = Inventory::default();
        host.host = Some(name.to_owned());
        host.devices.push(record);
        host
    }

    #[test]
    fn each_host_has_its_lines() {
        let text = |name| serde_json::to_string(&host(name)).unwrap();
        let both = format!("{}\n{}\n", text("node1"), text("node2"));
        let mut lines = Vec::new();
        show(both.as_bytes(), |line| lines.push(line)).unwrap();
        assert_eq!(lines, ["node1 mlx5_0:1 3", "node2 mlx5_0:1 3"]);
        let error = show(&b"{"[..], |_| ()).unwrap_err();
        assert!(error.to_string().contains("no JSON"), "{error}");
    }
}
