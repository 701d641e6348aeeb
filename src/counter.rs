//! Counters, as plain values: what a port or a device counts, in which unit, and how far it can count.
//!
//! [`CounterReader`](crate::host::CounterReader) reads them. A name is the kernel's, the same in RDMA netlink
//! and in sysfs; drivers choose theirs, and some firmware does, so the set is open. What this library does
//! not know of a name is `None`, and never a guess.
//!
//! # Saturation
//!
//! The error counters of the performance management agent have 4 to 32 bits. At all ones they stop, until
//! somebody resets them: from then on nothing more is counted, and a rate of 0 means nothing. So such a
//! counter has no value: it is [`Reading::Saturated`].

mod resources;

use core::fmt;

use crate::driver::DriverId;

pub use resources::{OwnedResources, Owner, ResourceUse};

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Words of 4 bytes, in which InfiniBand counts data. See [`Counter::amount`].
    Words,
    /// Packets.
    Packets,
    /// Events: errors, requests, messages.
    Events,
    /// Ticks of the device's own clock, of unknown length.
    Ticks,
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Bytes => "bytes",
            Self::Words => "words",
            Self::Packets => "packets",
            Self::Events => "events",
            Self::Ticks => "ticks",
        })
    }
}

/// What a counter does at the end of its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// It stops at all ones until it is reset.
    Saturates,
    /// It begins again at 0.
    Wraps,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Saturates => "saturates",
            Self::Wraps => "wraps",
        })
    }
}

/// Which counters it is one of. Two of one name may be different counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Group {
    /// Those of the performance management agent: sysfs `ports/P/counters`.
    Pma,
    /// The driver's own: RDMA netlink, or sysfs `hw_counters`.
    Hardware,
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Pma => "pma",
            Self::Hardware => "hw",
        })
    }
}

/// Who answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CounterSource {
    /// RDMA netlink, all counters of a port at once.
    Netlink,
    /// A file of sysfs.
    Sysfs,
}

impl fmt::Display for CounterSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Netlink => "netlink",
            Self::Sysfs => "sysfs",
        })
    }
}

/// What a counter says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// The number as the kernel has it.
    Value(u64),
    /// It has stopped at this number, its last. There were as many, or more.
    Saturated(u64),
}

/// A counter as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counter {
    /// The kernel's name. It may have blanks, and any other character.
    pub name: String,
    /// Which counters it is one of.
    pub group: Group,
    /// Who answered.
    pub source: CounterSource,
    /// What is counted, if that is known.
    pub unit: Option<Unit>,
    /// How many bits it has, if that is known.
    pub bits: Option<u8>,
    /// What it does at the end of them, if that is known.
    pub end: Option<End>,
    /// Whether it is known to go up and down, as a gauge does. The kernel does not say it: others may do so, too.
    pub is_gauge: bool,
    /// Whether what it counts is known to be an error.
    pub is_error: bool,
    /// What it says.
    pub reading: Reading,
}

impl Counter {
    /// A counter of this name in a driver's device, which says this number.
    ///
    /// ```
    /// use uverbs::counter::{Counter, CounterSource, Group, Reading, Unit};
    ///
    /// let counter = |name, number| Counter::new(name, Group::Pma, CounterSource::Sysfs, None, number);
    /// assert_eq!(counter("port_xmit_data", 10).amount(), Some((40, Some(Unit::Bytes))));
    /// assert_eq!(counter("link_downed", 255).reading, Reading::Saturated(255));
    /// ```
    #[must_use]
    pub fn new(
        name: impl Into<String>,
        group: Group,
        source: CounterSource,
        driver: Option<DriverId>,
        number: u64,
    ) -> Self {
        let name = name.into();
        let mut traits = match group {
            Group::Pma => pma_traits(&name),
            Group::Hardware => hardware_traits(&name, driver),
        };
        let most = traits.bits.map(|bits| u64::MAX >> 64_u32.saturating_sub(bits.into()));
        if most.is_some_and(|most| number > most) {
            // It is no counter of so few bits, then.
            (traits.bits, traits.end) = (None, None);
        }
        let stops = traits.end == Some(End::Saturates) || traits.may_be_short;
        let last = if traits.may_be_short { Some(u32::MAX.into()) } else { most };
        let is_full = stops && last == Some(number);
        Self {
            name,
            group,
            source,
            unit: traits.unit,
            bits: traits.bits,
            end: traits.end,
            is_gauge: traits.is_gauge,
            is_error: traits.is_error,
            reading: if is_full { Reading::Saturated(number) } else { Reading::Value(number) },
        }
    }

