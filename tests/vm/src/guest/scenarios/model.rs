//! The model of the kernel's ioctl gives the same answers as the kernel to the same requests.

#![expect(unsafe_code, reason = "requests that no library would send")]

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd as _, OwnedFd};
use std::ptr::null_mut;

use anyhow::{Context as _, Result, bail, ensure};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode};
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use uverbs::context::Context;
use uverbs::host::Host;
use uverbs::uapi::device::{method, object};
use uverbs::uapi::driver::driver_id;
use uverbs::uapi::ioctl::RDMA_VERBS_IOCTL;
use uverbs::uapi::mlx5;
use uverbs_kernel_model::generate::{Case, FILL, Generator, LARGE, SMALL};
use uverbs_kernel_model::memory::Memory;
use uverbs_kernel_model::{Device, Effects, File, Mlx5, Outcome, Port, errno, ioctl};
use uverbs_mlx5_function::description::Description;
use uverbs_vm::{TURNS, has_its_turn};

use crate::lab;

/// Requests that are compared on each kernel and device: in memory of which size, and how many in
/// each of the [`TURNS`] parts.
const REQUESTS: [(usize, usize); 2] = [(SMALL, 2_000), (LARGE, 100)];

/// Differences that are shown.
const SHOWN: usize = 12;

/// Soft RoCE with four GIDs.
pub(crate) fn requests_on_soft_roce() -> Result<()> {
    let _lab = lab::vlan_lab()?;
    let open = Host::new().open("rxe0")?;
    let device = describe(&Arena::new(SMALL)?, &open, driver_id::RXE)?;
    compare_all(&open, &device)
}

/// mlx5 with two InfiniBand ports.
pub(crate) fn requests_on_mlx5_infiniband() -> Result<()> {
    requests_on_mlx5(&Description::infiniband(2))
}

/// mlx5 with RoCE.
pub(crate) fn requests_on_mlx5_roce() -> Result<()> {
    requests_on_mlx5(&Description::roce())
}

/// mlx5 as the manager of an e-switch in switchdev mode, with representors: its ports have everything
/// to tell that `QUERY_PORT` knows.
pub(crate) fn requests_on_mlx5_switchdev() -> Result<()> {
    let mut device = lab::mlx5::Mlx5::bind(0, &Description::embedded_cpu(2))?;
    device.switchdev()?;
    compare_on(&device)
}

fn requests_on_mlx5(description: &Description) -> Result<()> {
    compare_on(&lab::mlx5::Mlx5::bind(0, description)?)
}

fn compare_on(bound: &lab::mlx5::Mlx5) -> Result<()> {
    let open = Host::new().open(bound.name())?;
    let device = describe(&Arena::new(SMALL)?, &open, driver_id::MLX5)?;
    compare_all(&open, &device)
}

/// Memory of which the kernel sees all and around which there is none.
struct Arena {
    start: *mut u8,
    size: usize,
}

/// Nothing is mapped for as long on both sides.
const GAP: usize = 64 * 1024;

impl Arena {
    fn new(size: usize) -> Result<Self> {
        // SAFETY: new memory, at an address of the kernel's choice.
        let start = unsafe {
            mmap_anonymous(null_mut(), size + 2 * GAP, ProtFlags::empty(), MapFlags::PRIVATE)?
        };
        let middle = start.wrapping_byte_add(GAP);
        // SAFETY: whole pages inside of that memory, which nothing refers to yet.
        unsafe { mprotect(middle, size, MprotectFlags::READ | MprotectFlags::WRITE)? };
        Ok(Self { start: middle.cast(), size })
    }

    fn base(&self) -> u64 {
        self.start.expose_provenance() as u64
    }

    fn fill(&self, bytes: &[u8]) {
        assert_eq!(bytes.len(), self.size);
        // SAFETY: as long as the memory, which no reference exists to.
        unsafe { self.start.copy_from_nonoverlapping(bytes.as_ptr(), self.size) };
    }

