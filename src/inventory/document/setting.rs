//! Variables that are set, in a document.

use core::fmt;

use serde::de::{DeserializeSeed as _, Deserializer};
use serde::{Deserialize, Serialize};

use crate::form::{self, CheckedText};
use crate::inventory::Problem;
use crate::inventory::settings::{self, Setting, SettingsReading};

/// The longest value of a variable, which is as much as the kernel hands to a program.
const LONGEST_VALUE: usize = 128 << 10;

/// The errno of what is not known to this version.
const EOPNOTSUPP: i32 = 95;

#[derive(Serialize, Deserialize)]
#[serde(expecting = "an object")]
pub(super) struct SettingForm {
    #[serde(deserialize_with = "form::plain")]
    name: String,
    #[serde(deserialize_with = "value")]
    value: String,
    #[serde(default, deserialize_with = "form::plain")]
    file: Option<String>,
    since: Option<String>,
    before: Option<String>,
}

/// Any text that the environment can hold.
fn value<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    CheckedText(|value| value.len() <= LONGEST_VALUE && !value.contains('\0')).deserialize(from)
}

impl From<Setting> for SettingForm {
    fn from(own: Setting) -> Self {
        let after = SettingsReading::ALL.into_iter().find(|reading| reading > own.readings.end());
        Self {
            since: own.readings.start().since().map(str::to_owned),
            before: after.and_then(SettingsReading::since).map(str::to_owned),
            name: own.name,
            value: own.value,
            file: own.file,
        }
    }
}

/// Why a setting is not one of this version's.
pub(super) enum SettingFault {
    /// A newer version may have written it.
    Unknown(&'static str),
    /// No version writes it.
    Wrong(&'static str),
}

impl fmt::Display for SettingFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Unknown(what) | Self::Wrong(what)) = self;
        f.write_str(what)
    }
}

/// Of variables only those that choose GIDs are accepted.
impl TryFrom<SettingForm> for Setting {
    type Error = SettingFault;

    fn try_from(own: SettingForm) -> Result<Self, SettingFault> {
        use SettingFault::{Unknown, Wrong};
        if !settings::NAMES.contains(&own.name.as_str()) {
            return Err(Unknown(".name: not a variable that chooses GIDs"));
        }
        let place = |version: &str| {
            SettingsReading::ALL.into_iter().position(|reading| reading.since() == Some(version))
        };
        let first = own.since.map_or(Some(0), |own| place(&own));
        let end = own.before.map_or(Some(SettingsReading::ALL.len()), |own| place(&own));
        let first =
            first.ok_or(Unknown(".since: no release from which files are read in another way"))?;
        let end =
            end.ok_or(Unknown(".before: no release from which files are read in another way"))?;
        let seen = SettingsReading::ALL.get(first..end).unwrap_or_default();
        let (Some(first), Some(last)) = (seen.first(), seen.last()) else {
            return Err(Wrong(".before: no release before it"));
        };
        Ok(Self { name: own.name, value: own.value, file: own.file, readings: *first..=*last })
    }
}

/// Settings of a document.
#[derive(Default)]
pub(super) struct Known {
    pub(super) settings: Vec<Setting>,
    /// NCCL's that this version does not know, as a newer one wrote them. Without them all else can be read.
    pub(super) unread: Vec<Problem>,
    /// Those of other programs.
    pub(super) problems: Vec<Problem>,
}

/// Separates settings that this version knows from others.
pub(super) fn known(forms: Vec<SettingForm>) -> Result<Known, String> {
    let mut known = Known::default();
    for (place, form) in forms.into_iter().enumerate() {
        let name = form.name.clone();
        match Setting::try_from(form) {
            Ok(setting) => known.settings.push(setting),
            Err(SettingFault::Unknown(_)) => {
                let is_nccl_s = name.starts_with("NCCL_");
                let to = if is_nccl_s { &mut known.unread } else { &mut known.problems };
                to.push(Problem {
                    text: format!(
                        "host: the setting {name} is left out, as this version does not know it, or \
                         not for these releases"
                    ),
                    errno: EOPNOTSUPP,
                });
            }
            Err(SettingFault::Wrong(what)) => return Err(format!(".settings.{place}{what}")),
        }
    }
    Ok(known)
}
