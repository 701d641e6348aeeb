//! Whether soft RoCE listens in this network namespace.

use std::fs::File;
use std::io::{BufRead, BufReader};

/// The UDP sockets of IPv4 of the thread's network namespace. Soft RoCE has one of each family, or none.
const SOCKETS: &str = "/proc/thread-self/net/udp";

/// Whether a UDP socket has the port of RoCE v2 at all addresses; `None` if that cannot be read.
pub(super) fn has_roce_socket() -> Option<bool> {
    let look = || is_listed(BufReader::new(File::open(SOCKETS).ok()?));
    // One may be passed over in a list that changes while it is read.
    if look()? { Some(true) } else { look() }
}

/// Whether it is in a list in the form of `/proc/net/udp`; `None` if that is something else.
fn is_listed(list: impl BufRead) -> Option<bool> {
    // 4791, written as the kernel does.
    const ROCE_V2: &str = "00000000:12B7";
    let mut lines = list.lines();
    let local = |line: &str| line.split_ascii_whitespace().nth(1).map(str::to_owned);
    if local(&lines.next()?.ok()?)? != "local_address" {
        return None;
    }
    for line in lines {
        if local(&line.ok()?)? == ROCE_V2 {
            return Some(true);
        }
    }
    Some(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_socket_of_soft_roce_has_its_port_at_all_addresses() {
        let head = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt\n";
        let listed = |lines: &str| is_listed(format!("{head}{lines}").as_bytes());
        let other = "  158: 0100007F:12B7 00000000:0000 07 00000000:00000000 00:00000000\n";
        let own = "  490: 00000000:12B7 00000000:0000 07 00000000:00000000 00:00000000\n";
        assert_eq!(listed(""), Some(false));
        assert_eq!(listed(other), Some(false));
        assert_eq!(listed(&format!("{other}{own}{other}")), Some(true));
        assert_eq!(listed("\n"), None);
        for none in ["", "\n", "x\n", "sl rem_address\n", own] {
            assert_eq!(is_listed(none.as_bytes()), None, "{none:?}");
        }
        assert_eq!(is_listed(&b"\xff\n"[..]), None);
    }

    #[test]
    fn it_is_known_of_this_namespace() {
        let taken = std::net::UdpSocket::bind("0.0.0.0:4791");
        assert_eq!(has_roce_socket(), Some(true), "{taken:?}");
        if taken.is_ok() {
            drop(taken);
            assert_eq!(has_roce_socket(), Some(false));
        }
    }
}
