//! The kernel's model in place of a kernel, and the rules by which requests are taken apart.

use std::sync::Mutex;

use arbitrary::Arbitrary;
use rustix::io::Errno;
use uverbs::context::Context;
use uverbs::driver::DriverId;
use uverbs::simulated::{SimulatedKernel, UserMemory};
use uverbs::uapi::driver::driver_id;
use uverbs::uapi::ioctl::RDMA_VERBS_IOCTL;
use uverbs_kernel_model::memory::Memory;
use uverbs_kernel_model::spec::{self, Found, Kind};
use uverbs_kernel_model::{self as model, Device, File, Mlx5, Outcome, Port};

/// Bytes of a request's header and of an attribute.
pub(crate) const HEADER: usize = 24;
pub(crate) const ATTRIBUTE: usize = 16;

/// Where the model's memory begins.
pub(crate) const BASE: u64 = 0x10_0000;

/// A device as bytes describe it.
#[derive(Arbitrary, Clone, Debug)]
pub(crate) struct Described {
    release: u8,
    driver: u8,
    is_switch: bool,
    ports: Vec<DescribedPort>,
    attributes: Vec<u8>,
    num_comp_vectors: u32,
    core_support: u64,
    has_devx: bool,
    context: [u8; 72],
    /// More entries than one call returns, one time in 256.
    is_large: u8,
}

#[derive(Arbitrary, Clone, Debug)]
struct DescribedPort {
    attributes: [u8; 48],
    /// GID, type and interface of a slot, or nothing.
    gids: Vec<Option<([u8; 16], u32, u32)>>,
    speed: Option<Result<u64, u8>>,
    mlx5: Result<[u8; 40], u8>,
}

const RELEASES: [model::Release; 6] = [(5, 10), (6, 1), (6, 12), (6, 15), (7, 0), (7, 3)];

/// An errno that a driver gives: not those that the ways of the core mean something by.
fn driver_errno(byte: u8) -> i32 {
    [5, 11, 12, 16, 110, 121][usize::from(byte) % 6]
}

impl Described {
    pub(crate) fn device(&self) -> Device {
        let driver = DriverId(u32::from(self.driver % 22) + 1);
        let driver = match driver.0 {
            _ if self.driver >= 200 => DriverId::MLX5,
            // The model does not have what these add to a device's attributes.
            driver_id::MLX4 | driver_id::BNXT_RE => DriverId::RXE,
            _ => driver,
        };
        let first_port = u32::from(!self.is_switch);
        let most = if self.is_switch { 1 } else { 4 };
        let mut ports: Vec<Port> = (first_port..)
            .zip(self.ports.iter().take(most))
            .map(|(n, port)| port.port(n))
            .collect();
        if let (0, Some(port)) = (self.is_large, ports.last_mut()) {
            let number = first_port + u32::try_from(self.ports.len().min(most)).unwrap_or(1) - 1;
            port.gids = (0..2100).map(|index| Some(entry([7; 16], index, number, 1, 0))).collect();
            port.attributes[16..20].copy_from_slice(&2100u32.to_ne_bytes());
        }
        let mut attributes = self.attributes.clone();
        attributes.resize(304, 7);
        Device {
            release: RELEASES[usize::from(self.release) % RELEASES.len()],
            driver_id: driver.0,
            first_port,
            ports,
            attributes,
            num_comp_vectors: self.num_comp_vectors,
            core_support: self.core_support,
            mlx5: (driver == DriverId::MLX5)
                .then(|| Mlx5 { has_devx: self.has_devx, context: self.context.to_vec() }),
        }
    }
}

impl DescribedPort {
    fn port(&self, number: u32) -> Port {
        let mut attributes = self.attributes.to_vec();
        let gids: Vec<_> = (0..)
            .zip(self.gids.iter().take(40))
            .map(|(index, slot)| {
                slot.map(|(gid, kind, ndev)| entry(gid, index, number, kind, ndev))
            })
            .collect();
        let length = u32::try_from(gids.len()).unwrap_or(0);
        attributes[16..20].copy_from_slice(&length.to_ne_bytes());
        Port {
            attributes,
            gids,
            speed: self.speed.map(|speed| speed.map_err(driver_errno)),
            mlx5: self.mlx5.map(|answer| answer.to_vec()).map_err(driver_errno),
        }
    }
}