    /// The kernel's number, also of a counter that has stopped there.
    #[must_use]
    pub fn raw(&self) -> u64 {
        match self.reading {
            Reading::Value(number) | Reading::Saturated(number) => number,
        }
    }

    /// What was counted, with its unit: words as bytes. `None` if the counter has stopped.
    #[must_use]
    pub fn amount(&self) -> Option<(u128, Option<Unit>)> {
        matches!(self.reading, Reading::Value(_)).then(|| self.at_least())
    }

    /// The same, also of a counter that has stopped: there was as much, or more.
    #[must_use]
    pub fn at_least(&self) -> (u128, Option<Unit>) {
        self.scaled(self.raw())
    }

    /// How much was counted since another reading of the same counter, in the unit of [`amount`](Self::amount).
    ///
    /// `None` if that is not known: one of them had stopped, it is a gauge, or it is smaller now and does
    /// not wrap at 32 bits or less, so that it was reset. A counter that wraps and was reset cannot be told
    /// from one that only wrapped.
    #[must_use]
    pub fn since(&self, before: &Self) -> Option<u128> {
        let (Reading::Value(now), Reading::Value(then)) = (self.reading, before.reading) else {
            return None;
        };
        let is_same = self.name == before.name && self.group == before.group && !self.is_gauge;
        let grown = match (self.end, self.bits) {
            _ if now >= then => now - then,
            // One that had more has more bits.
            (Some(End::Wraps), Some(bits @ 1..=32)) if before.bits == self.bits => {
                (1_u64 << bits).checked_sub(then - now)?
            }
            _ => return None,
        };
        is_same.then(|| self.scaled(grown).0)
    }

    fn scaled(&self, number: u64) -> (u128, Option<Unit>) {
        match self.unit {
            Some(Unit::Words) => (u128::from(number) * 4, Some(Unit::Bytes)),
            unit => (number.into(), unit),
        }
    }
}

/// An optional counter of a port: `rdma statistic set` turns it on and off.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OptionalCounter {
    /// Its name.
    pub name: String,
    /// Whether it is on. One that is off is not among the counters.
    pub is_on: bool,
}

impl OptionalCounter {
    /// An optional counter and its state.
    #[must_use]
    pub fn new(name: impl Into<String>, is_on: bool) -> Self {
        Self { name: name.into(), is_on }
    }
}

/// What is known of a name.
#[derive(Clone, Copy, Debug, Default)]
struct Traits {
    unit: Option<Unit>,
    bits: Option<u8>,
    end: Option<End>,
    is_gauge: bool,
    is_error: bool,
    /// It has 64 bits, or 32 at whose end it stops: the file does not say. 2³² − 1 counts as that end.
    may_be_short: bool,
}

/// The counters of the attributes `PortCounters` and `PortCountersExtended` of the InfiniBand specification,
/// by sysfs's names (`drivers/infiniband/core/sysfs.c`).
fn pma_traits(name: &str) -> Traits {
    let short = |bits, unit, is_error| Traits {
        unit: Some(unit),
        bits: Some(bits),
        end: Some(End::Saturates),
        is_error,
        ..Traits::default()
    };
    let long = |unit| Traits { unit: Some(unit), may_be_short: true, ..Traits::default() };
    match name {
        "port_xmit_data" | "port_rcv_data" => long(Unit::Words),
        "port_xmit_packets" | "port_rcv_packets" => long(Unit::Packets),
        // Only the extended attribute has them.
        "unicast_xmit_packets"
        | "unicast_rcv_packets"
        | "multicast_xmit_packets"
        | "multicast_rcv_packets" => {
            Traits { unit: Some(Unit::Packets), bits: Some(64), ..Traits::default() }
        }
        "port_xmit_wait" => short(32, Unit::Ticks, false),
        "port_xmit_discards" | "port_rcv_errors" | "VL15_dropped" => short(16, Unit::Packets, true),
        "symbol_error" | "port_rcv_remote_physical_errors" | "port_rcv_switch_relay_errors" => {
            short(16, Unit::Events, true)
        }
        "link_error_recovery"
        | "link_downed"
        | "port_xmit_constraint_errors"
        | "port_rcv_constraint_errors" => short(8, Unit::Events, true),
        "local_link_integrity_errors" | "excessive_buffer_overrun_errors" => {
            short(4, Unit::Events, true)
        }
        _ => Traits::default(),
    }
}

