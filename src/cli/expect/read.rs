//! The file, as it is read: named fields, values, ranges, networks, lists. What does not belong is refused with its
//! line and with what is allowed there.

use std::fmt;
use std::ops::Range;

use ipnet::IpNet;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use uverbs::check::expect::{Allowed, DevicePattern, Field, Form, HostPattern, Value};
use uverbs::choose::Network;
use uverbs::driver::DriverId;

/// What is wrong, and where.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    line: usize,
    what: String,
}

impl fmt::Display for Fault {
    /// `7: rate: …`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.line, self.what)
    }
}

/// What is wrong, with the bytes of the text that it is about.
type Wrong = (Range<usize>, String);

type Own<'t> = Spanned<DeValue<'t>>;

/// Reads a pattern.
pub(super) fn read(text: &str) -> Result<HostPattern, Fault> {
    let pattern = DeTable::parse(text)
        .map_err(|error| {
            // Of many lines the first says what is wrong.
            let what = error.message().lines().next().unwrap_or_default();
            (error.span().unwrap_or_default(), format!("this is no TOML: {what}"))
        })
        .and_then(|table| read_host(table.get_ref()));
    pattern.map_err(|(span, what)| {
        let before = text.get(..span.start).unwrap_or_default();
        Fault { line: 1 + before.matches('\n').count(), what }
    })
}

fn read_host(table: &DeTable<'_>) -> Result<HostPattern, Wrong> {
    const KEYS: &str = "only_these_devices, [[devices]]";
    let mut pattern = HostPattern::default();
    for (key, own) in table {
        match key.get_ref().as_ref() {
            "only_these_devices" => {
                let DeValue::Boolean(is_so) = own.get_ref() else {
                    return Err(wrong(key.get_ref(), own, "true or false"));
                };
                pattern.only_these_devices = *is_so;
            }
            "devices" => {
                let allowed = "groups of devices, each of which begins with a line [[devices]]";
                let groups = match own.get_ref() {
                    DeValue::Array(groups) if !groups.is_empty() => groups,
                    _ => return Err(wrong(key.get_ref(), own, allowed)),
                };
                for group in groups {
                    let DeValue::Table(table) = group.get_ref() else {
                        return Err(wrong(key.get_ref(), group, allowed));
                    };
                    pattern.devices.push(read_group(table, group.span())?);
                }
            }
            other => return Err(unknown(other, key.span(), KEYS)),
        }
    }
    if pattern.devices.is_empty() && !pattern.only_these_devices {
        return Err((0..0, format!("nothing is expected; allowed are {KEYS}")));
    }
    Ok(pattern)
}

fn read_group(table: &DeTable<'_>, span: Range<usize>) -> Result<DevicePattern, Wrong> {
    let mut group = DevicePattern::default();
    if table.is_empty() {
        return Err((span, format!("an empty group; allowed are {}", keys())));
    }
    for (key, own) in table {
        let name = key.get_ref().as_ref();
        match name {
            "driver" => group.drivers = each(name, own, "the name of a driver", read_driver)?,
            "board" => group.boards = each(name, own, "the name of a board", read_text)?,
            "name" => group.names = each(name, own, "the name of a device", read_text)?,
            "count" => group.count = Some(read_allowed(name, own, Form::Number, None)?),
            other => {
                let mut all = Field::ALL.into_iter();
                let Some(field) = all.find(|field| field.name() == other) else {
                    return Err(unknown(other, key.span(), &keys()));
                };
                let allowed = read_allowed(name, own, field.form(), Some(field))?;
                group.fields.insert(field, allowed);
            }
        }
    }
    Ok(group)
}

/// The keys of a group.
fn keys() -> String {
    let fields = Field::ALL.into_iter().map(Field::name);
    ["driver", "board", "name", "count"].into_iter().chain(fields).collect::<Vec<_>>().join(", ")
}

fn unknown(key: &str, span: Range<usize>, allowed: &str) -> Wrong {
    (span, format!("{key}: no such key; allowed are {allowed}"))
}

fn wrong(key: &str, own: &Own<'_>, allowed: &str) -> Wrong {
    let what = match own.get_ref() {
        DeValue::Array(all) if all.is_empty() => "an empty list".to_owned(),
        DeValue::Table(all) if all.is_empty() => "an empty range".to_owned(),
        DeValue::String(text) if text.is_empty() => "an empty text".to_owned(),
        DeValue::String(text) if is_long(text) => {
            format!("a text of more than {LONGEST_TEXT} characters")
        }
        DeValue::String(text) => format!("{text:?}"),
        DeValue::Integer(number) if number.radix() == 10 => number.as_str().to_owned(),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(own) => own.to_string(),
        DeValue::Table(_) => "a table".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        other => format!("this {}", other.type_str()),
    };
    (own.span(), format!("{key}: {what} is not allowed, but {allowed}"))
}

