//! The connection manager, asked which port has a GID for an interface of this network namespace.
//!
//! An identifier is bound to the GID's address. The kernel (`cma_acquire_dev_by_src_ip`) then looks for the
//! address's interface in this namespace, and for a port with a row of this GID that points to this very
//! interface. It does not compare indices or names. It answers with a port that has such a row, or `ENODEV`. The
//! row's type is the one that the connection manager uses by default for this port: RoCE v2 where the port
//! has it. An administrator may set another, so the row's type is not known.
//!
//! The caller must know this:
//!
//! - Of several interfaces with one address, the kernel takes the first. For IPv6 link-local addresses it
//!   takes the one that is named.
//! - Of several ports, it answers with the first.
//! - It does not compare interfaces that are not Ethernet.
//!
//! The identifier's number is in a port space that sockets do not have. The kernel frees it when the file is
//! closed. Nothing is sent. No right is needed: everyone may write to the node. If the node or the module is
//! missing, or something else is in the node's place, there is no answer. No module is loaded.

mod command;

use core::num::NonZeroU32;
use std::fs::File;
use std::net::IpAddr;
use std::path::Path;

use nix::libc;
use rustix::fs::OFlags;
use uverbs_uapi::cm as abi;

use self::command::{CmCommand, send};
use crate::gid::Gid;
use crate::sysfs::{Folder, device_number, open_node};

/// Who has a row of a GID for an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holder {
    /// The port of this number, of the device of this index. Others may have one, too.
    Port(u32, u32),
    /// No port.
    Nobody,
}

/// An open connection manager.
#[derive(Debug)]
pub(crate) struct ConnectionManager {
    node: File,
}

/// No device's index, nor an identifier: where the kernel wrote nothing.
const NOTHING: u32 = u32::MAX;

impl ConnectionManager {
    /// Opens its node, if it is the node that sysfs shows in `class`.
    pub(crate) fn open(class: &Folder, node: &Path) -> Option<Self> {
        if class.read_number("abi_version").ok()? != u64::from(abi::ABI_VERSION) {
            return None;
        }
        let number = device_number(&class.read_optional("dev")?)?;
        let node = open_node(node, number, OFlags::WRONLY).ok()?;
        Some(Self { node: node.into() })
    }

    /// Which port has a row of this GID for this interface, which is the only one here with the address; `None` if there
    /// is no answer.
    pub(crate) fn holder(&self, gid: Gid, interface: NonZeroU32) -> Option<Holder> {
        let mut made = abi::CreateIdResponse { id: NOTHING };
        send(&self.node, CmCommand::CreateId(&mut made)).ok()?;
        let bind = bind(made.id, gid, interface);
        if let Err(error) = send(&self.node, CmCommand::Bind(&bind)) {
            // Without the address here it is another error.
            return (error.raw_os_error() == Some(libc::ENODEV)).then_some(Holder::Nobody);
        }
        let mut answer =
            abi::QueryAddrResponse { ibdev_index: NOTHING, ..abi::QueryAddrResponse::default() };
        send(&self.node, CmCommand::QueryAddr(made.id, &mut answer)).ok()?;
        port_told(&bind, &answer)
    }
}

/// Where parts of a socket address are: the IPv4 address follows the family and the port; the IPv6 address
/// follows the flow label, and its scope comes last.
const V4: usize = 4;
const V6: usize = 8;
const SCOPE: usize = 24;

/// Binds an identifier to a GID's address.
fn bind(id: u32, gid: Gid, interface: NonZeroU32) -> abi::Bind {
    let ip = gid.ipv4().map_or(IpAddr::V6(gid.ipv6()), IpAddr::V4);
    let mut bind = abi::Bind { id, ..abi::Bind::default() };
    let mut put = |offset: usize, bytes: &[u8]| {
        for (place, byte) in bind.addr.iter_mut().skip(offset).zip(bytes) {
            *place = *byte;
        }
    };
    let (family, size) = match ip {
        IpAddr::V4(v4) => {
            put(V4, &v4.octets());
            (rustix::net::AddressFamily::INET, 16)
        }
        IpAddr::V6(v6) => {
            put(V6, &v6.octets());
            if v6.is_unicast_link_local() {
                put(SCOPE, &interface.get().to_ne_bytes());
            }
            (rustix::net::AddressFamily::INET6, 28)
        }
    };
    put(0, &family.as_raw().to_ne_bytes());
    bind.addr_size = size;
    bind
}

