//! What of a host is not as a pattern has it.

use super::field::{Allowed, Field, Form, Value};
use super::seen::{Scene, Seen};
use super::{DevicePattern, HostPattern};
use crate::check::finding::{Finding, Severity};
use crate::choose::plan::Program;
use crate::device::Device;
use crate::hardware::Hardware;
use crate::inventory::{DeviceRecord, Inventory, PortRecord};

/// What of a host is not as a pattern has it: first how many devices there are, then by device and port.
///
/// Devices of the inventory that were not wanted are not compared, nor is a number of devices that they may be among.
#[must_use]
pub fn compare(inventory: &Inventory, pattern: &HostPattern) -> Vec<Finding> {
    if *pattern == HostPattern::default() {
        return Vec::new();
    }
    let scene = Scene::of(inventory);
    let groups: Vec<Grouped<'_>> =
        inventory.devices.iter().map(|record| group_of(pattern, record)).collect();
    let mut list = Vec::new();
    let unknown = groups.iter().filter(|own| matches!(own, Grouped::Unknown(_))).count();
    for (place, own) in pattern.devices.iter().enumerate() {
        let is_own = |of: &&Grouped<'_>| matches!(of, Grouped::Of(at, _) if *at == place);
        let count = groups.iter().filter(is_own).count();
        list.extend(compare_count(inventory, own, count, unknown));
    }
    if pattern.only_these_devices && !is_list_known(inventory) {
        list.push(unread_list("which devices there are"));
    }
    for (record, group) in inventory.devices.iter().zip(groups) {
        let device = record.device.name.as_str();
        match group {
            Grouped::Of(_, own) => compare_device(&scene, record, own, &mut list),
            Grouped::Unknown(what) => {
                list.push(unread(Some(device), None, &format!("{what}, and so what is expected")));
            }
            Grouped::None if pattern.only_these_devices => list.push(Finding {
                device: Some(device.to_owned()),
                ..finding(
                    "expect-devices",
                    format!("a device that no group has: {}", kind(record)),
                    Some("only devices of the groups".to_owned()),
                    "is it another card, or in the place of one? describe it, or set only_these_devices = false",
                )
            }),
            Grouped::None => {}
        }
    }
    list
}

/// The group of a device.
enum Grouped<'p> {
    Of(usize, &'p DevicePattern),
    None,
    /// It is not known, as this is not.
    Unknown(&'static str),
}

fn group_of<'p>(pattern: &'p HostPattern, record: &DeviceRecord) -> Grouped<'p> {
    for (place, own) in pattern.devices.iter().enumerate() {
        match own.selects(record) {
            Ok(true) => return Grouped::Of(place, own),
            Ok(false) => {}
            Err(what) => return Grouped::Unknown(what),
        }
    }
    Grouped::None
}

impl DevicePattern {
    /// Whether a device is of the group; what is not known of it, if that is not known.
    fn selects(&self, record: &DeviceRecord) -> Result<bool, &'static str> {
        let device = &record.device;
        let has = |list: &[String], own: &str| list.is_empty() || list.iter().any(|one| one == own);
        if !has(&self.names, &device.name) {
            return Ok(false);
        }
        if let (Some(driver), false) = (device.driver, self.drivers.is_empty()) {
            if !has(&self.drivers, &driver.to_string()) {
                return Ok(false);
            }
        }
        let hardware = with_board(record);
        if let (Some(own), false) = (hardware, self.boards.is_empty()) {
            if !own.board_id.as_ref().is_some_and(|own| has(&self.boards, own)) {
                return Ok(false);
            }
        }
        if device.driver.is_none() && !self.drivers.is_empty() {
            return Err("driver");
        }
        if hardware.is_none() && !self.boards.is_empty() {
            return Err("board");
        }
        Ok(true)
    }
}

/// The hardware of a device of which it is known whether it has a board, and which.
pub(super) fn with_board(record: &DeviceRecord) -> Option<&Hardware> {
    record.hardware.as_ref().filter(|own| !own.board_is_unread)
}

/// Driver and board of a device, as far as they are known.
fn kind(record: &DeviceRecord) -> String {
    let driver = record.device.driver.map(|own| format!("driver {own}"));
    let board = with_board(record).and_then(|own| own.board_id.as_ref());
    let both = [driver, board.map(|own| format!("board {own}"))];
    let known: Vec<String> = both.into_iter().flatten().collect();
    if known.is_empty() { record.device.name.clone() } else { known.join(", ") }
}