    fn content(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.size];
        // SAFETY: as above, the other way.
        unsafe { self.start.copy_to_nonoverlapping(bytes.as_mut_ptr(), self.size) };
        bytes
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: all of what was mapped; no reference to it exists.
        let _ = unsafe { munmap(self.start.wrapping_sub(GAP).cast(), self.size + 2 * GAP) };
    }
}

struct Raw {
    command: u32,
    request: usize,
}

// SAFETY: what the kernel reads and writes is the arena's memory, to which no reference exists, or
// nothing: all addresses in a request are the generator's.
unsafe impl Ioctl for Raw {
    type Output = ();
    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        self.command as Opcode
    }

    fn as_ptr(&mut self) -> *mut c_void {
        std::ptr::with_exposed_provenance_mut(self.request)
    }

    unsafe fn output_from_ptr(_: IoctlOutput, _: *mut c_void) -> rustix::io::Result<()> {
        Ok(())
    }
}

fn send(fd: BorrowedFd<'_>, command: u32, request: u64) -> Result<(), Errno> {
    let request = usize::try_from(request).map_err(|_| Errno::FAULT)?;
    // SAFETY: as said at the implementation of the trait.
    unsafe { rustix::ioctl::ioctl(fd, Raw { command, request }) }
}

/// Where a good request's answer is wanted.
const ANSWER: u64 = u64::MAX;

/// Sends a good request, and gives its answer of `room` bytes.
fn ask(
    arena: &Arena,
    open: &Context,
    (object, method): (u16, u16),
    attributes: &[(u16, u16, u64)],
    room: usize,
) -> Result<Vec<u8>, Errno> {
    const PLACE: usize = 4096;
    let mut bytes = Vec::new();
    let count = u16::try_from(attributes.len()).unwrap_or(0);
    for short in [24 + 16 * count, object, method, count] {
        bytes.extend(short.to_ne_bytes());
    }
    bytes.extend(0u64.to_ne_bytes());
    bytes.extend(open.driver().0.to_ne_bytes());
    bytes.extend(0u32.to_ne_bytes());
    for (id, len, data) in attributes {
        bytes.extend(id.to_ne_bytes());
        bytes.extend(len.to_ne_bytes());
        bytes.extend([1, 0, 0, 0]);
        let data = if *data == ANSWER { arena.base() + PLACE as u64 } else { *data };
        bytes.extend(data.to_ne_bytes());
    }
    bytes.resize(arena.size, 0);
    arena.fill(&bytes);
    send(open.as_fd(), RDMA_VERBS_IOCTL, arena.base())?;
    Ok(arena.content().into_iter().skip(PLACE).take(room).collect())
}

/// What the model has to know of a device, asked by good requests.
fn describe(arena: &Arena, open: &Context, driver: u32) -> Result<Device> {
    let release = lab::kernel()?;
    let of_device = |method, attributes: &[(u16, u16, u64)], room| {
        ask(arena, open, (object::DEVICE, method), attributes, room)
    };
    let mut ports = Vec::new();
    for number in open.ports() {
        let number = u64::from(number);
        let attributes = of_device(method::QUERY_PORT, &[(0, 8, number), (1, 48, ANSWER)], 48)?;
        let length = u64::from(open.query_port(u32::try_from(number)?)?.gid_tbl_len);
        let mut gids = Vec::new();
        for index in 0..length {
            let query = [(0, 8, number), (1, 8, index), (2, 4, 0), (3, 32, ANSWER)];
            gids.push(match of_device(method::QUERY_GID_ENTRY, &query, 32) {
                Ok(entry) => Some(entry.try_into().map_err(|_| anyhow::anyhow!("an entry"))?),
                Err(Errno::NODATA) => None,
                Err(error) => bail!("GID {index}: {error}"),
            });
        }
        let speed = of_device(method::QUERY_PORT_SPEED, &[(0, 8, number), (1, 8, ANSWER)], 8);
        let speed = speed.map_err(Errno::raw_os_error);
        let query = [(0x1000, 4, number), (0x1001, 40, ANSWER)];
        let mlx5 = of_device(mlx5::device_method::QUERY_PORT, &query, 40);
        ports.push(Port {
            attributes,
            gids,
            speed: match speed {
                Err(errno::EOPNOTSUPP) => None,
                told => {
                    Some(told.map(|bytes| u64::from_ne_bytes(bytes.try_into().unwrap_or([0; 8]))))
                }
            },
            mlx5: mlx5.map_err(Errno::raw_os_error),
        });
    }
    let query = [(0, 8, 0), (1, 304, ANSWER), (2, 8, 0x8000_0001)];
    let attributes = of_device(method::INVOKE_WRITE, &query, 304)?;
    let mlx5 = if driver == driver_id::MLX5 {
        // An operation that there is not, to be refused where there are any.
        let none = [(0x1000, 16, arena.base()), (0x1001, 16, ANSWER)];
        let refused = ask(arena, open, (mlx5::object::DEVX, mlx5::devx_method::OTHER), &none, 16);
        Some(Mlx5 {
            has_devx: refused != Err(Errno::PROTONOSUPPORT),
            context: of_device(method::QUERY_CONTEXT, &[(0x1000, 72, ANSWER)], 72)?,
        })
    } else {
        None
    };
    Ok(Device {
        release,
        driver_id: driver,
        first_port: *open.ports().start(),
        ports,
        attributes,
        num_comp_vectors: open.num_comp_vectors(),
        core_support: open.core_support(),
        mlx5,
    })
}