/// Reads a value or a list of values, which is not empty.
fn each<T>(
    key: &str,
    own: &Own<'_>,
    allowed: &str,
    read: impl Fn(&DeValue<'_>) -> Option<T>,
) -> Result<Vec<T>, Wrong> {
    let listed = format!("{allowed}, or a list of such");
    let one = |own: &Own<'_>| read(own.get_ref()).ok_or_else(|| wrong(key, own, &listed));
    match own.get_ref() {
        DeValue::Array(all) if !all.is_empty() => all.iter().map(one).collect(),
        _ => Ok(vec![one(own)?]),
    }
}

/// The longest text, in characters, as in a snapshot. Each finding has it.
const LONGEST_TEXT: usize = 4096;

fn is_long(text: &str) -> bool {
    text.chars().nth(LONGEST_TEXT).is_some()
}

fn read_text(own: &DeValue<'_>) -> Option<String> {
    own.as_str().filter(|text| !text.is_empty() && !is_long(text)).map(str::to_owned)
}

/// Reads the name of a driver; of one without a name, `unknown(N)`.
fn read_driver(own: &DeValue<'_>) -> Option<String> {
    /// The kernel's numbers of drivers are below this one for long.
    const MOST: u32 = 256;
    let is_known = |text: &String| {
        is_number(text) || (0..MOST).any(|own| DriverId(own).name() == Some(text.as_str()))
    };
    read_text(own).filter(is_known)
}

/// Whether a text is that of a number without a name, as `unknown(7)`.
fn is_number(text: &str) -> bool {
    let number = text.strip_prefix("unknown(").and_then(|rest| rest.strip_suffix(')'));
    number.is_some_and(|own| own.parse::<u32>().is_ok())
}

/// Reads what is allowed: a value, a list, or a range of numbers.
fn read_allowed(
    key: &str,
    own: &Own<'_>,
    form: Form,
    field: Option<Field>,
) -> Result<Allowed, Wrong> {
    let (what, has_range) = what(form, field);
    let is_range = has_range && matches!(own.get_ref(), DeValue::Table(_));
    if is_range {
        return read_range(key, own, form);
    }
    let all = if has_range { format!("{what}, {{ min = N, max = N }}") } else { what };
    each(key, own, &all, |own| read_value(own, form, field)).map(Allowed::OneOf)
}

/// The values that a field has, and whether there are ranges of them.
fn what(form: Form, field: Option<Field>) -> (String, bool) {
    match form {
        Form::Tenths => ("a number with at most one decimal".to_owned(), true),
        Form::Index => ("a whole number, \"none\"".to_owned(), true),
        Form::Networks if field == Some(Field::RoceV2Ipv6) => {
            ("a network as \"2001:db8::/64\"".to_owned(), false)
        }
        Form::Networks => ("a network as \"10.0.0.0/16\"".to_owned(), false),
        Form::PKeys => ("a P_Key as 0xffff".to_owned(), false),
        Form::Word => {
            let words = field.and_then(Field::words);
            let words = words.map(|all| format!("one of {}", all.join(", ")));
            (words.unwrap_or_else(|| "a text".to_owned()), false)
        }
        _ => ("a whole number".to_owned(), true),
    }
}

fn read_range(key: &str, own: &Own<'_>, form: Form) -> Result<Allowed, Wrong> {
    const ENDS: &str = "min, max or both";
    let DeValue::Table(table) = own.get_ref() else { return Err(wrong(key, own, ENDS)) };
    let (mut min, mut max) = (None, None);
    for (name, end) in table {
        let place = match name.get_ref().as_ref() {
            "min" => &mut min,
            "max" => &mut max,
            other => return Err(unknown(&format!("{key}.{other}"), name.span(), ENDS)),
        };
        *place = read_number(end.get_ref(), form);
        if place.is_none() {
            let number = if form == Form::Tenths { form } else { Form::Number };
            return Err(wrong(&format!("{key}.{}", name.get_ref()), end, &what(number, None).0));
        }
    }
    match (min, max) {
        (None, None) => Err(wrong(key, own, ENDS)),
        (Some(least), Some(most)) if least > most => {
            Err((own.span(), format!("{key}: min is greater than max, so that nothing is allowed")))
        }
        _ => Ok(Allowed::Within { min, max }),
    }
}

fn read_value(own: &DeValue<'_>, form: Form, field: Option<Field>) -> Option<Value> {
    match form {
        Form::Word => {
            let words = field.and_then(Field::words);
            let is_known = |text: &String| {
                words.as_ref().is_none_or(|all| all.contains(&text.as_str()) || is_number(text))
            };
            read_text(own).filter(is_known).map(Value::Word)
        }
        Form::Networks => {
            let network: IpNet = own.as_str()?.parse().ok()?;
            let is_v4 = field != Some(Field::RoceV2Ipv6);
            let is_own = network.addr().is_ipv4() == is_v4;
            let (address, bits) = (network.network(), network.prefix_len());
            is_own.then_some(Value::Network(Network { address, bits }))
        }
        Form::PKeys => {
            read_number(own, form).filter(|own| *own <= u16::MAX.into()).map(Value::Number)
        }
        Form::Index if own.as_str() == Some(Value::NO_INDEX) => Some(Value::word(Value::NO_INDEX)),
        _ => read_number(own, form).map(Value::Number),
    }
}

fn read_number(own: &DeValue<'_>, form: Form) -> Option<u64> {
    let whole = || {
        let own = own.as_integer()?;
        u64::from_str_radix(own.as_str(), own.radix()).ok()
    };
    match form {
        Form::Tenths => match own {
            DeValue::Float(own) => tenths(own.as_str()),
            _ => whole()?.checked_mul(10),
        },
        _ => whole(),
    }
}

/// A number with one decimal, in tenths: 25 of `2.5`. More decimals are zeros.
fn tenths(text: &str) -> Option<u64> {
    let (whole, rest) = text.split_once('.')?;
    let (first, more) = rest.split_at_checked(1)?;
    let is_plain = more.bytes().all(|byte| byte == b'0');
    let whole: u64 = whole.parse().ok().filter(|_| is_plain)?;
    whole.checked_mul(10)?.checked_add(first.parse().ok()?)
}
