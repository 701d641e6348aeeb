//! BAR 0: the initialisation segment with the command doorbell, health buffer and timer. The doorbell pages
//! follow it. Only doorbells of send queues have an effect.

use crate::command::queue;
use crate::description::{Description, Mode};
use std::time::{Duration, Instant};

/// Its size in bytes.
pub(crate) const SIZE: u64 = 32 << 20;
/// Frequency of the timer in kHz, also in the capabilities.
pub(crate) const FREQUENCY_KHZ: u32 = 156_250;

/// Revision of the command interface.
const COMMAND_REVISION: u32 = 5;

/// The first of the doorbell pages, and of each the part where send queues are rung; event and
/// completion queues below are taken as armed at all times.
pub(crate) const DOORBELL_PAGES: u64 = 8 * 4096;
const SEND_DOORBELLS: u64 = 0x800;

/// What was rung.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rung {
    /// The command queue: the slots as bits.
    Commands(u32),
    /// A send queue: the first eight bytes of the last request on it.
    Send(u64),
}

/// How long the driver looks for a completion that it may have missed.
const LAST_LOOK: Duration = Duration::from_secs(5);

/// The registers by their offsets.
mod register {
    pub(super) const FIRMWARE: u64 = 0x000;
    pub(super) const INTERFACE: u64 = 0x004;
    pub(super) const QUEUE_HIGH: u64 = 0x010;
    pub(super) const QUEUE_LOW: u64 = 0x014;
    pub(super) const DOORBELL: u64 = 0x018;
    pub(super) const INITIALIZING: u64 = 0x1fc;
    pub(super) const HEALTH_SEVERITY: u64 = 0x238;
    pub(super) const HEALTH_SYNDROME: u64 = 0x23c;
    pub(super) const COMMAND_TIMEOUT: u64 = 0xff8;
    pub(super) const INIT_TIMEOUT: u64 = 0xffc;
    pub(super) const TIMER_HIGH: u64 = 0x1000;
    pub(super) const TIMER_LOW: u64 = 0x1004;
    pub(super) const HEALTH_COUNTER: u64 = 0x1010;
}

/// Content of the registers that is not in the description.
#[derive(Debug)]
pub(crate) struct Bar {
    queue: (u32, u32),
    health_counter: u32,
    started: Instant,
    /// The command timeout that the driver took, in milliseconds, if it took one.
    timeout: Option<u32>,
    /// Content of the health buffer.
    pub(crate) health: Health,
}

/// Health as in the buffer. The default is a healthy device.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Health {
    pub(crate) syndrome: u8,
    pub(crate) fatal: bool,
}

impl Bar {
    pub(crate) fn new() -> Self {
        Self {
            queue: (0, 0),
            health_counter: 0,
            started: Instant::now(),
            timeout: None,
            health: Health::default(),
        }
    }

    /// Forgets what the driver wrote.
    pub(crate) fn reset(&mut self) {
        self.queue = (0, 0);
    }

    /// Address of the command queue.
    pub(crate) fn queue(&self) -> u64 {
        u64::from(self.queue.0) << 32 | u64::from(self.queue.1 & !0xfff)
    }

    /// How long the driver waits for a command before it gives its mailboxes to others: the
    /// timeout, and some seconds in which it looks whether it has missed the completion.
    pub(crate) fn patience(&self) -> Duration {
        Duration::from_millis(self.timeout.map_or(60_000, u64::from)) + LAST_LOOK
    }

    /// Reads from `offset` on.
    pub(crate) fn read(&mut self, description: &Description, offset: u64, bytes: &mut [u8]) {
        let mut register = (u64::MAX, [0; 4]);
        for (byte, at) in bytes.iter_mut().zip(offset..) {
            if register.0 != at & !3 {
                // Once for each register: the health counter counts how often it is read.
                register = (at & !3, self.register(description, at & !3).to_be_bytes());
            }
            let [a, b, c, d] = register.1;
            *byte = match at & 3 {
                0 => a,
                1 => b,
                2 => c,
                _ => d,
            };
        }
    }

    fn register(&mut self, description: &Description, offset: u64) -> u32 {
        let (major, minor, sub_minor) = description.firmware;
        match offset {
            register::FIRMWARE => u32::from(minor) << 16 | u32::from(major),
            register::INTERFACE => COMMAND_REVISION << 16 | u32::from(sub_minor),
            register::QUEUE_HIGH => self.queue.0,
            // The driver asks for the sizes here before it writes the address. The bits between
            // are the state of the interface, 0 is full operation.
            register::QUEUE_LOW => {
                self.queue.1 & !0xfff | queue::LOG_SLOTS << 4 | queue::LOG_STRIDE
            }
            // The highest bit would say that the firmware is not ready.
            register::INITIALIZING => match description.mode {
                Mode::EmbeddedCpu { .. } => 1 << 23,
                Mode::InfiniBand | Mode::Roce | Mode::Switchdev => 0,
            },
            register::HEALTH_SEVERITY => u32::from(self.health.fatal) << 31,
            register::HEALTH_SYNDROME => u32::from(self.health.syndrome) << 16,
            // Milliseconds, both. A driver that knows them takes the one that matters only if the
            // other is not 0.
            register::INIT_TIMEOUT => {
                self.timeout = self.timeout.filter(|_| description.command_timeout != 0);
                description.command_timeout
            }
            register::COMMAND_TIMEOUT => {
                self.timeout = Some(description.command_timeout);
                description.command_timeout
            }
            register::TIMER_HIGH => self.ticks().0,
            register::TIMER_LOW => self.ticks().1,
            // The driver considers a device dead if the counter does not change.
            register::HEALTH_COUNTER => {
                self.health_counter = self.health_counter.wrapping_add(1);
                self.health_counter
            }
            _ => 0,
        }
    }

