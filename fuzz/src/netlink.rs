//! Netlink replies: any bytes are read or refused.

use std::path::Path;

/// Runs the target: the bytes are a datagram; of every second one the lengths are put right, so that
/// the parsers of attributes get to see something.
///
/// # Panics
/// If a promise is broken.
pub fn run(data: &[u8]) {
    let Some((first, datagram)) = data.split_first() else { return };
    if first & 1 == 0 {
        check(datagram);
    } else {
        // Messages behind a header each, of 255 bytes at most.
        let mut whole = Vec::new();
        let mut rest = datagram;
        while let Some((length, behind)) = rest.split_first() {
            let (content, behind) = behind.split_at(usize::from(*length).min(behind.len()));
            let length = u32::try_from(16 + content.len()).unwrap_or(16);
            whole.extend_from_slice(&length.to_ne_bytes());
            let kind: u16 = if first & 6 == 6 { 3 } else { 0x1401 };
            whole.extend_from_slice(&kind.to_ne_bytes());
            whole.extend_from_slice(&[0; 10]);
            whole.extend_from_slice(content);
            whole.resize(whole.len().next_multiple_of(4), 0);
            rest = behind;
        }
        check(&whole);
    }
}

fn check(datagram: &[u8]) {
    let dev = Path::new("/dev/infiniband");
    let read = uverbs::replies::read(datagram, dev);
    assert!(read.messages <= datagram.len() / 16 + 1);
    assert!(read.attributes <= datagram.len() / 4 + 1);
    for device in &read.devices {
        assert!(!device.name.is_empty() && !device.name.contains(['/', '\0']));
        assert!(device.name != "." && device.name != "..");
        assert!(device.port_count <= 1 << 16 && device.index.is_some());
        assert!(device.ports().count() <= 1 << 16);
        if let Some(node) = &device.node {
            assert_eq!(node.path.parent(), Some(dev), "{node:?}");
        }
        let _ = format!("{device:?} {}", device.node_type);
    }
    for (index, above) in &read.links {
        assert!(*index != 0 && above.len() <= read.messages + read.messages);
    }
}