pub(super) fn to_u64(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// Whether it is known which devices there are.
pub(super) fn is_list_known(inventory: &Inventory) -> bool {
    inventory.problems.is_empty() && inventory.unlisted.is_empty()
}

/// Compares how many devices a group has. Of so many more it is not known; these have findings of their own.
fn compare_count(
    inventory: &Inventory,
    own: &DevicePattern,
    count: usize,
    unknown: usize,
) -> Option<Finding> {
    let allowed = own.count.as_ref()?;
    let number = to_u64(count);
    if (1..=unknown).any(|more| allowed.has_number(number.saturating_add(to_u64(more)))) {
        return None;
    }
    let is_known = is_list_known(inventory);
    if allowed.has_number(number) && is_known {
        return None;
    }
    // Those that were not listed or not wanted may be of the group too. They are never fewer.
    if !is_known && (allowed.has_number(number) || allowed.allows_more(number)) {
        return Some(unread_list(&format!("how many devices there are of {own}")));
    }
    if inventory.is_partial() && allowed.allows_more(number) {
        return None;
    }
    let is_there = |name: &&String| inventory.devices.iter().all(|own| own.device.name != **name);
    let missing: Vec<&str> = own.names.iter().filter(is_there).map(String::as_str).collect();
    let missing = if missing.is_empty() || !allowed.allows_more(number) {
        String::new()
    } else {
        format!(", without {}", missing.join(", "))
    };
    let plural = if count == 1 { "" } else { "s" };
    Some(finding(
        "expect-devices",
        format!("{count} device{plural} of {own}{missing}"),
        Some(allowed.text(&ToString::to_string, &ToString::to_string)),
        "does lspci show the card, and is its driver loaded? the kernel's log may say more",
    ))
}

fn compare_device(
    scene: &Scene<'_>,
    record: &DeviceRecord,
    own: &DevicePattern,
    list: &mut Vec<Finding>,
) {
    let none = PortRecord::new(0);
    compare_place(scene, (record, None, &none), own, list);
    for port in &record.ports {
        compare_place(scene, (record, Some(port.number), port), own, list);
    }
    // Without a port there is none to name.
    if record.ports.is_empty() && may_have_port(&record.device) {
        let fields = own.fields.keys().filter(|field| !field.is_of_device());
        let missed: Vec<&str> = fields.map(|field| field.label()).collect();
        if !missed.is_empty() {
            list.push(unread(Some(&record.device.name), None, &missed.join(", ")));
        }
    }
}

fn may_have_port(device: &Device) -> bool {
    !device.ports().is_empty()
}

/// Compares the fields of a device, or those of a port.
fn compare_place(
    scene: &Scene<'_>,
    (record, number, port): (&DeviceRecord, Option<u32>, &PortRecord),
    own: &DevicePattern,
    list: &mut Vec<Finding>,
) {
    let device = record.device.name.as_str();
    let (mut wrong, mut missed): (Vec<Field>, Vec<&str>) = (Vec::new(), Vec::new());
    let fields = own.fields.iter().filter(|(field, _)| field.is_of_device() == number.is_none());
    for (field, allowed) in fields {
        if wrong.iter().any(|other| field.follows(*other)) {
            continue;
        }
        let seen = scene.see(*field, record, port);
        if fits(*field, allowed, &seen) {
            continue;
        }
        if !seen.is_whole {
            missed.push(field.label());
            continue;
        }
        wrong.push(*field);
        let wanted = Some(field.wanted(allowed));
        list.push(Finding {
            device: Some(device.to_owned()),
            port: number,
            program: match field {
                Field::NcclIndex => Some(Program::Nccl),
                Field::UcxIndex => Some(Program::Ucx),
                _ => None,
            },
            ..finding(field.finding(), told(*field, &seen), wanted, field.advice())
        });
    }
    if !missed.is_empty() {
        list.push(unread(Some(device), number, &missed.join(", ")));
    }
}

/// Whether what was seen is allowed.
fn fits(field: Field, allowed: &Allowed, seen: &Seen) -> bool {
    let values = &seen.values;
    match (field.form(), allowed) {
        (Form::PKeys, Allowed::OneOf(all)) => all.iter().all(|own| values.contains(own)),
        (Form::Networks, Allowed::OneOf(all)) => values.iter().any(|own| {
            let Value::Network(own) = own else { return false };
            let is_in = |one: &Value| matches!(one, Value::Network(one) if one.has(own.address));
            all.iter().any(is_in)
        }),
        (_, Allowed::OneOf(all)) => values.iter().any(|own| all.contains(own)),
        (_, Allowed::Within { .. }) => {
            values.iter().any(|own| matches!(own, Value::Number(own) if allowed.has_number(*own)))
        }
    }
}

/// What was seen, in words.
fn told(field: Field, seen: &Seen) -> String {
    /// How many addresses or keys are named.
    const SHOWN: usize = 4;
    let text = |own: &Value| match own {
        Value::Network(own) => own.address.to_string(),
        own => field.text(own),
    };
    let label = field.label();
    if seen.values.is_empty() {
        return format!("{label}: none");
    }
    let shown: Vec<String> = seen.values.iter().take(SHOWN).map(text).collect();
    let more = match seen.values.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{label}: {}{more}{}", shown.join(", "), field.unit())
}

fn finding(name: &'static str, seen: String, wanted: Option<String>, advice: &str) -> Finding {
    Finding {
        name,
        severity: Severity::Problem,
        device: None,
        port: None,
        program: None,
        seen,
        wanted,
        advice: advice.to_owned(),
    }
}

/// That it is not known whether something is as expected.
fn unread(device: Option<&str>, port: Option<u32>, what: &str) -> Finding {
    let advice = "read it on the host itself, or leave it out of what is expected";
    Finding {
        device: device.map(str::to_owned),
        port,
        ..finding("expect-unread", format!("not known: {what}"), None, advice)
    }
}

fn unread_list(what: &str) -> Finding {
    let advice = "not all devices could be listed: another finding says why";
    finding("expect-unread", format!("not known: {what}"), None, advice)
}