    /// Writes. Returns what was rung, if anything.
    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8]) -> Option<Rung> {
        if offset >= DOORBELL_PAGES {
            let request = bytes.first_chunk().filter(|_| offset & SEND_DOORBELLS != 0)?;
            return Some(Rung::Send(u64::from_be_bytes(*request)));
        }
        let mut rung = None;
        if !offset.is_multiple_of(4) {
            return rung;
        }
        for (word, offset) in bytes.as_chunks::<4>().0.iter().zip((offset..).step_by(4)) {
            let value = u32::from_be_bytes(*word);
            match offset {
                register::QUEUE_HIGH => self.queue.0 = value,
                register::QUEUE_LOW => self.queue.1 = value,
                register::DOORBELL => rung = Some(Rung::Commands(value)),
                _ => {}
            }
        }
        rung
    }

    /// The timer, its high and low half.
    fn ticks(&self) -> (u32, u32) {
        let ticks = self.started.elapsed().as_nanos() * u128::from(FREQUENCY_KHZ) / 1_000_000;
        let half = |ticks: u128| u32::try_from(ticks & 0xffff_ffff).unwrap_or_default();
        (half(ticks >> 32), half(ticks))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<const N: usize>(bar: &mut Bar, of: &Description, offset: u64) -> [u8; N] {
        let mut bytes = [0xee; N];
        bar.read(of, offset, &mut bytes);
        bytes
    }

    #[test]
    fn revisions() {
        let description = Description { firmware: (20, 35, 1012), ..Description::roce() };
        let mut bar = Bar::new();
        assert_eq!(read(&mut bar, &description, 0), [0, 0x23, 0, 0x14, 0, 5, 0x03, 0xf4]);
        assert_eq!(read(&mut bar, &description, 7), [0xf4]);
    }

    #[test]
    fn the_queue_tells_its_size_whatever_is_written() {
        let description = Description::roce();
        let mut bar = Bar::new();
        assert_eq!(read(&mut bar, &description, 0x14), [0, 0, 0, 0x56]);
        assert_eq!(bar.write(0x10, &[0, 0, 0, 1, 0x12, 0x34, 0x57, 0x00]), None);
        assert_eq!(bar.queue(), 0x1_1234_5000);
        assert_eq!(read(&mut bar, &description, 0x14), [0x12, 0x34, 0x50, 0x56]);
        bar.reset();
        assert_eq!(bar.queue(), 0);
    }

    #[test]
    fn the_doorbell_is_one_register() {
        let mut bar = Bar::new();
        assert_eq!(bar.write(0x18, &[0x80, 0, 0, 1]), Some(Rung::Commands(0x8000_0001)));
        assert_eq!(bar.write(0x18, &[1]), None);
        assert_eq!(bar.write(0x17, &[1; 8]), None);
        assert_eq!(bar.write(0x1c, &[1; 4]), None);
        assert_eq!(bar.write(0x8800, &[1; 8]), Some(Rung::Send(0x0101_0101_0101_0101)));
        assert_eq!(bar.write(0x8800, &[1; 4]), None);
        assert_eq!(bar.write(0x8040, &[1; 8]), None);
    }

    #[test]
    fn timeouts() {
        let description = Description { command_timeout: 1500, ..Description::roce() };
        let mut bar = Bar::new();
        assert_eq!(bar.patience(), Duration::from_secs(65));
        assert_eq!(read(&mut bar, &description, 0xffc), [0, 0, 5, 0xdc]);
        assert_eq!(bar.patience(), Duration::from_secs(65));
        assert_eq!(read(&mut bar, &description, 0xff8), [0, 0, 5, 0xdc]);
        assert_eq!(bar.patience(), Duration::from_millis(6500));
        assert_eq!(read(&mut bar, &description, 0xffc), [0, 0, 5, 0xdc]);
        assert_eq!(bar.patience(), Duration::from_millis(6500));
        assert_eq!(read(&mut bar, &Description::roce(), 0xffc), [0; 4]);
        assert_eq!(bar.patience(), Duration::from_secs(65), "the next driver took none");
    }

    #[test]
    fn only_an_embedded_cpu_is_one() {
        let mut bar = Bar::new();
        assert_eq!(read(&mut bar, &Description::switchdev(), 0x1fc), [0; 4]);
        assert_eq!(read(&mut bar, &Description::embedded_cpu(0), 0x1fc), [0, 0x80, 0, 0]);
    }

    #[test]
    fn health() {
        let description = Description::roce();
        let mut bar = Bar::new();
        assert_eq!(read(&mut bar, &description, 0x200), [0; 0x40]);
        bar.health = Health { syndrome: 0x10, fatal: true };
        assert_eq!(read(&mut bar, &description, 0x238), [0x80, 0, 0, 0, 0, 0x10, 0, 0]);
        let before: [u8; 4] = read(&mut bar, &description, 0x1010);
        assert_ne!(before, read(&mut bar, &description, 0x1010));
    }

    #[test]
    fn the_timer_runs() {
        let mut bar = Bar::new();
        let mut ticks = || u64::from_be_bytes(read(&mut bar, &Description::roce(), 0x1000));
        let before = ticks();
        std::thread::sleep(Duration::from_millis(10));
        let elapsed = ticks() - before;
        assert!(elapsed >= 1_562_500, "{elapsed}");
    }
}
