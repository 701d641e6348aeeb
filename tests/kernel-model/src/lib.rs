//! A model of the kernel's uverbs ioctl: how a kernel release answers the bytes of a request, and what it
//! writes where.
//!
//! `tests/vm` compares the model with real kernels. It shares only the numbers of `uverbs-uapi` with the
//! library. The modules are in the order in which a request passes through them: [`memory`] of the
//! program, the framework ([`ioctl`]) that takes the request apart by the specifications of [`spec`], and
//! the handlers.
//!
//! Objects other than devices and event files are not modelled: their methods make things. A
//! request to one that the kernel would look into is [`Outcome::NotModelled`].

pub mod errno;
pub mod generate;
mod handlers;
pub mod memory;
pub mod spec;

use errno::Errno;
use memory::Memory;
use spec::{AttributeSpec, Found, Kind};
use uverbs_uapi::ioctl::{ATTR_F_MANDATORY, ATTR_F_VALID_OUTPUT, INLINE_LEN, RDMA_VERBS_IOCTL};

/// A kernel release, `(6, 12)`.
pub type Release = (u32, u32);

/// A device and the kernel that has it.
#[derive(Clone, Debug)]
pub struct Device {
    /// Of which the differences are known.
    pub release: Release,
    /// The driver's number.
    pub driver_id: u32,
    /// Number of the first port: 1, or 0 on a switch.
    pub first_port: u32,
    /// Its ports.
    pub ports: Vec<Port>,
    /// What `EX_QUERY_DEVICE` answers in whole: 304 bytes.
    pub attributes: Vec<u8>,
    /// Completion vectors.
    pub num_comp_vectors: u32,
    /// Bits that the core supports.
    pub core_support: u64,
    /// Whether the driver has context queries (mlx5) and what else is mlx5's own.
    pub mlx5: Option<Mlx5>,
}

/// A port.
#[derive(Clone, Debug)]
pub struct Port {
    /// What `QUERY_PORT` answers: 48 bytes.
    pub attributes: Vec<u8>,
    /// Its GID table with empty slots.
    pub gids: Vec<Option<[u8; 32]>>,
    /// What the driver says to `QUERY_PORT_SPEED`, if it has that.
    pub speed: Option<Result<u64, Errno>>,
    /// What mlx5 says to its own `QUERY_PORT`: 40 bytes.
    pub mlx5: Result<Vec<u8>, Errno>,
}

/// What only mlx5 has.
#[derive(Clone, Debug)]
pub struct Mlx5 {
    /// Whether its firmware has user contexts.
    pub has_devx: bool,
    /// Its answer about an existing context: 72 bytes.
    pub context: Vec<u8>,
}

/// An open uverbs node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct File {
    /// `GET_CONTEXT` was done.
    pub has_context: bool,
}

/// The result of a request, in addition to what it wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The system call returns 0 or this errno.
    Done(Result<(), Errno>, Effects),
    /// It would have a method do something that this model does not know; why.
    NotModelled(&'static str),
}

/// What a request does in addition to its answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// Where the number of a new file descriptor was written; the file stays if the request succeeds.
    pub new_fd: Option<u64>,
    /// Memory whose content only the driver knows: address and length.
    pub drivers: Vec<(u64, usize)>,
}

/// A request that passed the header's checks.
pub(crate) struct Request<'r> {
    pub(crate) device: &'r Device,
    pub(crate) file: &'r mut File,
    pub(crate) memory: &'r mut Memory,
    pub(crate) effects: Effects,
    /// Address of the attributes.
    attributes_at: u64,
    /// Those that were given and are known.
    pub(crate) present: Vec<Present>,
}

/// An attribute of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Present {
    pub(crate) id: u16,
    /// Its place among the request's attributes.
    place: u64,
    pub(crate) len: u16,
    flags: u16,
    pub(crate) data: u64,
}

/// Why a request stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    Errno(Errno),
    NotModelled(&'static str),
}

impl From<Errno> for Stop {
    fn from(errno: Errno) -> Self {
        Self::Errno(errno)
    }
}

/// What the kernel does with `ioctl(file, command, request)`.
pub fn ioctl(
    device: &Device,
    file: &mut File,
    command: u32,
    request: u64,
    memory: &mut Memory,
) -> Outcome {
    let mut effects = Effects::default();
    match run(device, file, command, request, memory, &mut effects) {
        Ok(()) => Outcome::Done(Ok(()), effects),
        Err(Stop::Errno(errno)) => Outcome::Done(Err(errno), effects),
        Err(Stop::NotModelled(why)) => Outcome::NotModelled(why),
    }
}