/// mlx5's Q counters. They have 32 bits and wrap.
const MLX5_Q_COUNTERS: [&str; 24] = [
    "rx_write_requests",
    "rx_read_requests",
    "rx_atomic_requests",
    "rx_dct_connect",
    "out_of_buffer",
    "out_of_sequence",
    "duplicate_request",
    "rnr_nak_retry_err",
    "packet_seq_err",
    "implied_nak_seq_err",
    "local_ack_timeout_err",
    "resp_local_length_error",
    "resp_cqe_error",
    "req_cqe_error",
    "req_remote_invalid_request",
    "req_remote_access_errors",
    "resp_remote_access_errors",
    "resp_cqe_flush_error",
    "req_cqe_flush_error",
    "req_transport_retries_exceeded",
    "req_rnr_retries_exceeded",
    "roce_adp_retrans",
    "roce_adp_retrans_to",
    "roce_slow_restart",
];

/// Q counters of mlx5 beside those.
const MLX5_MORE_Q_COUNTERS: [&str; 2] = ["roce_slow_restart_cnps", "roce_slow_restart_trans"];

/// The objects of `bnxt_re` (`drivers/infiniband/hw/bnxt_re/hw_counters.c`).
const BNXT_RE_OBJECTS: [&str; 9] =
    ["pds", "ahs", "qps", "rc_qps", "ud_qps", "srqs", "cqs", "mrs", "mws"];

/// Whether a name is known to be of a number that goes up and down: mana's, those of `bnxt_re` (how many objects there are,
/// how many there were at most, and a register), and hfi1's open contexts.
fn is_gauge_name(name: &str) -> bool {
    let of_bnxt_re = || name.strip_prefix("active_").or_else(|| name.strip_prefix("watermark_"));
    let is_of_objects = |own| BNXT_RE_OBJECTS.contains(&own);
    matches!(name, "current_rate" | "num_qps_congested" | "db_fifo_register" | "DRIVER_CtxtsOpen")
        || of_bnxt_re().is_some_and(is_of_objects)
}

fn hardware_traits(name: &str, driver: Option<DriverId>) -> Traits {
    if is_gauge_name(name) {
        return Traits { is_gauge: true, ..Traits::default() };
    }
    let q_name = name.strip_prefix("vport_").unwrap_or(name);
    let is_q_counter = driver == Some(DriverId::MLX5)
        && (MLX5_Q_COUNTERS.contains(&q_name) || MLX5_MORE_Q_COUNTERS.contains(&q_name));
    let (bits, end) = match driver {
        Some(DriverId::MLX5) if is_q_counter => (Some(32), Some(End::Wraps)),
        // Counted by the kernel itself.
        Some(DriverId::RXE) => (Some(64), Some(End::Wraps)),
        _ => (None, None),
    };
    let is_error = is_error_name(name);
    let unit = unit_of(name).or_else(|| (is_error || is_q_counter).then_some(Unit::Events));
    Traits { unit, bits, end, is_error, ..Traits::default() }
}

/// The words of a name, by any of the ways in which drivers write them: `tx_bytes`, `ip4InOctets`,
/// `Nak Sequence Error`.
fn words(name: &str) -> impl Iterator<Item = String> {
    let mut found = vec![String::new()];
    let mut was_small = false;
    for c in name.chars() {
        let is_break = !c.is_alphanumeric() || (c.is_uppercase() && was_small);
        if is_break {
            found.push(String::new());
        }
        if let (true, Some(word)) = (c.is_alphanumeric(), found.last_mut()) {
            word.extend(c.to_lowercase());
        }
        was_small = c.is_lowercase() || c.is_numeric();
    }
    found.into_iter().filter(|word| !word.is_empty())
}

/// The unit, where a word of the name says it.
fn unit_of(name: &str) -> Option<Unit> {
    let mut unit = None;
    for word in words(name) {
        unit = match word.as_str() {
            "bytes" | "octets" => Some(Unit::Bytes),
            "pkt" | "pkts" | "packets" | "segs" | "drops" => Some(Unit::Packets),
            "err" | "error" | "errors" | "errs" | "reqs" | "wrs" | "cnt" | "cmds" => {
                unit.or(Some(Unit::Events))
            }
            _ => unit,
        };
    }
    unit
}