/// What became of the requests.
#[derive(Debug, Default)]
struct Tally {
    compared: usize,
    answers: BTreeMap<&'static str, usize>,
    left_out: BTreeMap<&'static str, usize>,
    differences: Vec<String>,
    /// Answers whose end was not written since it did not fit.
    early: usize,
}

fn compare_all(open: &Context, device: &Device) -> Result<()> {
    let mut tally = Tally::default();
    for (size, count) in REQUESTS {
        let arena = Arena::new(size)?;
        for part in (0..TURNS).filter(|part| has_its_turn(*part, TURNS)) {
            let generator = Generator::new((part << 32) + size as u64, arena.base(), size);
            compare(generator, &arena, count, open, device, &mut tally)?;
        }
    }
    let Tally { compared, answers, left_out, differences, early } = tally;
    println!("figure: {compared} requests, {} differ: {answers:?}", differences.len());
    if early > 0 {
        println!("figure: {early} answers that did not fit end earlier than in the model");
    }
    println!("left out: {left_out:?}");
    println!("{}", differences.join("\n"));
    ensure!(differences.is_empty(), "the model is wrong");
    Ok(())
}

/// Sends the requests of a seed to the kernel and to the model.
fn compare(
    mut generator: Generator,
    arena: &Arena,
    count: usize,
    open: &Context,
    device: &Device,
    tally: &mut Tally,
) -> Result<()> {
    let enough = tally.compared + count;
    while tally.compared < enough && tally.differences.len() < SHOWN {
        let case = generator.next_case(device);
        let mut memory = case.memory.clone();
        let mut file = File { has_context: !case.is_fresh };
        let outcome = ioctl(device, &mut file, case.command, case.request, &mut memory);
        let (result, effects) = match outcome {
            Outcome::Done(result, effects) => (result, effects),
            Outcome::NotModelled(why) => {
                *tally.left_out.entry(why).or_default() += 1;
                continue;
            }
        };
        tally.compared += 1;
        let fresh;
        let fd = if case.is_fresh {
            let flags = OFlags::RDONLY | OFlags::CLOEXEC;
            fresh = rustix::fs::open("/dev/infiniband/uverbs0", flags, Mode::empty())?;
            fresh.as_fd()
        } else {
            open.as_fd()
        };
        arena.fill(case.memory.bytes());
        let real = send(fd, case.command, case.request).map_err(Errno::raw_os_error);
        let mut after = arena.content();
        claim(arena, real, &effects, &mut after, &mut memory)?;
        *tally.answers.entry(name(real)).or_default() += 1;
        let ends_early = || ends_early(case.memory.bytes(), memory.bytes(), &after);
        if real == result && after == memory.bytes() {
        } else if real == result && real == Err(errno::EFAULT) && ends_early() {
            tally.early += 1;
        } else {
            tally.differences.push(difference(arena, &case, result, real, &memory, &after));
        }
    }
    Ok(())
}

