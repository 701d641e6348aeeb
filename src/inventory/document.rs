//! The serde form of an [`Inventory`]: the keys of a snapshot in their order, and all checks of what is
//! read. `tests/schemas/snapshot.json` describes the document.
//!
//! The structures here have the document's shape. They are made from the records, and records are made
//! from them, with a check where a document can hold what no host has.

mod absence;
mod answer;
mod device;
mod problem;
mod setting;

use std::collections::BTreeSet;

use serde::de::{DeserializeSeed as _, Deserializer, Error as _};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use super::{
    Answer, DeviceRecord, GidRow, Inventory, LockedMemory, NAMELESS, PortRecord, Problem, Setting,
};
use crate::device::Device;
use crate::form::{self, List, Optional};
use crate::netdev::Interface;
use absence::Absence;
use answer::{Done, Told};
use device::{DeviceForm, OtherForm, PortForm, RowForm};
use problem::ProblemForm;
use setting::SettingForm;

/// The form that this version writes and reads. It grows by keys; this number changes if a key's meaning
/// does.
pub(super) const FORM: u32 = 1;

/// A type is written as a structure of this module, and read as one.
macro_rules! forms {
    ($($type:ident as $form:ident;)+) => {
        $(impl Serialize for $type {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                $form::from(self.clone()).serialize(to)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                form::object::<D, $form, Self>(from)
            }
        })+
    };
}

forms! {
    Inventory as Document;
    DeviceRecord as DeviceForm;
    PortRecord as PortForm;
    LockedMemory as LockedMemoryForm;
    GidRow as RowForm;
    Setting as SettingForm;
    Problem as ProblemForm;
}

#[derive(Serialize, Deserialize)]
struct Document {
    schema_version: SchemaVersion,
    #[serde(default, deserialize_with = "form::plain")]
    host: Option<String>,
    #[serde(default, deserialize_with = "form::plain")]
    kernel: Option<String>,
    #[serde(deserialize_with = "form::plain")]
    modules: Vec<String>,
    /// Older snapshots have neither this nor the next key.
    #[serde(default, deserialize_with = "form::plain")]
    proprietary: Option<Vec<String>>,
    locked_memory: Option<LockedMemory>,
    /// Older snapshots have neither this nor the next key.
    #[serde(default)]
    rdma_cm_access: Option<Told<Done>>,
    #[serde(default)]
    umad_access: Option<Told<Done>>,
    shares_namespaces: Option<bool>,
    has_netlink: bool,
    #[serde(deserialize_with = "devices")]
    devices: Vec<DeviceRecord>,
    /// Only what was read on request has some, and older snapshots do not say it.
    #[serde(default, deserialize_with = "form::list", skip_serializing_if = "Vec::is_empty")]
    others: Vec<OtherForm>,
    #[serde(deserialize_with = "form::list")]
    absences: Vec<Absence>,
    #[serde(default, deserialize_with = "interfaces")]
    interfaces: Option<Vec<Interface>>,
    /// Only hosts with soft RoCE have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    has_roce_socket: Option<bool>,
    #[serde(deserialize_with = "form::list")]
    settings: Vec<SettingForm>,
    #[serde(default, deserialize_with = "form::list", skip_serializing_if = "Vec::is_empty")]
    unread_settings: Vec<Problem>,
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    home_is_assumed: bool,
    #[serde(deserialize_with = "form::list")]
    problems: Vec<Problem>,
    #[serde(default, deserialize_with = "list_failure")]
    list_failure: ListFailure,
    #[serde(default, deserialize_with = "form::list")]
    unlisted: Vec<Unlisted>,
    without_netlink: Option<Problem>,
}

/// How much memory may be locked.
#[derive(Serialize, Deserialize)]
struct LockedMemoryForm {
    limit: Option<u64>,
    is_exempt: bool,
}

impl From<LockedMemory> for LockedMemoryForm {
    fn from(LockedMemory { limit, is_exempt }: LockedMemory) -> Self {
        Self { limit, is_exempt }
    }
}

impl From<LockedMemoryForm> for LockedMemory {
    fn from(LockedMemoryForm { limit, is_exempt }: LockedMemoryForm) -> Self {
        Self { limit, is_exempt }
    }
}

/// Whether it is known which devices there are.
#[derive(Default, Serialize)]
#[serde(untagged)]
enum ListFailure {
    /// An older snapshot does not say it.
    #[default]
    Unsaid,
    None,
    Some(Problem),
}

fn list_failure<'de, D: Deserializer<'de>>(from: D) -> Result<ListFailure, D::Error> {
    Ok(Option::deserialize(from)?.map_or(ListFailure::None, ListFailure::Some))
}

/// A device that could not be listed.
#[derive(Serialize, Deserialize)]
struct Unlisted {
    #[serde(deserialize_with = "form::plain")]
    device: String,
    problem: Problem,
}

/// The number of the form.
struct SchemaVersion;

impl Serialize for SchemaVersion {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u32(FORM)
    }
}

impl<'de> Deserialize<'de> for SchemaVersion {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match u32::deserialize(from)? {
            FORM => Ok(Self),
            other => Err(D::Error::custom(other_form(other))),
        }
    }
}

