//! Good and malformed requests, from a seed.
//!
//! Each begins as a good request of a method that the model knows. Then up to three parts of it are
//! changed. No request makes the kernel create an object.

use fastrand::Rng;
use uverbs_uapi::device::{method, object, query_gid_entry, query_gid_table, write_command};
use uverbs_uapi::ioctl::RDMA_VERBS_IOCTL;
use uverbs_uapi::mlx5;

use crate::memory::Memory;
use crate::spec::{self, Found, Kind};
use crate::{Device, HEADER};

/// A request with the memory it lies in.
#[derive(Clone, Debug)]
pub struct Case {
    /// It is sent on a file that has no context yet.
    pub is_fresh: bool,
    /// The number of the ioctl.
    pub command: u32,
    /// Where the request is.
    pub request: u64,
    /// The program's memory before.
    pub memory: Memory,
}

/// What memory is filled with.
pub const FILL: u8 = 0xa5;

/// Bytes of memory that hold any request: the largest answer, and some.
pub const LARGE: usize = 84 * 1024;

/// Bytes of memory that hold most requests.
pub const SMALL: usize = 12 * 1024;

/// Where answers and inputs begin; requests lie in front.
const FIRST: usize = 4 * 1024;

/// Makes requests.
#[derive(Debug)]
pub struct Generator {
    random: Rng,
    base: u64,
    size: usize,
    /// Where the next piece of memory is free.
    free: usize,
    memory: Vec<u8>,
}

/// A request that is being put together.
#[derive(Clone, Debug)]
struct Draft {
    object: u16,
    method: u16,
    driver_id: u32,
    reserved1: u64,
    reserved2: u32,
    attributes: Vec<Draught>,
}

/// An attribute of it.
#[derive(Clone, Copy, Debug)]
struct Draught {
    id: u16,
    len: u16,
    flags: u16,
    reserved: u16,
    data: u64,
}

impl Generator {
    /// Makes the requests of a seed in memory at `base`, of `size` bytes ([`SMALL`] or [`LARGE`]).
    #[must_use]
    pub fn new(seed: u64, base: u64, size: usize) -> Self {
        Self { random: Rng::with_seed(seed), base, size, free: 0, memory: Vec::new() }
    }

    /// The next request to a device.
    pub fn next_case(&mut self, device: &Device) -> Case {
        self.memory = vec![FILL; self.size];
        self.free = FIRST;
        let mut draft = self.good(device);
        let mut command = RDMA_VERBS_IOCTL;
        let mut wrong_header = None;
        for _ in 0..self.pick(&[0, 0, 0, 1, 1, 1, 2, 3]) {
            match self.random.u8(0..40) {
                0 => {
                    command = self.pick(&[0, RDMA_VERBS_IOCTL + 1, RDMA_VERBS_IOCTL ^ 0x4000_0000]);
                }
                1 => wrong_header = Some((self.random.bool(), self.random.u16(..))),
                2 => draft.reserved1 = 1 << self.random.u8(0..64),
                3 => draft.reserved2 = 1 << self.random.u8(0..32),
                4 => draft.driver_id = self.random.u32(0..24),
                5 => draft.method = self.pick(&[9, 20, 21, 22, 63, 0x1005, 0x2000, 0xffff]),
                6 => draft.object = self.pick(&[20, 21, 63, 0x100f, 0x1fff, 0x2000, 0xffff]),
                7..=9 => self.lose(&mut draft),
                10..=12 => self.repeat(&mut draft),
                13..=17 => self.stranger(&mut draft),
                18..=20 => self.random.shuffle(&mut draft.attributes),
                _ => self.change(&mut draft, device),
            }
        }
        let request = self.place_request(&draft, wrong_header);
        Case {
            is_fresh: self.random.u8(0..12) == 0,
            command,
            request,
            memory: Memory::new(self.base, core::mem::take(&mut self.memory)),
        }
    }

    fn pick<T: Copy + Default>(&mut self, choices: &[T]) -> T {
        self.random.choice(choices).copied().unwrap_or_default()
    }