/// Whether memory lacks only the last bytes of what the model wrote up to where it ends. A kernel may write several
/// bytes at once, and then none of these if not all fit. x86-64 copies byte by byte there, but writes zeros by eight
/// on a processor without `erms`.
fn ends_early(before: &[u8], model: &[u8], after: &[u8]) -> bool {
    const AT_ONCE: usize = if cfg!(target_arch = "x86_64") { 8 } else { 64 };
    let common = after.iter().zip(model).take_while(|(after, model)| after == model).count();
    after.len() - common < AT_ONCE && after.get(common..) == before.get(common..)
}

fn name(answer: Result<(), i32>) -> &'static str {
    match answer {
        Ok(()) => "answered",
        Err(errno::ENOENT) => "ENOENT",
        Err(errno::EFAULT) => "EFAULT",
        Err(errno::EINVAL) => "EINVAL",
        Err(errno::ENOTTY) => "ENOTTY",
        Err(errno::ENOSPC) => "ENOSPC",
        Err(errno::ENOMSG) => "ENOMSG",
        Err(errno::ENODATA) => "ENODATA",
        Err(errno::EPROTONOSUPPORT) => "EPROTONOSUPPORT",
        Err(errno::EOPNOTSUPP) => "EOPNOTSUPP",
        Err(_) => "others",
    }
}

/// Closes the file that a request made, and puts its number out of the comparison; the same for
/// what only a driver knows.
fn claim(
    arena: &Arena,
    real: Result<(), i32>,
    effects: &Effects,
    content: &mut [u8],
    memory: &mut Memory,
) -> Result<()> {
    let mut ranges = effects.drivers.clone();
    if let Some(at) = effects.new_fd {
        ranges.push((at, 8));
        let offset = usize::try_from(at - arena.base())?;
        let number: [u8; 8] = content.get(offset..offset + 8).context("a number")?.try_into()?;
        let number = i32::try_from(u64::from_ne_bytes(number)).context("no number of a file")?;
        ensure!((3..1024).contains(&number), "{number} is no new file");
        if real.is_ok() {
            // SAFETY: the kernel made it just now, and nobody else knows it.
            drop(unsafe { OwnedFd::from_raw_fd(number) });
        }
    }
    for (address, length) in ranges {
        let offset = usize::try_from(address - arena.base())?;
        for bytes in [&mut *content, memory.bytes_mut()] {
            bytes.get_mut(offset..offset + length).context("outside")?.fill(FILL);
        }
    }
    Ok(())
}

/// What a person needs to see of a request that came out otherwise.
fn difference(
    arena: &Arena,
    case: &Case,
    model: Result<(), i32>,
    real: Result<(), i32>,
    memory: &Memory,
    content: &[u8],
) -> String {
    let offset = usize::try_from(case.request.wrapping_sub(arena.base())).unwrap_or(usize::MAX);
    let request = case.memory.bytes().get(offset..).unwrap_or_default();
    let count = request.get(6..8).map_or(0, |count| usize::from(count[0]));
    let lines: Vec<String> = request
        .get(..24)
        .into_iter()
        .chain(request.get(24..).unwrap_or_default().chunks_exact(16).take(count.min(8)))
        .map(|line| format!("{line:02x?}"))
        .collect();
    let places: Vec<String> = (0..arena.size)
        .filter(|place| content.get(*place) != memory.bytes().get(*place))
        .take(12)
        .map(|place| {
            format!(
                "{place:#x}: model {:02x}, kernel {:02x}",
                memory.bytes()[place],
                content[place]
            )
        })
        .collect();
    format!(
        "command {:#x}, fresh {}, request at +{offset:#x} of {:#x} (arena {:#x}), model {model:?}, kernel {real:?}\n  {}\n  {}",
        case.command,
        case.is_fresh,
        arena.size,
        arena.base(),
        lines.join("\n  "),
        places.join(", ")
    )
}