fn entry(gid: [u8; 16], index: u32, port: u32, kind: u32, ndev: u32) -> [u8; 32] {
    let mut entry = [0; 32];
    entry[..16].copy_from_slice(&gid);
    for (at, value) in [(16, index), (20, port), (24, kind), (28, ndev)] {
        entry[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }
    entry
}

fn short(bytes: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes([bytes[at], bytes[at + 1]])
}

fn data(attribute: &[u8]) -> u64 {
    u64::from_ne_bytes([8, 9, 10, 11, 12, 13, 14, 15].map(|at| attribute[at]))
}

/// What the framework says to a request, its methods' values and the memory aside: the errno by
/// which it stops. Written once more, from the model's specifications and not with its code.
pub(crate) fn framework(device: &Device, request: &[u8]) -> Result<(), i32> {
    const INVALID: Result<(), i32> = Err(22);
    const UNKNOWN: Result<(), i32> = Err(93);
    assert_eq!(usize::from(short(request, 0)), request.len(), "the header's length");
    assert_eq!(request.len(), HEADER + ATTRIBUTE * usize::from(short(request, 6)), "attributes");
    assert!(request.len() <= 4096, "more than a page");
    assert_eq!((&request[8..16], &request[20..24]), (&[0; 8][..], &[0; 4][..]), "reserved");
    if request[16..20] != device.driver_id.to_ne_bytes() {
        return INVALID;
    }
    let method = match spec::find(device, short(request, 2), short(request, 4)) {
        Found::Method(method) => method,
        Found::Nothing => return UNKNOWN,
        Found::NotModelled(_) => return Ok(()),
    };
    let mut seen = Vec::new();
    for raw in request[HEADER..].chunks_exact(ATTRIBUTE) {
        let (id, len, flags) = (short(raw, 0), usize::from(short(raw, 2)), short(raw, 4));
        assert!(flags <= 1, "flags that only the kernel sets");
        assert_eq!(raw[7], 0, "reserved");
        let Some(spec) = method.attributes.iter().find(|spec| spec.id == id) else {
            if flags == 1 {
                return UNKNOWN;
            }
            continue;
        };
        let (min, max) = match spec.kind {
            Kind::In { min, max, zero_trailing: false }
            | Kind::Out { min, max, zero_trailing: false } => (min, max),
            Kind::In { min, .. } | Kind::Out { min, .. } | Kind::CopiedIn { min } => {
                (min, usize::MAX)
            }
            Kind::NewFd => (0, 0),
        };
        if seen.contains(&id) || len < min || len > max || raw[6] != 0 {
            return INVALID;
        }
        seen.push(id);
    }
    let missing = method.attributes.iter().any(|spec| spec.mandatory && !seen.contains(&spec.id));
    if missing { INVALID } else { Ok(()) }
}

/// The model as a kernel: it has a file and answers what reaches it.
#[derive(Debug)]
pub(crate) struct ModelKernel {
    device: Device,
    file: Mutex<File>,
    /// Whether every request must get past the framework.
    is_strict: bool,
}

impl ModelKernel {
    /// A context on a device of which the library asks what it knows itself.
    pub(crate) fn context(device: &Device) -> Result<Context, uverbs::Error> {
        let count = u32::try_from(device.ports.len()).unwrap_or(0);
        let ports = match device.first_port {
            0 => 0..=0,
            first => first..=count,
        };
        let kernel = Self { device: device.clone(), file: Mutex::default(), is_strict: true };
        Context::simulated("sim0", ports, DriverId(device.driver_id), Box::new(kernel))
    }

    /// The same, of which a C program asks what it likes.
    pub(crate) fn for_c(device: &Device) -> Result<Context, uverbs::Error> {
        let kernel = Self { device: device.clone(), file: Mutex::default(), is_strict: false };
        Context::simulated("sim0", 1..=1, DriverId(device.driver_id), Box::new(kernel))
    }

    /// The request and the memory it lends, moved to the model's; `fill` is where only writing is
    /// allowed.
    fn moved(request: &[u8], user: &UserMemory<'_>, fill: u8) -> (Memory, Vec<Lent>) {
        let mut bytes = request.to_vec();
        let mut lent = Vec::new();
        for place in 0..(request.len() - HEADER) / ATTRIBUTE {
            let at = HEADER + place * ATTRIBUTE;
            let (len, address) = (usize::from(short(&request[at..], 2)), data(&request[at..]));
            let content = match user.read(address, len) {
                Ok(content) if len > 8 => content,
                _ if len > 0 && user.write(address, &[]).is_ok() => {
                    lent.push(Lent { address, offset: bytes.len(), length: len });
                    vec![fill; len]
                }
                _ => continue,
            };
            let moved = BASE + bytes.len() as u64;
            bytes[at + 8..at + 16].copy_from_slice(&moved.to_ne_bytes());
            bytes.extend(content);
        }
        (Memory::new(BASE, bytes), lent)
    }
}

/// Memory that is lent for writing: where it is, and where in the model's memory.
struct Lent {
    address: u64,
    offset: usize,
    length: usize,
}

impl SimulatedKernel for ModelKernel {
    fn ioctl(&self, request: &mut [u8], user: &UserMemory<'_>) -> Result<(), Errno> {
        let verdict = framework(&self.device, request);
        // A kernel that does not have the method at all is no mistake of the library's.
        assert!(!self.is_strict || matches!(verdict, Ok(()) | Err(93)), "{verdict:?}: {request:?}");
        if let (Err(93), Found::Method(_)) =
            (verdict, spec::find(&self.device, short(request, 2), short(request, 4)))
        {
            assert!(!self.is_strict, "an attribute that the kernel does not know");
        }
        let mut file = self.file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let before = *file;
        // Twice: what comes out the same over different memory was written.
        let mut run = |fill| {
            let (mut memory, lent) = Self::moved(request, user, fill);
            *file = before;
            let outcome =
                model::ioctl(&self.device, &mut file, RDMA_VERBS_IOCTL, BASE, &mut memory);
            (outcome, memory, lent)
        };
        let ((outcome, one, lent), (_, other, _)) = (run(0x00), run(0xff));
        if let Err(errno) = verdict {
            assert!(
                matches!(outcome, Outcome::Done(Err(e), _) if e == errno) || !self.is_strict,
                "{verdict:?}, and {outcome:?}"
            );
        }
        for Lent { address, offset, length } in lent {
            for place in offset..offset + length {
                if one.bytes()[place] == other.bytes()[place] {
                    user.write(address + (place - offset) as u64, &one.bytes()[place..=place])?;
                }
            }
        }
        for at in (HEADER..request.len()).step_by(ATTRIBUTE) {
            request[at + 4..at + 6].copy_from_slice(&one.bytes()[at + 4..at + 6]);
        }
        match outcome {
            Outcome::Done(result, _) => result.map_err(Errno::from_raw_os_error),
            // As if it were not there.
            Outcome::NotModelled(_) => Err(Errno::PROTONOSUPPORT),
        }
    }
}