/// The device's index and the port of an answer, if it is one to what was asked.
fn port_told(asked: &abi::Bind, answer: &abi::QueryAddrResponse) -> Option<Holder> {
    // The kernel has chosen a number for the third and fourth bytes.
    let parts = |addr: &[u8; abi::ADDRESS_LEN]| {
        let (family, rest) = addr.split_first_chunk::<2>()?;
        let (_, rest) = rest.split_first_chunk::<2>()?;
        Some((*family, rest.get(..usize::from(asked.addr_size).checked_sub(V4)?)?.to_vec()))
    };
    let is_it = answer.src_size == asked.addr_size
        && parts(&answer.src_addr).is_some_and(|told| Some(told) == parts(&asked.addr));
    let is_bound = answer.port_num != 0 && answer.ibdev_index != NOTHING;
    (is_it && is_bound).then(|| Holder::Port(answer.ibdev_index, answer.port_num.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sysfs::Sysfs;
    use zerocopy::FromBytes;

    fn asked(address: &str) -> abi::Bind {
        let gid = match address.parse().unwrap() {
            IpAddr::V4(v4) => Gid::from(v4),
            IpAddr::V6(v6) => Gid::from(v6),
        };
        bind(3, gid, NonZeroU32::new(0x0102).unwrap())
    }

    /// An answer of the kernel's.
    fn answer(asked: &abi::Bind) -> abi::QueryAddrResponse {
        let mut src_addr = asked.addr;
        src_addr[2..4].copy_from_slice(&[0x12, 0x34]);
        let src_size = asked.addr_size;
        let rest = abi::QueryAddrResponse::default();
        abi::QueryAddrResponse { port_num: 2, ibdev_index: 5, src_size, src_addr, ..rest }
    }

    #[test]
    fn addresses_of_each_family() {
        let v4 = asked("10.0.0.1");
        assert_eq!((v4.id, v4.addr_size), (3, 16));
        let family = |number: u16| number.to_ne_bytes();
        assert_eq!(v4.addr[..8], [&family(2)[..], &[0, 0, 10, 0, 0, 1]].concat());
        assert!(v4.addr[8..].iter().all(|byte| *byte == 0));
        let v6 = asked("fd00::1");
        assert_eq!((v6.addr_size, &v6.addr[..2]), (28, &family(10)[..]));
        assert_eq!((v6.addr[8], v6.addr[23], &v6.addr[24..28]), (0xfd, 1, &[0; 4][..]), "no scope");
        let scope = 0x0102_u32.to_ne_bytes();
        assert_eq!(asked("fe80::1").addr[24..28], scope);
    }

    #[test]
    fn an_answer_to_what_was_asked() {
        for address in ["10.0.0.1", "fd00::1", "fe80::1"] {
            let asked = asked(address);
            let right = answer(&asked);
            assert_eq!(port_told(&asked, &right), Some(Holder::Port(5, 2)), "{address}");
            // Not bound, an old kernel's, of another length, and of another address or family.
            let wrong = |change: fn(&mut abi::QueryAddrResponse)| {
                let mut answer = right;
                change(&mut answer);
                assert_eq!(port_told(&asked, &answer), None, "{address}: {answer:?}");
            };
            wrong(|it| it.port_num = 0);
            wrong(|it| it.ibdev_index = NOTHING);
            wrong(|it| it.src_size = 0);
            wrong(|it| it.src_size += 1);
            wrong(|it| it.src_addr[0] ^= 1);
            wrong(|it| it.src_addr[7] ^= 1);
            wrong(|it| it.src_addr[15] ^= 1);
            if address.contains(':') {
                wrong(|it| it.src_addr[27] ^= 1);
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn any_answer_is_read_or_refused(
            bytes in proptest::collection::vec(proptest::num::u8::ANY, 280),
            size: u16,
        ) {
            let answer = abi::QueryAddrResponse::read_from_bytes(&bytes).unwrap();
            let asked = abi::Bind { addr_size: size, ..asked("fd00::1") };
            proptest::prop_assert_eq!(port_told(&asked, &answer), None);
        }
    }

    /// Whatever else is in the node's place is not opened.
    #[test]
    fn only_the_node_that_sysfs_shows_is_opened() {
        let tree = tempfile::tempdir().unwrap();
        let class = tree.path().join("rdma_cm");
        std::fs::create_dir(&class).unwrap();
        let open = |path: &str| {
            ConnectionManager::open(&Sysfs::at(tree.path()).folder("rdma_cm"), Path::new(path))
        };
        // The number of /dev/null.
        let write = |file: &str, text: &str| std::fs::write(class.join(file), text).unwrap();
        assert!(open("/dev/null").is_none(), "no module");
        write("dev", "1:3\n");
        assert!(open("/dev/null").is_none(), "no version");
        write("abi_version", "5\n");
        assert!(open("/dev/null").is_none(), "another version");
        write("abi_version", "4\n");
        let null = open("/dev/null").unwrap();
        assert!(open("/dev/zero").is_none() && open("/nowhere").is_none());
        // Which takes commands, and answers nothing.
        assert_eq!(null.holder(Gid::from_bytes([0xfd; 16]), NonZeroU32::MIN), None);
    }
}