/// Whether a name says that what it counts is an error.
fn is_error_name(name: &str) -> bool {
    // Drops for want of a receive request; a sequence with a gap.
    let is_known = matches!(
        name.strip_prefix("vport_").unwrap_or(name),
        "out_of_buffer"
            | "out_of_sequence"
            | "out_of_seq_request"
            | "req_transport_retries_exceeded"
            | "req_rnr_retries_exceeded"
            | "link_downed"
            | "rx_icrc_encapsulated"
    );
    let is_error = |word: String| {
        let word = word.as_str();
        matches!(word, "err" | "error" | "errors" | "errs" | "drop" | "drops" | "dropped")
    };
    is_known || words(name).any(is_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pma(name: &str, number: u64) -> Counter {
        Counter::new(name, Group::Pma, CounterSource::Sysfs, None, number)
    }

    fn of_mlx5(name: &str, number: u64) -> Counter {
        let (group, source) = (Group::Hardware, CounterSource::Netlink);
        Counter::new(name, group, source, Some(DriverId::MLX5), number)
    }

    #[test]
    fn a_full_counter_has_no_value() {
        for (name, last) in [
            ("local_link_integrity_errors", 15),
            ("link_downed", 255),
            ("symbol_error", 65_535),
            ("port_xmit_wait", 0xffff_ffff),
            ("port_rcv_data", 0xffff_ffff),
        ] {
            assert_eq!(pma(name, last).reading, Reading::Saturated(last), "{name}");
            assert_eq!(pma(name, last).amount(), None, "{name}");
            assert_eq!(pma(name, last - 1).reading, Reading::Value(last - 1), "{name}");
            assert_eq!((pma(name, last + 1).reading, pma(name, last).raw()), {
                (Reading::Value(last + 1), last)
            });
            assert_eq!(pma(name, last).since(&pma(name, last)), None, "{name}: a rate of 0");
        }
        // They go on: 64 bits, and 32 that wrap.
        let wide = pma("unicast_rcv_packets", 0xffff_ffff);
        assert_eq!((wide.reading, wide.bits), (Reading::Value(0xffff_ffff), Some(64)));
        assert_eq!(of_mlx5("out_of_buffer", 0xffff_ffff).reading, Reading::Value(0xffff_ffff));
    }

    #[test]
    fn what_is_larger_than_its_bits_has_others() {
        let odd = pma("link_downed", 256);
        assert_eq!((odd.bits, odd.end, odd.reading), (None, None, Reading::Value(256)));
    }

    #[test]
    fn words_are_bytes() {
        assert_eq!(pma("port_rcv_data", 3).amount(), Some((12, Some(Unit::Bytes))));
        assert_eq!(pma("port_rcv_data", 5).since(&pma("port_rcv_data", 3)), Some(8));
        let most = u128::from(u64::MAX) * 4;
        assert_eq!(pma("port_rcv_data", u64::MAX).amount(), Some((most, Some(Unit::Bytes))));
        let full = pma("port_rcv_data", u32::MAX.into());
        assert_eq!((full.amount(), full.at_least()), (None, (17_179_869_180, Some(Unit::Bytes))));
    }

    #[test]
    fn growth() {
        let q = |number| of_mlx5("packet_seq_err", number);
        assert_eq!(q(7).since(&q(5)), Some(2));
        assert_eq!(q(1).since(&q(0xffff_fffe)), Some(3), "it wrapped");
        for before in [1 << 32, u64::MAX] {
            assert_eq!(q(5).since(&q(before)), None, "it has more bits");
        }
        assert_eq!(q(1 << 32).since(&q(5)), Some((1 << 32) - 5));
        let odd = |number| of_mlx5("new_counter", number);
        assert_eq!((odd(1).since(&odd(5)), odd(5).since(&odd(1))), (None, Some(4)), "a reset");
        assert_eq!(q(9).since(&of_mlx5("out_of_buffer", 1)), None);
        let gauge = |number| of_mlx5("current_rate", number);
        assert_eq!(gauge(9).since(&gauge(1)), None);
        let objects = "pds ahs qps rc_qps ud_qps srqs cqs mrs mws".split(' ');
        let mut names: Vec<_> = objects.map(|own| format!("active_{own}")).collect();
        names
            .extend(["watermark_ud_qps", "db_fifo_register", "DRIVER_CtxtsOpen"].map(String::from));
        for name in &names {
            assert!(of_mlx5(name, 1).is_gauge, "{name}");
        }
        for name in ["active_speeds", "qps", "DRIVER_KernIntr"] {
            assert!(!of_mlx5(name, 1).is_gauge, "{name}");
        }
    }

    #[test]
    fn names_of_drivers() {
        for (name, unit, is_error) in [
            ("tx_bytes", Some(Unit::Bytes), false),
            ("ip4InOctets", Some(Unit::Bytes), false),
            ("sent_pkts", Some(Unit::Packets), false),
            ("np_cnp_sent", None, false),
            ("Nak Sequence Error", Some(Unit::Events), true),
            ("rx_drops", Some(Unit::Packets), true),
            ("out_of_buffer", Some(Unit::Events), true),
            ("ord limit count", None, false),
            ("", None, false),
        ] {
            let read = of_mlx5(name, 1);
            assert_eq!((read.unit, read.is_error), (unit, is_error), "{name}");
        }
    }
}