/// Says that a document is of another form.
pub(super) fn other_form(number: u32) -> String {
    format!("a snapshot of form {number}; this program reads form {FORM}")
}

fn devices<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<DeviceRecord>, D::Error> {
    let check = |list: &[DeviceRecord]| {
        let mut names = BTreeSet::new();
        let mut all = list.iter().map(|record| record.device.name.as_str());
        all.all(|name| names.insert(name)).then_some(()).ok_or("two devices with one name")
    };
    List { check, ..List::default() }.deserialize(from)
}

fn interfaces<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<Interface>>, D::Error> {
    let check = |list: &[Interface]| {
        let is_sorted = list.is_sorted_by(|one, other| one.index < other.index);
        is_sorted.then_some(()).ok_or("not in order of index")
    };
    Optional(List { check, ..List::default() }).deserialize(from)
}

impl From<Inventory> for Document {
    fn from(own: Inventory) -> Self {
        let Inventory {
            host,
            kernel,
            modules,
            proprietary,
            locked_memory,
            rdma_cm_access,
            umad_access,
            shares_namespaces,
            has_netlink,
            devices,
            others,
            absences,
            interfaces,
            has_roce_socket,
            settings,
            unread_settings,
            home_is_assumed,
            problems,
            list_failure,
            unlisted,
            without_netlink,
        } = own;
        let told = |own: Option<Answer<()>>| own.map(|own| Told(own.map(|()| Done)));
        let unlisted = unlisted.into_iter();
        Self {
            schema_version: SchemaVersion,
            host,
            kernel,
            modules,
            proprietary,
            locked_memory,
            rdma_cm_access: told(rdma_cm_access),
            umad_access: told(umad_access),
            shares_namespaces,
            has_netlink,
            devices,
            others: others.into_iter().map(OtherForm::from).collect(),
            absences: absences.into_iter().map(Absence::from).collect(),
            interfaces,
            has_roce_socket,
            settings: settings.into_iter().map(SettingForm::from).collect(),
            unread_settings,
            home_is_assumed,
            problems,
            list_failure: list_failure.map_or(ListFailure::None, ListFailure::Some),
            unlisted: unlisted.map(|(device, problem)| Unlisted { device, problem }).collect(),
            without_netlink,
        }
    }
}

impl TryFrom<Document> for Inventory {
    type Error = String;

    fn try_from(own: Document) -> Result<Self, String> {
        let absences = own.absences.into_iter().enumerate().map(|(place, absence)| {
            let absence = crate::device::Absence::try_from(absence);
            absence.map_err(|what| format!(".absences.{place}.{what}"))
        });
        let known = setting::known(own.settings)?;
        let mut inventory = Self {
            host: own.host,
            // Older versions wrote this where it could not be read.
            kernel: own.kernel.filter(|own| own != NAMELESS),
            modules: own.modules,
            proprietary: own.proprietary,
            locked_memory: own.locked_memory,
            rdma_cm_access: own.rdma_cm_access.map(|Told(own)| own.map(|Done| ())),
            umad_access: own.umad_access.map(|Told(own)| own.map(|Done| ())),
            shares_namespaces: own.shares_namespaces,
            has_netlink: own.has_netlink,
            devices: own.devices,
            others: own.others.into_iter().map(Device::from).collect(),
            absences: absences.collect::<Result<_, String>>()?,
            interfaces: own.interfaces,
            has_roce_socket: own.has_roce_socket,
            settings: known.settings,
            unread_settings: own.unread_settings,
            home_is_assumed: own.home_is_assumed,
            problems: own.problems,
            list_failure: None,
            unlisted: own.unlisted.into_iter().map(|own| (own.device, own.problem)).collect(),
            without_netlink: own.without_netlink,
        };
        inventory.unread_settings.extend(known.unread);
        inventory.problems.extend(known.problems);
        doubt_absence(&mut inventory);
        inventory.list_failure = match own.list_failure {
            ListFailure::Unsaid => {
                let is_empty = inventory.devices.is_empty() && inventory.others.is_empty();
                inventory.problems.first().filter(|_| is_empty).cloned()
            }
            ListFailure::None => None,
            ListFailure::Some(own) if inventory.problems.contains(&own) => Some(own),
            ListFailure::Some(_) => return Err(".list_failure: not among the problems".to_owned()),
        };
        Ok(inventory)
    }
}

/// Older versions wrote that no module is loaded also where RDMA netlink was refused, and only sysfs was
/// hidden. That netlink has no such protocol is what says it.
fn doubt_absence(inventory: &mut Inventory) {
    const EPROTONOSUPPORT: i32 = 93;
    let is_refused = |problem: &&Problem| problem.errno != EPROTONOSUPPORT;
    let Some(refusal) = inventory.without_netlink.as_ref().filter(is_refused) else { return };
    let before = inventory.absences.len();
    inventory.absences.retain(|reason| *reason != crate::device::Absence::NoModule);
    if inventory.absences.len() < before && inventory.is_empty() {
        inventory.problems.push(refusal.clone());
    }
}
