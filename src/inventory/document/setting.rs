//! Variables that are set, in a document.

use serde::de::{DeserializeSeed as _, Deserializer};
use serde::{Deserialize, Serialize};

use crate::form::{self, Text};
use crate::inventory::settings::{self, Reading, Setting};

/// The longest value of a variable, which is as much as the kernel hands to a program.
const LONGEST_VALUE: usize = 128 << 10;

#[derive(Serialize, Deserialize)]
pub(super) struct SettingForm {
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
    Text(|value| value.len() <= LONGEST_VALUE && !value.contains('\0')).deserialize(from)
}

impl From<Setting> for SettingForm {
    fn from(own: Setting) -> Self {
        let after = Reading::ALL.into_iter().find(|reading| reading > own.readings.end());
        Self {
            since: own.readings.start().since().map(str::to_owned),
            before: after.and_then(Reading::since).map(str::to_owned),
            name: own.name,
            value: own.value,
            file: own.file,
        }
    }
}

/// Of variables only those that choose GIDs are accepted.
impl TryFrom<SettingForm> for Setting {
    type Error = &'static str;

    fn try_from(own: SettingForm) -> Result<Self, &'static str> {
        if !settings::NAMES.contains(&own.name.as_str()) {
            return Err(".name: not a variable that chooses GIDs");
        }
        let place = |version: &str| {
            Reading::ALL.into_iter().position(|reading| reading.since() == Some(version))
        };
        let first = own.since.map_or(Some(0), |own| place(&own));
        let end = own.before.map_or(Some(Reading::ALL.len()), |own| place(&own));
        let first = first.ok_or(".since: no release from which files are read in another way")?;
        let end = end.ok_or(".before: no release from which files are read in another way")?;
        let seen = Reading::ALL.get(first..end).unwrap_or_default();
        let (Some(first), Some(last)) = (seen.first(), seen.last()) else {
            return Err(".before: no release before it");
        };
        Ok(Self { name: own.name, value: own.value, file: own.file, readings: *first..=*last })
    }
}
