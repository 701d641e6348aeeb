//! `--at`: a moment of a recording, and what was known then.

use std::mem::take;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use uverbs::inventory::Inventory;
use uverbs::watch::{Moment, Part, format_time, parse_clock, parse_time};

/// A moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    Time(SystemTime),
    /// The last one that is recorded.
    End,
}

impl FromStr for At {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "end" {
            return Ok(Self::End);
        }
        let now = SystemTime::now();
        let time = parse_time(text).or_else(|| last(text, now)).or_else(|| ago(text, now));
        time.map(|time| Self::Time(whole_milliseconds(time))).ok_or_else(|| {
            let without_zone = parse_time(&format!("{text}Z")).is_some();
            if without_zone || parse_clock(&format!("{text}Z")).is_some() {
                return format!("it is not said in which time zone: {text}Z is UTC, or give an offset: {text}+01:00");
            }
            "expected a time, as 2026-11-22T03:12:00Z, 03:12Z, 10m (ago) or end".to_owned()
        })
    }
}

/// A time as recordings have it.
fn whole_milliseconds(time: SystemTime) -> SystemTime {
    parse_time(&format_time(time, 3)).unwrap_or(time)
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The last time of day that was so: `03:12Z`.
fn last(text: &str, now: SystemTime) -> Option<SystemTime> {
    let (clock, offset) = parse_clock(text)?;
    let shift = Duration::from_secs(offset.unsigned_abs());
    // Of which day there is only known when it is known which day there is now.
    let there = if offset < 0 { now.checked_sub(shift) } else { now.checked_add(shift) }?;
    let since = there.duration_since(UNIX_EPOCH).ok()?;
    let today = Duration::from_secs(since.as_secs() / DAY.as_secs() * DAY.as_secs());
    let then = if clock <= since.saturating_sub(today) {
        today + clock
    } else {
        (today + clock).checked_sub(DAY)?
    };
    let then = UNIX_EPOCH.checked_add(then)?;
    if offset < 0 { then.checked_add(shift) } else { then.checked_sub(shift) }
}

/// So long ago: `90s`, `10m`, `2h`, `3d`.
fn ago(text: &str, now: SystemTime) -> Option<SystemTime> {
    let seconds = match text.as_bytes().last()? {
        b's' => 1,
        b'm' => 60,
        b'h' => 3600,
        b'd' => DAY.as_secs(),
        _ => return None,
    };
    let number = text.get(..text.len() - 1)?;
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
    let seconds = number.parse::<u64>().ok().filter(|_| is_number)?.checked_mul(seconds)?;
    let then = now.checked_sub(Duration::from_secs(seconds))?;
    (then >= UNIX_EPOCH).then_some(then)
}

/// By how much the clock on the wall may go on more than the other between two lines, and was not set; and by how much
/// less, as times have milliseconds. Both are adjusted together.
const SLACK: Duration = Duration::from_secs(1);
const SLACK_BACK: Duration = Duration::from_millis(2);

/// The time between two lines: as much as passed by the clock that is never set, and that stops while the host sleeps.
/// If the clock on the wall was set meanwhile, this is so much after the first line, and so much before the second one.
#[derive(Debug)]
pub(crate) struct Between {
    then: SystemTime,
    reached: SystemTime,
    began: SystemTime,
    now: SystemTime,
}

impl Between {
    /// Of two lines, each with its times by both clocks.
    pub(crate) fn new(
        (then, was): (SystemTime, Duration),
        (now, is): (SystemTime, Duration),
    ) -> Self {
        let passed = is.saturating_sub(was);
        let reached = then.checked_add(passed).unwrap_or(then);
        let began = now.checked_sub(passed).unwrap_or(now);
        Self { then, reached, began, now }
    }

    /// Whether it was this time by the clock on the wall, before the second line.
    fn has(&self, at: SystemTime) -> bool {
        let Self { then, reached, began, now } = *self;
        let is_set = match now.duration_since(reached) {
            Ok(more) => more > SLACK,
            Err(less) => less.duration() > SLACK_BACK,
        };
        if is_set {
            then <= at && at <= reached || began <= at && at < now
        } else {
            then <= at && at < now
        }
    }

    /// The times around those that were not: the clock was set forward, or the host slept.
    pub(crate) fn gap(&self) -> Option<(SystemTime, SystemTime)> {
        let skipped = self.now.duration_since(self.reached).unwrap_or_default();
        (skipped > SLACK && self.reached < self.began).then_some((self.reached, self.began))
    }
}

/// Looks for what was known at a moment, while a recording is read.
#[derive(Debug)]
pub(crate) struct Search {
    at: At,
    /// The times of the first line and of the last one, also by the clock that is never set.
    first: Option<SystemTime>,
    last: Option<(SystemTime, Duration)>,
    found: Option<Box<Inventory>>,
    /// What may be otherwise than it was when that was found, or found again.
    touched: Part,
    /// Whether it was so, and otherwise too, as the clock was set back.
    is_twice: bool,
    /// What is around the moment, if nothing is known of it.
    gap: Option<(SystemTime, SystemTime)>,
}

impl Search {
    pub(crate) fn new(at: At) -> Self {
        let touched = Part::default();
        Self { at, first: None, last: None, found: None, touched, is_twice: false, gap: None }
    }

    /// A line, before which this was known; `None` if nothing was known between the line before and this one.
    pub(crate) fn see(&mut self, moment: &Moment, before: Option<&Inventory>) {
        self.look(moment, before);
        if self.found.is_some() && !self.is_twice {
            self.touched.add(moment.part());
        }
    }

    fn look(&mut self, moment: &Moment, before: Option<&Inventory>) {
        let now = (moment.time(), moment.monotonic());
        let last = self.last.replace(now);
        self.first.get_or_insert(now.0);
        let (At::Time(at), Some(last)) = (self.at, last) else { return };
        let between = Between::new(last, now);
        let gap = match before {
            Some(before) if between.has(at) => return self.take(before),
            Some(_) => between.gap(),
            None => Some((last.0, now.0)),
        };
        self.gap = self.gap.or(gap.filter(|(before, after)| *before < at && at < *after));
    }

    /// What was known at the last moment before nothing was known, or at the end. It is asked for if that is
    /// the moment itself.
    pub(crate) fn see_last(&mut self, before: Option<&Inventory>) {
        let is_it = match (self.at, self.last) {
            (At::Time(at), Some((last, _))) => at == last,
            _ => false,
        };
        if let (true, Some(before)) = (is_it, before) {
            self.take(before);
        }
    }

    fn take(&mut self, inventory: &Inventory) {
        let touched = take(&mut self.touched);
        match &self.found {
            Some(found) => self.is_twice |= touched.of(found) != touched.of(inventory),
            None => self.found = Some(Box::new(inventory.clone())),
        }
    }

    /// What was known, and when; or why that is not known. This is what is known at the end.
    pub(crate) fn end(self, known: Option<&Inventory>) -> Result<(Inventory, SystemTime), String> {
        let show = |time| format_time(time, 3);
        let (Some(first), Some((last, _))) = (self.first, self.last) else {
            return Err("nothing is recorded".to_owned());
        };
        let at = match (self.at, known) {
            (At::End, Some(known)) => return Ok((known.clone(), last)),
            (At::End, None) => {
                return Err("nothing is known at the end of the recording".to_owned());
            }
            (At::Time(at), _) => at,
        };
        if self.is_twice {
            return Err(format!(
                "it was {} more than once in this recording, not always with the same devices, ports and GIDs (the \
                 clock was set back, or recordings were joined); `uverbs history` shows them in their order",
                show(at)
            ));
        }
        match (self.found, self.gap) {
            (Some(found), _) => Ok((*found, at)),
            (None, Some((before, after))) => Err(format!(
                "nothing is known of {}: nothing was recorded between {} and {}",
                show(at),
                show(before),
                show(after)
            )),
            (None, None) if at < first => Err(format!(
                "nothing is known of {}: the recording begins at {}",
                show(at),
                show(first)
            )),
            (None, None) if at > last => Err(format!(
                "nothing is known of {}: the recording ends at {}; `--at end` is that",
                show(at),
                show(last)
            )),
            (None, None) => Err(format!("nothing is known of {}", show(at))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    /// A clock that is set back shows times twice, also if it is little. One that is adjusted does not.
    #[test]
    fn a_clock_that_is_set_back_by_little() {
        let ms = |own: u64| UNIX_EPOCH + Duration::from_millis(own);
        let has = |passed: u64, now: u64, at: u64| {
            let (was, is) = (Duration::ZERO, Duration::from_millis(passed));
            Between::new((ms(40_000), was), (ms(now), is)).has(ms(at))
        };
        assert!(has(300, 39_500, 40_000) && has(300, 39_500, 40_300) && has(300, 39_500, 39_300));
        assert!(!has(300, 39_500, 40_301) && !has(300, 39_500, 39_500));
        assert!(has(30_000, 69_000, 69_500) && !has(30_000, 69_998, 69_999));
        // A second is passed over.
        assert!(has(1000, 42_000, 41_500) && !has(1000, 43_000, 41_500));
    }

    #[test]
    fn times_of_day_and_times_ago() {
        // 2026-11-22T17:01:01Z.
        let now = at(1_795_366_861);
        let shown =
            |time: Option<SystemTime>| time.map(|own| format_time(own, 0)).unwrap_or_default();
        for (text, expected) in [
            ("17:01Z", "2026-11-22T17:01:00Z"),
            ("17:01:01Z", "2026-11-22T17:01:01Z"),
            ("17:01:02Z", "2026-11-21T17:01:02Z"),
            ("03:12Z", "2026-11-22T03:12:00Z"),
            ("18:01+01:00", "2026-11-22T17:01:00Z"),
            // There it is the next day already.
            ("00:30+09:00", "2026-11-22T15:30:00Z"),
            ("23:00-08:00", "2026-11-22T07:00:00Z"),
        ] {
            assert_eq!(shown(last(text, now)), expected, "{text}");
        }
        for (text, expected) in [
            ("1s", "2026-11-22T17:01:00Z"),
            ("10m", "2026-11-22T16:51:01Z"),
            ("2h", "2026-11-22T15:01:01Z"),
            ("1d", "2026-11-21T17:01:01Z"),
            ("m", ""),
            ("-1m", ""),
            ("+1m", ""),
            ("1.5h", ""),
            ("99999999d", ""),
            ("99999999999999999999d", ""),
            ("1é", ""),
        ] {
            assert_eq!(shown(ago(text, now)), expected, "{text}");
        }
        assert_eq!("end".parse(), Ok(At::End));
        let millisecond = "2026-11-22T17:01:01.000Z".parse::<At>();
        assert_eq!("2026-11-22T17:01:01.0009Z".parse(), millisecond);
        for text in ["03:12", "2026-11-22T03:12:00", "2026-11-22 03:12"] {
            assert!(text.parse::<At>().unwrap_err().contains("time zone"), "{text}");
        }
        for text in ["", "now", "yesterday", "2026-11-22", "12"] {
            assert!(text.parse::<At>().unwrap_err().contains("expected a time"), "{text}");
        }
    }
}