    /// A good request.
    fn good(&mut self, device: &Device) -> Draft {
        let methods = [
            (object::DEVICE, method::INVOKE_WRITE),
            (object::DEVICE, method::INVOKE_WRITE),
            (object::DEVICE, method::INFO_HANDLES),
            (object::DEVICE, method::QUERY_PORT),
            (object::DEVICE, method::QUERY_PORT),
            (object::DEVICE, method::GET_CONTEXT),
            (object::DEVICE, method::QUERY_CONTEXT),
            (object::DEVICE, method::QUERY_GID_TABLE),
            (object::DEVICE, method::QUERY_GID_TABLE),
            (object::DEVICE, method::QUERY_GID_TABLE),
            (object::DEVICE, method::QUERY_GID_ENTRY),
            (object::DEVICE, method::QUERY_GID_ENTRY),
            (object::DEVICE, method::QUERY_GID_ENTRY),
            (object::DEVICE, method::QUERY_PORT_SPEED),
            (object::DEVICE, method::QUERY_COMP_CNTR_CAPS),
            (object::ASYNC_EVENT, 0),
            (object::DEVICE, mlx5::device_method::QUERY_PORT),
            (mlx5::object::DEVX, mlx5::devx_method::OTHER),
        ];
        let (object, method) = self.pick(&methods);
        let mut draft = Draft {
            object,
            method,
            driver_id: device.driver_id,
            reserved1: 0,
            reserved2: 0,
            attributes: Vec::new(),
        };
        // A method that this kernel has not is asked for with the attributes that it would have.
        let newest = Device { release: (u32::MAX, 0), ..device.clone() };
        let Found::Method(found) = spec::find(&newest, object, method) else { return draft };
        for spec in found.attributes {
            if !spec.mandatory && self.random.u8(0..4) == 0 {
                continue;
            }
            let (len, data) = match spec.kind {
                Kind::In { min: 8, max: 8, .. } => (8, self.value(device, object, method, spec.id)),
                Kind::In { min: 4, max: 8, .. } => (self.pick(&[4, 8]), 0),
                Kind::In { min: 4, max: 4, .. } => (4, self.port(device)),
                Kind::In { min, .. } | Kind::CopiedIn { min } => {
                    let len = self.random.usize(min..64.max(min + 1));
                    self.input(len)
                }
                Kind::Out { min, max, .. } => {
                    let len = if max == min { min } else { self.room(device, min) };
                    (u16::try_from(len).unwrap_or(u16::MAX), self.output(len))
                }
                Kind::NewFd => (0, 0),
            };
            let flags = self.pick(&[1, 1, 1, 0]);
            draft.attributes.push(Draught { id: spec.id, len, flags, reserved: 0, data });
        }
        self.fit_write_command(&mut draft);
        self.fit_mlx5(&mut draft);
        draft
    }

    /// What mlx5 wants with `GET_CONTEXT`, often; commands to firmware of all sorts.
    fn fit_mlx5(&mut self, draft: &mut Draft) {
        let mut bytes = match (draft.object, draft.method) {
            (object::DEVICE, method::GET_CONTEXT) => {
                let mut bytes = vec![0u8; self.pick(&[32, 32, 32, 40, 8])];
                for (place, value) in [(0, 2), (24, 2)] {
                    if let Some(byte) = bytes.get_mut(place) {
                        *byte = value;
                    }
                }
                bytes
            }
            (mlx5::object::DEVX, _) => {
                let operation: u16 = self.pick(&[0x101, 0x754, 0x764, 0x805, 0x80d, 0, 0xffff]);
                let mut bytes = operation.to_be_bytes().to_vec();
                bytes.resize(self.pick(&[16, 16, 32, 64]), 0);
                bytes
            }
            _ => return,
        };
        if self.random.u8(0..3) == 0 {
            let place = self.random.usize(0..bytes.len());
            if let Some(byte) = bytes.get_mut(place) {
                *byte ^= 1 << self.random.u8(0..8);
            }
        }
        let (len, data) = self.input_of(&bytes);
        for attribute in draft.attributes.iter_mut().filter(|it| it.id == 0x1000) {
            (attribute.len, attribute.data) = (len, data);
        }
    }

    /// Room for an answer whose length is the caller's.
    fn room(&mut self, device: &Device, min: usize) -> usize {
        let entries: usize =
            device.ports.iter().map(|port| port.gids.iter().flatten().count()).sum();
        let around = self.random.usize(0..4) + entries;
        let most = if self.size == LARGE { 65535 } else { 4096 };
        let even = most / 32 * 32;
        let choices = [min, 4, 16, 40, 176, 184, 304, 400, 32 * entries, 32 * around, even, most];
        self.pick(&choices).clamp(min, most)
    }

