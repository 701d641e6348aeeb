//! A kernel that says what bytes tell it to say.

use std::sync::atomic::{AtomicUsize, Ordering};

use arbitrary::Arbitrary;
use rustix::io::Errno;
use uverbs::simulated::{SimulatedKernel, UserMemory};
use uverbs::uapi::device::QueryPortResponse;
use zerocopy::{FromZeros, IntoBytes};

/// Calls after which it gives up, so that no walk takes long.
const CALLS: usize = 400;

/// One answer; they are given in turn.
#[derive(Arbitrary, Clone, Debug)]
pub(crate) struct Answer {
    errno: Option<u8>,
    fills: Vec<Fill>,
    /// Which attributes are marked as written.
    marks: u16,
    /// What else is changed in the request.
    scribbles: Vec<(u16, u8)>,
}

/// What is written where an attribute lends memory.
#[derive(Arbitrary, Clone, Debug)]
enum Fill {
    Nothing,
    Bytes(Vec<u8>),
    /// A number of as many bytes as there is room for.
    Count(u16),
    Huge(u64),
    /// An entry with the slot that was asked for.
    Entry {
        gid: [u8; 16],
        kind: u8,
        ndev: u32,
    },
    /// A port whose GID table is so long.
    Port {
        length: u16,
        bytes: [u8; 16],
    },
    /// A port with codes of which most are known.
    Likely {
        length: u16,
        mtu: u8,
        width: u8,
        speed: u8,
    },
}

/// What most errnos below 128 become: those that mean something. Others stay as they are.
const LIKELY: [u8; 8] = [22, 5, 61, 95, 93, 11, 1, 4];

/// The kernel. The context is given if `is_open`, whatever else it says.
#[derive(Debug)]
pub(crate) struct Hostile {
    pub(crate) answers: Vec<Answer>,
    pub(crate) is_open: bool,
    calls: AtomicUsize,
}

impl Hostile {
    pub(crate) fn new(answers: Vec<Answer>, is_open: bool) -> Self {
        Self { answers, is_open, calls: AtomicUsize::new(0) }
    }
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_ne_bytes(bytes.try_into().expect("eight bytes"))
}

impl SimulatedKernel for Hostile {
    fn ioctl(&self, request: &mut [u8], memory: &UserMemory<'_>) -> Result<(), Errno> {
        assert_eq!(usize::from(u16::from_ne_bytes([request[0], request[1]])), request.len());
        let is_event_file = request[2..4] != [0, 0];
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        if self.is_open && (call == 0 || is_event_file && request.len() == 40) {
            return Ok(());
        }
        if call > CALLS || self.answers.is_empty() {
            return Err(Errno::IO);
        }
        let answer = &self.answers[call % self.answers.len()];
        let lent: Vec<(usize, u64, usize)> = (24..request.len())
            .step_by(16)
            .map(|at| {
                let len = u16::from_ne_bytes([request[at + 2], request[at + 3]]);
                (at, number(&request[at + 8..at + 16]), len.into())
            })
            .collect();
        // The low half of a number of 64 bits.
        let asked = |place: usize| {
            let number = lent.get(place).map_or(0, |(_, data, _)| *data) & u64::from(u32::MAX);
            u32::try_from(number).expect("32 bits").to_ne_bytes()
        };
        for (place, (at, address, len)) in lent.iter().enumerate() {
            if !answer.fills.is_empty() && memory.write(*address, &[]).is_ok() {
                let mut bytes = match &answer.fills[place % answer.fills.len()] {
                    Fill::Nothing => Vec::new(),
                    Fill::Bytes(bytes) => bytes.iter().copied().cycle().take(*len).collect(),
                    Fill::Count(count) => u64::from(*count).to_ne_bytes().to_vec(),
                    Fill::Huge(count) => count.to_ne_bytes().to_vec(),
                    Fill::Entry { gid, kind, ndev } => {
                        let slot = [asked(1), asked(0)].concat();
                        // Most are the kernel's.
                        let kind = if *kind < 192 { kind % 4 } else { *kind };
                        let kind = u32::from(kind).to_ne_bytes();
                        [&gid[..], &slot, &kind, &ndev.to_ne_bytes()].concat()
                    }
                    Fill::Likely { length, mtu, width, speed } => {
                        let port = QueryPortResponse {
                            gid_tbl_len: u32::from(*length) % 4096,
                            state: mtu % 8,
                            max_mtu: mtu % 7,
                            active_mtu: mtu / 7 % 7,
                            active_width: 1 << (width % 8),
                            active_speed: 1 << (speed % 8),
                            active_speed_ex: 1 << (u32::from(*speed) % 12),
                            phys_state: width % 9,
                            link_layer: width % 4,
                            ..QueryPortResponse::new_zeroed()
                        };
                        port.as_bytes().to_vec()
                    }
                    Fill::Port { length, bytes } => {
                        let length = u32::from(*length).to_ne_bytes();
                        [&bytes[..], &length, bytes, bytes].concat()
                    }
                };
                bytes.truncate(*len);
                memory.write(*address, &bytes)?;
            }
            if answer.marks >> (place % 16) & 1 != 0 {
                let flags = u16::from_ne_bytes([request[at + 4], request[at + 5]]) | 2;
                request[at + 4..at + 6].copy_from_slice(&flags.to_ne_bytes());
            }
        }
        for (place, byte) in &answer.scribbles {
            let place = usize::from(*place) % request.len();
            request[place] = *byte;
        }
        let Some(errno) = answer.errno else { return Ok(()) };
        let likely = LIKELY.get(usize::from(errno) % 16).filter(|_| errno < 128);
        Err(Errno::from_raw_os_error(i32::from(*likely.unwrap_or(&errno)).max(1)))
    }
}