/// Bytes of the header, and of an attribute.
const HEADER: usize = 24;
const ATTRIBUTE: usize = 16;
const PAGE: usize = 4096;

fn run(
    device: &Device,
    file: &mut File,
    command: u32,
    request: u64,
    memory: &mut Memory,
    effects: &mut Effects,
) -> Result<(), Stop> {
    if command != RDMA_VERBS_IOCTL {
        return Err(errno::ENOTTY.into());
    }
    let header = memory.read(request, HEADER)?;
    let length = usize::from(short(&header, 0));
    let (object, method) = (short(&header, 2), short(&header, 4));
    let count = usize::from(short(&header, 6));
    if length > PAGE || length != HEADER + ATTRIBUTE * count {
        return Err(errno::EINVAL.into());
    }
    if long(&header, 8) != 0 || word(&header, 20) != 0 {
        return Err(errno::EPROTONOSUPPORT.into());
    }
    if word(&header, 16) != device.driver_id {
        return Err(errno::EINVAL.into());
    }
    let method = match spec::find(device, object, method) {
        Found::Method(method) => method,
        Found::Nothing => return Err(errno::EPROTONOSUPPORT.into()),
        Found::NotModelled(why) => return Err(Stop::NotModelled(why)),
    };
    let attributes_at = request.wrapping_add(HEADER as u64);
    let bytes = memory.read(attributes_at, ATTRIBUTE * count)?;
    let mut request = Request {
        device,
        file,
        memory,
        effects: Effects::default(),
        attributes_at,
        present: Vec::new(),
    };
    let result = request.attributes(&method.attributes, &bytes).and_then(|()| {
        let given = |spec: &AttributeSpec| request.present.iter().any(|it| it.id == spec.id);
        if method.attributes.iter().any(|spec| spec.mandatory && !given(spec)) {
            return Err(errno::EINVAL.into());
        }
        handlers::handle(method.handler, &mut request)?;
        // What a driver was given room for counts as written.
        match request.get(spec::UHW_OUT) {
            Some(out) if method.has_driver_part() => Ok(request.mark_written(out)?),
            _ => Ok(()),
        }
    });
    *effects = request.effects;
    result
}