    /// Input for the commands of `INVOKE_WRITE` as they want it.
    fn fit_write_command(&mut self, draft: &mut Draft) {
        if (draft.object, draft.method) != (object::DEVICE, method::INVOKE_WRITE) {
            return;
        }
        let ports = self.pick(&[1u8, 1, 1, 0, 2, 255]);
        let longer = self.pick(&[0usize, 0, 0, 8, 24]);
        let tail = self.pick(&[0u8, 0, 1]);
        let command = draft.attributes.iter().find(|it| it.id == 2).map_or(0, |it| it.data);
        let mut bytes = vec![0u8; if command == write_command::QUERY_PORT.into() { 16 } else { 8 }];
        if let Some(port) = bytes.get_mut(8) {
            *port = ports;
        }
        if command == write_command::EX_QUERY_DEVICE.into() && self.random.u8(0..8) == 0 {
            bytes = self.random.u64(..).to_ne_bytes().to_vec();
        }
        bytes.extend(vec![tail; longer]);
        let (len, data) = self.input_of(&bytes);
        for attribute in draft.attributes.iter_mut().filter(|it| it.id == 0) {
            (attribute.len, attribute.data) = (len, data);
        }
    }

    /// A constant of a method.
    fn value(&mut self, device: &Device, object: u16, method: u16, id: u16) -> u64 {
        match (object, method, id) {
            (object::DEVICE, method::INVOKE_WRITE, _) => {
                let choices = [
                    write_command::QUERY_DEVICE.into(),
                    write_command::QUERY_PORT.into(),
                    write_command::EX_QUERY_DEVICE.into(),
                    write_command::EX_QUERY_DEVICE.into(),
                    64,
                    255,
                    256,
                    0x8000_00ff,
                    0x4000_0001,
                    1 << 32,
                    u64::MAX,
                ];
                self.pick(&choices)
            }
            (object::DEVICE, method::INFO_HANDLES, _) => {
                self.pick(&[0, 0, 1, 3, 16, 20, 63, 0x1000, 0xffff, 0x1_0000, u64::MAX])
            }
            (object::DEVICE, method::QUERY_GID_TABLE, query_gid_table::ENTRY_SIZE) => {
                self.pick(&[32, 32, 32, 32, 1, 16, 31, 33, 40, 64, 0, 65535, 1 << 32, u64::MAX])
            }
            (object::DEVICE, method::QUERY_GID_ENTRY, query_gid_entry::GID_INDEX) => {
                let length = device.ports.first().map_or(0, |port| port.gids.len()) as u64;
                let choices = [
                    0,
                    1,
                    2,
                    self.random.u64(0..8),
                    self.random.u64(0..length.max(1)),
                    length.saturating_sub(1),
                    length,
                    0x7fff_ffff,
                    0x8000_0000,
                    0xffff_ffff,
                    1 << 32,
                    u64::MAX,
                ];
                self.pick(&choices)
            }
            _ => self.port(device),
        }
    }

    fn port(&mut self, device: &Device) -> u64 {
        let first = u64::from(device.first_port);
        let behind = first + device.ports.len() as u64;
        let choices = [
            first,
            first,
            first,
            behind - 1,
            behind,
            0,
            255,
            256,
            257,
            0xffff_ffff,
            1 << 32,
            u64::MAX,
        ];
        self.pick(&choices)
    }

    /// Random bytes for the kernel.
    fn input(&mut self, len: usize) -> (u16, u64) {
        let zero = self.random.bool();
        let bytes: Vec<u8> = (0..len).map(|_| if zero { 0 } else { self.random.u8(..) }).collect();
        self.input_of(&bytes)
    }

    /// Length and data of an attribute with these bytes.
    fn input_of(&mut self, bytes: &[u8]) -> (u16, u64) {
        let len = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
        if bytes.len() <= 8 {
            let mut data = [0; 8];
            for (place, byte) in data.iter_mut().zip(bytes) {
                *place = *byte;
            }
            return (len, u64::from_ne_bytes(data));
        }
        let address = self.output(bytes.len());
        let offset = usize::try_from(address - self.base).unwrap_or(0);
        for (place, byte) in self.memory.iter_mut().skip(offset).zip(bytes) {
            *place = *byte;
        }
        (len, address)
    }

    /// Memory that nothing else uses, as long as there is any.
    fn output(&mut self, len: usize) -> u64 {
        let space = len + self.random.usize(0..32);
        if self.free + space > self.memory.len() {
            self.free = FIRST;
        }
        let offset = self.free.min(self.memory.len().saturating_sub(len));
        self.free += space;
        self.base + offset as u64
    }

    /// An address that is wrong, or just at the end.
    fn bad_address(&mut self) -> u64 {
        let end = self.base + self.memory.len() as u64;
        let short = self.random.u64(1..64);
        self.pick(&[
            0,
            1,
            end,
            end - short,
            end - short,
            self.base - 1,
            self.base - 64,
            end + 8,
            0x7fff_ffff_f000,
            0x8000_0000_0000,
            0xffff_8000_0000_0000,
            u64::MAX - 7,
            u64::MAX,
        ])
    }

