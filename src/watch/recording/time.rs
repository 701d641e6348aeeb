//! Times of the clock on the wall as texts of RFC 3339.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

const DAY: u64 = 24 * 60 * 60;

/// A time in UTC with so many digits of a second, at most 9: `2026-11-22T03:12:00.250Z`. What is before 1970 is
/// shown as its first second.
#[must_use]
pub fn format_time(time: SystemTime, digits: usize) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = since.as_secs();
    // In years that begin in March a leap day is the last one. They repeat every 400 years.
    let days = seconds / DAY + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let (month, is_next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = year + era * 400 + is_next;
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let mut text = format!("{year:04}-{month:02}-{date:02}T{hour:02}:{minute:02}:{second:02}");
    if digits > 0 {
        let fraction = format!("{:09}", since.subsec_nanos());
        text.push('.');
        text.push_str(fraction.get(..digits).unwrap_or(&fraction));
    }
    text.push('Z');
    text
}

/// Reads a time of RFC 3339 from 1970 on, with `Z` or an offset. A blank may be in the place of the `T`. A second may have
/// nine more digits at most.
#[must_use]
pub fn parse_time(text: &str) -> Option<SystemTime> {
    let (date, rest) = (text.get(..10)?, text.get(10..)?);
    let clock = rest.strip_prefix(['T', 't', ' '])?;
    let mut parts = date.split('-');
    let (year, month, day) =
        (number(parts.next()?, 4)?, number(parts.next()?, 2)?, number(parts.next()?, 2)?);
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        2 => 28 + u64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if parts.next().is_some() || !(1..=last).contains(&day) || year < 1970 {
        return None;
    }
    let (shifted, is_early) = if month > 2 { (month - 3, 0) } else { (month + 9, 1) };
    let year = year - is_early;
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * shifted + 2) / 5 + day - 1;
    let midnight = Duration::from_secs((days - 719_468) * DAY);
    let (since, offset) = parse_clock(clock)?;
    let time = UNIX_EPOCH.checked_add(midnight)?.checked_add(since)?;
    let shift = Duration::from_secs(offset.unsigned_abs());
    let time = if offset < 0 { time.checked_add(shift) } else { time.checked_sub(shift) };
    time.filter(|time| *time >= UNIX_EPOCH)
}

/// Reads a time of day with `Z` or an offset, as `03:12Z` or `03:12:00.5+01:00`: the time since midnight there, and
/// by how many seconds that clock is before UTC.
#[must_use]
pub fn parse_clock(text: &str) -> Option<(Duration, i64)> {
    let (clock, offset) = if let Some(clock) = text.strip_suffix(['Z', 'z']) {
        (clock, 0)
    } else {
        let (clock, offset) = text.split_at_checked(text.len().checked_sub(6)?)?;
        let is_west = offset.starts_with('-');
        let (hours, minutes) = offset.strip_prefix(['+', '-'])?.split_once(':')?;
        let (hours, minutes) = (number(hours, 2)?, number(minutes, 2)?);
        if hours > 23 || minutes > 59 {
            return None;
        }
        let seconds = i64::try_from(hours * 3600 + minutes * 60).ok()?;
        (clock, if is_west { -seconds } else { seconds })
    };
    let (clock, fraction) = clock.split_once('.').map_or((clock, None), |(a, b)| (a, Some(b)));
    let mut parts = clock.split(':');
    let (hour, minute) = (number(parts.next()?, 2)?, number(parts.next()?, 2)?);
    let second = parts.next().map_or(Some(0), |own| number(own, 2))?;
    // A leap second is the first one of the next minute: the kernel's clock has none.
    if parts.next().is_some() || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let nanoseconds = match fraction {
        None => 0,
        Some(digits) if clock.len() == 8 && (1..=9).contains(&digits.len()) => {
            let factor = 10_u64.pow(9 - u32::try_from(digits.len()).ok()?);
            number(digits, digits.len())? * factor
        }
        Some(_) => return None,
    };
    let since = Duration::from_secs(hour * 3600 + minute * 60 + second);
    Some((since + Duration::from_nanos(nanoseconds), offset))
}

/// A number of so many digits.
fn number(text: &str, digits: usize) -> Option<u64> {
    let is_number = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seconds(text: &str) -> Option<u64> {
        let since = parse_time(text)?.duration_since(UNIX_EPOCH).ok()?;
        assert_eq!(since.subsec_nanos(), 0, "{text}");
        Some(since.as_secs())
    }

    #[test]
    fn known_times() {
        for (own, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_795_366_861, "2026-11-22T17:01:01Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
        ] {
            let time = UNIX_EPOCH + Duration::from_secs(own);
            assert_eq!((format_time(time, 0).as_str(), seconds(text)), (text, Some(own)));
        }
        let half = UNIX_EPOCH + Duration::from_millis(1_500);
        assert_eq!(format_time(half, 3), "1970-01-01T00:00:01.500Z");
        assert_eq!(format_time(half, 9), "1970-01-01T00:00:01.500000000Z");
    }

    #[test]
    fn other_forms_of_a_time() {
        let noon = seconds("2026-11-22T12:00:00Z");
        for text in [
            "2026-11-22 12:00Z",
            "2026-11-22t12:00:00z",
            "2026-11-22T13:00:00+01:00",
            "2026-11-22T06:30:00-05:30",
            "2026-11-22T12:00:00.000Z",
        ] {
            assert_eq!(seconds(text), noon, "{text}");
        }
        for text in [
            "",
            "2026-11-22",
            "2026-11-22T12:00:00",
            "2026-11-31T12:00:00Z",
            "2026-02-29T12:00:00Z",
            "2026-13-01T12:00:00Z",
            "2026-11-22T24:00:00Z",
            "2026-11-22T12:60:00Z",
            "2026-11-22T12Z",
            "2026-11-22T12:00.5Z",
            "2026-11-22T12:00:00.Z",
            "2026-11-22T12:00:00.0000000001Z",
            "2026-11-22T12:00:00+1:00",
            "2026-11-22T12:00:00+24:00",
            "1969-12-31T23:59:59Z",
            "1970-01-01T00:00:00+00:01",
            "+026-11-22T12:00:00Z",
            "2026-11-22T12:00:00é01:00",
            "２026-11-22T12:00:00Z",
        ] {
            assert_eq!(parse_time(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(since in 0..253_402_300_800_000_000_u64, digits in 0..9_usize) {
            let time = UNIX_EPOCH + Duration::from_micros(since);
            prop_assert_eq!(parse_time(&format_time(time, 9)), Some(time));
            let read = parse_time(&format_time(time, digits)).unwrap();
            prop_assert!(read <= time && time < read + Duration::from_secs(1));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,40}") {
            let _ = (parse_time(&text), parse_clock(&text));
        }
    }
}
