//! Why a host has no devices, in a document.

use serde::{Deserialize, Serialize};

use crate::{device, form};

/// Serde names it in the message for what is no object.
#[derive(Serialize, Deserialize)]
pub(super) struct Absence {
    #[serde(deserialize_with = "form::plain")]
    reason: String,
    #[serde(
        default,
        deserialize_with = "form::device_name",
        skip_serializing_if = "Option::is_none"
    )]
    device: Option<String>,
    #[serde(default, deserialize_with = "form::plain", skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    #[serde(default, deserialize_with = "form::plain", skip_serializing_if = "Option::is_none")]
    folder: Option<String>,
}

impl From<device::Absence> for Absence {
    fn from(own: device::Absence) -> Self {
        let of = |reason: &str| Self {
            reason: reason.to_owned(),
            device: None,
            node: None,
            folder: None,
        };
        match own {
            device::Absence::NoModule => of("no_module"),
            device::Absence::NoDevice => of("no_device"),
            device::Absence::OtherNamespace { device, node } => {
                Self { device: Some(device), node: Some(node), ..of("other_namespace") }
            }
            device::Absence::NoNodes { folder } => {
                Self { folder: Some(folder.display().to_string()), ..of("no_nodes") }
            }
        }
    }
}

impl TryFrom<Absence> for device::Absence {
    type Error = &'static str;

    fn try_from(own: Absence) -> Result<Self, &'static str> {
        match own.reason.as_str() {
            "no_module" => Ok(Self::NoModule),
            "no_device" => Ok(Self::NoDevice),
            "other_namespace" => Ok(Self::OtherNamespace {
                device: own.device.ok_or("device: expected a text")?,
                node: own.node.ok_or("node: expected a text")?,
            }),
            "no_nodes" => {
                let folder = own.folder.ok_or("folder: expected a text")?.into();
                Ok(Self::NoNodes { folder })
            }
            _ => Err("reason: it is not known to this version"),
        }
    }
}
