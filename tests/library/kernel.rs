//! A small kernel: one device, its GID tables, and the methods that read them.
//!
//! It reads requests byte by byte, by the kernel's rules, and shares only numbers with the library.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::io::Errno;
use uverbs::context::Context;
use uverbs::driver::DriverId;
use uverbs::gid::{Gid, GidEntry, GidType};
use uverbs::simulated::{SimulatedKernel, UserMemory};
use uverbs::uapi::device::{self as abi, QueryPortResponse, method};
use zerocopy::IntoBytes;

/// One attribute of a request, with the place of its bytes in it.
pub(crate) struct Attribute {
    pub(crate) id: u16,
    pub(crate) len: usize,
    pub(crate) data: u64,
    at: usize,
}

/// Takes a request apart; panics where the library broke the wire format.
pub(crate) fn attributes(request: &[u8]) -> (u16, Vec<Attribute>) {
    let short = |at: usize| u16::from_ne_bytes(request[at..at + 2].try_into().unwrap());
    assert_eq!(usize::from(short(0)), request.len(), "length");
    assert_eq!(request.len(), 24 + 16 * usize::from(short(6)), "number of attributes");
    assert_eq!(request[8..16], [0; 8], "reserved");
    let list = (24..request.len())
        .step_by(16)
        .map(|at| Attribute {
            id: short(at),
            len: short(at + 2).into(),
            data: u64::from_ne_bytes(request[at + 8..at + 16].try_into().unwrap()),
            at,
        })
        .collect();
    (short(4), list)
}

/// Marks the attribute whose bytes begin here as written (`VALID_OUTPUT` in its 16 bits of flags).
pub(crate) fn mark_written(attribute: &mut [u8]) {
    let flags = u16::from_ne_bytes([attribute[4], attribute[5]]) | 2;
    attribute[4..6].copy_from_slice(&flags.to_ne_bytes());
}

/// Writes an answer where the attribute asks for it, and marks it as written.
pub(crate) fn answer(
    request: &mut [u8],
    memory: &UserMemory<'_>,
    id: u16,
    bytes: &[u8],
) -> Result<(), Errno> {
    let (_, list) = attributes(request);
    let Some(attribute) = list.iter().find(|attribute| attribute.id == id) else { return Ok(()) };
    let count = bytes.len().min(attribute.len);
    memory.write(attribute.data, &bytes[..count])?;
    mark_written(&mut request[attribute.at..]);
    Ok(())
}

pub(crate) fn value(list: &[Attribute], id: u16) -> u64 {
    let attribute = list.iter().find(|attribute| attribute.id == id).unwrap();
    assert_eq!(attribute.len, 8, "a constant is eight bytes");
    attribute.data
}

/// What a device holds: for each port its GID table, slots empty or not.
#[derive(Debug)]
pub(crate) struct Tables {
    /// Number of the first port.
    pub(crate) first: u64,
    pub(crate) ports: Vec<Vec<Option<GidEntry>>>,
    pub(crate) calls: Arc<AtomicUsize>,
}

impl SimulatedKernel for Tables {
    fn ioctl(&self, request: &mut [u8], memory: &UserMemory<'_>) -> Result<(), Errno> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let (asked, list) = attributes(request);
        let table = |port: u64| {
            port.checked_sub(self.first)
                .and_then(|place| self.ports.get(usize::try_from(place).ok()?))
                .ok_or(Errno::INVAL)
        };
        match asked {
            method::GET_CONTEXT => Ok(()),
            method::QUERY_PORT => {
                let port = u8::try_from(value(&list, 0)).map_err(|_| Errno::INVAL)?;
                let length = table(port.into())?.len();
                let response = QueryPortResponse {
                    gid_tbl_len: u32::try_from(length).unwrap(),
                    ..Default::default()
                };
                answer(request, memory, 1, response.as_bytes())
            }
            method::QUERY_GID_ENTRY => {
                let index = usize::try_from(value(&list, 1)).map_err(|_| Errno::INVAL)?;
                let slot = *table(value(&list, 0))?.get(index).ok_or(Errno::INVAL)?;
                answer(request, memory, 3, &kernel_entry(slot.ok_or(Errno::NODATA)?))
            }
            method::QUERY_GID_TABLE => {
                let size = value(&list, 0);
                let bytes = list.iter().find(|attribute| attribute.id == 2).unwrap().len;
                let room = bytes / usize::try_from(size).unwrap();
                // The kernel gives up at the first entry too many: no allocation here either.
                let valid = || self.ports.iter().flatten().flatten();
                if room == 0 || valid().count() > room {
                    return Err(Errno::INVAL);
                }
                let target = list.iter().find(|attribute| attribute.id == 2).unwrap();
                let mut count = 0u64;
                for entry in valid() {
                    let bytes = kernel_entry(*entry);
                    let length = bytes.len().min(usize::try_from(size).unwrap());
                    memory.write(target.data + size * count, &bytes[..length])?;
                    count += 1;
                }
                let at = target.at;
                mark_written(&mut request[at..]);
                answer(request, memory, 3, &count.to_ne_bytes())
            }
            _ => Err(Errno::PROTONOSUPPORT),
        }
    }
}

/// An entry as a kernel writes it that is newer than the library: eight bytes longer.
pub(crate) fn kernel_entry(entry: GidEntry) -> [u8; 40] {
    let mut bytes = [0x77; 40];
    bytes[..32].copy_from_slice(abi::GidEntry::from(entry).as_bytes());
    bytes
}

/// An entry whose GID says where it is.
pub(crate) fn entry(port: u32, index: u32) -> GidEntry {
    let gid = Gid::from(std::net::Ipv6Addr::from(u128::from(port) << 64 | u128::from(index + 1)));
    GidEntry::new(port, index, gid).with_type(GidType::ROCE_V2)
}

/// A table with a valid entry in every `step`th slot.
pub(crate) fn table(port: u32, slots: u32, step: u32) -> Vec<Option<GidEntry>> {
    (0..slots).map(|index| (index % step == 0).then(|| entry(port, index))).collect()
}

/// A context on a device with these tables, and the number of its calls so far.
pub(crate) fn context(ports: Vec<Vec<Option<GidEntry>>>) -> (Context, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let count = u32::try_from(ports.len()).unwrap();
    let kernel = Tables { first: 1, ports, calls: Arc::clone(&calls) };
    let context = Context::simulated("sim0", 1..=count, DriverId::RXE, Box::new(kernel)).unwrap();
    calls.store(0, Ordering::Relaxed);
    (context, calls)
}

/// A context on an InfiniBand switch, whose one port is 0.
pub(crate) fn switch(table: Vec<Option<GidEntry>>) -> Context {
    let kernel = Tables { first: 0, ports: vec![table], calls: Arc::default() };
    Context::simulated("sw0", 0..=0, DriverId::MLX5, Box::new(kernel)).unwrap()
}