impl Request<'_> {
    /// Takes the attributes one after the other, each by its specification.
    fn attributes(&mut self, specs: &[AttributeSpec], bytes: &[u8]) -> Result<(), Stop> {
        for (place, bytes) in (0u64..).zip(bytes.chunks_exact(ATTRIBUTE)) {
            let attribute = Present {
                id: short(bytes, 0),
                place,
                len: short(bytes, 2),
                flags: short(bytes, 4),
                data: long(bytes, 8),
            };
            let Some(spec) = specs.iter().find(|spec| spec.id == attribute.id) else {
                if attribute.flags & ATTR_F_MANDATORY != 0 {
                    return Err(errno::EPROTONOSUPPORT.into());
                }
                continue;
            };
            if self.get(attribute.id).is_some() {
                return Err(errno::EINVAL.into());
            }
            self.check(spec, &attribute, short(bytes, 6))?;
            self.present.push(attribute);
        }
        Ok(())
    }

    fn check(&mut self, spec: &AttributeSpec, given: &Present, reserved: u16) -> Result<(), Stop> {
        let len = usize::from(given.len);
        match spec.kind {
            Kind::In { min, max, zero_trailing } => {
                if zero_trailing && len > max && !self.is_zero_behind(given, max) {
                    return Err(errno::EOPNOTSUPP.into());
                }
                if len < min || (!zero_trailing && len > max) || reserved != 0 {
                    return Err(errno::EINVAL.into());
                }
            }
            Kind::CopiedIn { min } => {
                if len < min || reserved != 0 {
                    return Err(errno::EINVAL.into());
                }
                self.input(given)?;
            }
            Kind::Out { min, max, zero_trailing } => {
                if len < min || (!zero_trailing && len > max) || reserved != 0 {
                    return Err(errno::EINVAL.into());
                }
            }
            Kind::NewFd => {
                if reserved != 0 || len != 0 {
                    return Err(errno::EINVAL.into());
                }
                self.context()?;
                let at = self.field_at(given, 8);
                // Its number is written at once, even if the request fails later.
                if self.memory.write(at, &[0; 8]).is_err() {
                    return Err(errno::EFAULT.into());
                }
                self.effects.new_fd = Some(at);
            }
        }
        Ok(())
    }

    fn is_zero_behind(&self, given: &Present, known: usize) -> bool {
        let len = usize::from(given.len);
        if len <= INLINE_LEN {
            return given.data.to_ne_bytes().iter().take(len).skip(known).all(|byte| *byte == 0);
        }
        let rest = self.memory.read(given.data.wrapping_add(known as u64), len - known);
        rest.is_ok_and(|rest| rest.iter().all(|byte| *byte == 0))
    }

    /// An attribute that was given.
    pub(crate) fn get(&self, id: u16) -> Option<Present> {
        self.present.iter().find(|attribute| attribute.id == id).copied()
    }

    /// The context of the file, or why there is none.
    pub(crate) fn context(&self) -> Result<(), Errno> {
        if self.file.has_context { Ok(()) } else { Err(errno::EINVAL) }
    }

    /// An integer that may be at most `most`.
    pub(crate) fn constant(&self, id: u16, most: u64) -> Result<u64, Errno> {
        match self.get(id) {
            Some(attribute) if attribute.data <= most => Ok(attribute.data),
            Some(_) => Err(errno::EINVAL),
            None => Err(errno::ENOENT),
        }
    }

    /// Flags, of which none is known.
    pub(crate) fn no_flags(&self, id: u16) -> Result<(), Errno> {
        let Some(attribute) = self.get(id) else { return Ok(()) };
        let [first, second, third, fourth, ..] = attribute.data.to_ne_bytes();
        let flags = match attribute.len {
            4 => u32::from_ne_bytes([first, second, third, fourth]).into(),
            8 => attribute.data,
            _ => return Err(errno::EINVAL),
        };
        if flags == 0 { Ok(()) } else { Err(errno::EINVAL) }
    }

    /// What an attribute holds for the kernel.
    pub(crate) fn input(&self, given: &Present) -> Result<Vec<u8>, Errno> {
        let len = usize::from(given.len);
        if len <= INLINE_LEN {
            return Ok(given.data.to_ne_bytes().into_iter().take(len).collect());
        }
        self.memory.read(given.data, len)
    }

    /// Writes as much of an answer as there is room for; nothing if it was not asked for.
    pub(crate) fn copy_to(&mut self, id: u16, answer: &[u8]) -> Result<(), Errno> {
        let Some(given) = self.get(id) else { return Err(errno::ENOENT) };
        let length = answer.len().min(given.len.into());
        self.memory.write(given.data, answer.get(..length).unwrap_or_default())?;
        self.mark_written(given)
    }

    /// As [`copy_to`](Self::copy_to), with zeros after the answer.
    pub(crate) fn copy_or_zero(&mut self, id: u16, answer: &[u8]) -> Result<(), Errno> {
        let Some(given) = self.get(id) else { return Err(errno::ENOENT) };
        if let Some(rest) = usize::from(given.len).checked_sub(answer.len()) {
            self.memory.write(given.data.wrapping_add(answer.len() as u64), &vec![0; rest])?;
        }
        self.copy_to(id, answer)
    }

    /// Marks an attribute as written, so that the program knows that its memory holds an answer.
    pub(crate) fn mark_written(&mut self, given: Present) -> Result<(), Errno> {
        let flags = given.flags | ATTR_F_VALID_OUTPUT;
        self.memory.write(self.field_at(&given, 4), &flags.to_ne_bytes())
    }

    /// Address of a field of an attribute.
    fn field_at(&self, given: &Present, offset: u64) -> u64 {
        self.attributes_at.wrapping_add(given.place * ATTRIBUTE as u64 + offset)
    }
}

/// An answer that is not asked for is no mistake.
pub(crate) fn unless_absent(result: Result<(), Errno>) -> Result<(), Errno> {
    match result {
        Err(errno::ENOENT) => Ok(()),
        result => result,
    }
}

fn take<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut array = [0; N];
    for (place, byte) in array.iter_mut().zip(bytes.iter().skip(at)) {
        *place = *byte;
    }
    array
}

fn short(bytes: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes(take(bytes, at))
}

pub(crate) fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(take(bytes, at))
}

pub(crate) fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(take(bytes, at))
}