    fn any<'d>(&mut self, draft: &'d mut Draft) -> Option<&'d mut Draught> {
        self.random.choice(draft.attributes.iter_mut())
    }

    fn lose(&mut self, draft: &mut Draft) {
        if !draft.attributes.is_empty() {
            let place = self.random.usize(0..draft.attributes.len());
            draft.attributes.remove(place);
        }
    }

    fn repeat(&mut self, draft: &mut Draft) {
        if let Some(attribute) = self.any(draft).copied() {
            let place = self.random.usize(0..=draft.attributes.len());
            draft.attributes.insert(place, attribute);
        }
    }

    /// An attribute that the method has not.
    fn stranger(&mut self, draft: &mut Draft) {
        let id = self.pick(&[5, 9, 30, 31, 32, 63, 0x1005, 0x101e, 0x101f, 0x1fff, 0x2000, 0xffff]);
        let attribute = Draught {
            id,
            len: self.pick(&[0, 4, 8, 16, 65535]),
            flags: self.pick(&[0, 0, 1, 2, 0xfffe, 0xffff]),
            reserved: self.pick(&[0, 1, 0xffff]),
            data: self.random.u64(..),
        };
        let place = self.random.usize(0..=draft.attributes.len());
        draft.attributes.insert(place, attribute);
    }

    /// One thing about an attribute.
    fn change(&mut self, draft: &mut Draft, device: &Device) {
        let (object, method) = (draft.object, draft.method);
        let what = self.random.u8(0..10);
        let bad_address = self.bad_address();
        let number = self.random.u64(..);
        let port = self.port(device);
        let lens =
            [0u16, 1, 3, 4, 5, 6, 7, 8, 9, 12, 16, 31, 32, 33, 39, 40, 41, 47, 48, 49, 56, 65535];
        let len = self.pick(&lens);
        let nudge = self.pick(&[1u16, 0xffff, 8, 0xfff8]);
        let flags = self.random.u16(..);
        let reserved = self.pick(&[1u16, 0x100, 0xffff]);
        let Some(attribute) = self.any(draft) else { return };
        // A write command is not changed into one that makes something.
        let is_command =
            (object, method, attribute.id) == (object::DEVICE, method::INVOKE_WRITE, 2);
        match what {
            0..=1 => attribute.len = len,
            2 => attribute.len = attribute.len.wrapping_add(nudge),
            3 => attribute.flags = flags,
            4 => attribute.reserved = reserved,
            5..=6 if !is_command => attribute.data = bad_address,
            7 if !is_command => attribute.data = number,
            _ if !is_command => attribute.data = port,
            _ => attribute.flags = flags,
        }
    }

    /// Puts the request into memory, and says where.
    fn place_request(&mut self, draft: &Draft, wrong_header: Option<(bool, u16)>) -> u64 {
        let count = u16::try_from(draft.attributes.len()).unwrap_or(u16::MAX);
        let (mut length, mut num_attrs) = (24 + 16 * count, count);
        if let Some((is_length, number)) = wrong_header {
            let near = self.pick(&[1u16, 8, 16, 0xffff, 0xfff0]);
            let number = if self.random.bool() { number } else { length.wrapping_add(near) };
            if is_length { length = number } else { num_attrs = number % 300 }
        }
        let mut bytes = Vec::with_capacity(HEADER + 16 * draft.attributes.len());
        for short in [length, draft.object, draft.method, num_attrs] {
            bytes.extend(short.to_ne_bytes());
        }
        bytes.extend(draft.reserved1.to_ne_bytes());
        bytes.extend(draft.driver_id.to_ne_bytes());
        bytes.extend(draft.reserved2.to_ne_bytes());
        for attribute in &draft.attributes {
            for short in [attribute.id, attribute.len, attribute.flags, attribute.reserved] {
                bytes.extend(short.to_ne_bytes());
            }
            bytes.extend(attribute.data.to_ne_bytes());
        }
        let end = self.memory.len();
        let offset = match self.random.u8(0..60) {
            // Cut by the end of memory, in the header or in the attributes.
            0 => end - self.random.usize(1..=bytes.len().min(end)),
            1 => return self.bad_address(),
            2..=10 => end - bytes.len(),
            _ => self.random.usize(0..16) * 8,
        };
        for (place, byte) in self.memory.iter_mut().skip(offset).zip(&bytes) {
            *place = *byte;
        }
        self.base + offset as u64
    }
}
