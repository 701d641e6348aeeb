//! The serde forms of choices, for programs that show them.

use serde::ser::{Serialize, SerializeMap as _, SerializeStruct as _, Serializer};

use super::plan::{Plan, Program, Way};
use super::{Caveat, Decision, Family, Network, Outcome, Reason, Why};

/// Values whose form is the text that they print as.
macro_rules! texts {
    ($($type:ident),+) => {
        $(impl Serialize for $type {
            /// As the text that it prints as.
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        })+
    };
}

texts! { Caveat, Family, Network, Outcome, Program, Reason, Why }

impl Serialize for Decision {
    /// As `{"index": 3, "outcome": "3", "rows": [[0, "not looked at"], …], "better_unknown": null}`. `index`
    /// is null if no row is used.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut object = to.serialize_struct("Decision", 4)?;
        object.serialize_field("index", &self.outcome.index())?;
        object.serialize_field("outcome", &self.outcome)?;
        object.serialize_field("rows", &self.rows)?;
        object.serialize_field("better_unknown", &self.better_unknown)?;
        object.end()
    }
}

impl Serialize for Way {
    /// As `index`, `automatic` or `addresses`.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(match self {
            Self::Index(_) => "index",
            Self::Automatic => "automatic",
            Self::Addresses => "addresses",
        })
    }
}

impl Serialize for Plan {
    /// As `{"way": "index", "variables": {"NCCL_IB_GID_INDEX": "3"}, "is_sure": true}`.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        struct Variables<'p>(&'p [(&'static str, String)]);

        impl Serialize for Variables<'_> {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                let mut object = to.serialize_map(Some(self.0.len()))?;
                for (name, value) in self.0 {
                    object.serialize_entry(name, value)?;
                }
                object.end()
            }
        }

        let mut object = to.serialize_struct("Plan", 3)?;
        object.serialize_field("way", &self.way)?;
        object.serialize_field("variables", &Variables(&self.variables))?;
        object.serialize_field("is_sure", &self.is_sure)?;
        object.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{Expected, check};
    use crate::inventory::Inventory;

    #[test]
    fn choices_and_findings_as_json() {
        let decision = Decision {
            outcome: Outcome::Taken(3),
            rows: vec![(3, Reason::Recommended)],
            better_unknown: Some(5),
        };
        assert_eq!(
            serde_json::to_string(&decision).unwrap(),
            r#"{"index":3,"outcome":"3","rows":[[3,"recommended"]],"better_unknown":5}"#
        );
        let variables = vec![("NCCL_IB_GID_INDEX", "3".to_owned())];
        let plan = Plan { way: Way::Index(3), variables, is_sure: true };
        assert_eq!(
            serde_json::to_string(&plan).unwrap(),
            r#"{"way":"index","variables":{"NCCL_IB_GID_INDEX":"3"},"is_sure":true}"#
        );
        let findings = check(&Inventory::default(), Expected::default());
        let json = serde_json::to_value(&findings).unwrap();
        assert_eq!(json[0]["name"], "no-device");
        assert_eq!(json[0]["severity"], "problem");
        assert_eq!(json[0]["program"], serde_json::Value::Null);
    }
}
