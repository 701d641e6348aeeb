//! The text of an exposition: Prometheus's format 0.0.4, or `OpenMetrics` 1.0.
//!
//! The samples of a family come together, families and samples in the order of their names. No two samples
//! have the same name and labels: readers refuse all of a text that has such.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};

use super::catalogue::{Kind, Metric};
use crate::text::printable;

/// The form of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// Prometheus's text format 0.0.4, which the textfile collector reads
    Prometheus,
    #[value(help = "OpenMetrics 1.0")]
    Openmetrics,
}

/// Samples under way.
#[derive(Debug, Default)]
pub(crate) struct Exposition {
    families: BTreeMap<String, Family>,
    host: Option<String>,
}

#[derive(Debug)]
struct Family {
    kind: Kind,
    unit: Option<&'static str>,
    help: String,
    /// By their labels.
    samples: BTreeMap<String, String>,
}

impl Exposition {
    /// What is added from now on is of this host.
    pub(crate) fn turn_to(&mut self, host: Option<&str>) {
        self.host = host.map(str::to_owned);
    }

    /// Adds a sample. Labels without a value are left out.
    pub(crate) fn add(&mut self, metric: &Metric, labels: &[(&str, &str)], value: impl Display) {
        let Metric { name, kind, unit, help, .. } = *metric;
        self.add_to(name, (kind, unit), || help.to_owned(), labels, value.to_string());
    }

    /// Adds 1 to a sample, or a sample of 1.
    pub(crate) fn count(&mut self, metric: &Metric, labels: &[(&str, &str)]) {
        let key = self.labels(labels);
        let family = self.families.get(metric.name);
        let known = family.and_then(|family| family.samples.get(&key)?.parse::<u64>().ok());
        if let (Some(known), Some(family)) = (known, self.families.get_mut(metric.name)) {
            family.samples.insert(key, (known + 1).to_string());
        } else {
            self.add(metric, labels, 1);
        }
    }

    /// The text of labels.
    fn labels(&self, labels: &[(&str, &str)]) -> String {
        let host = self.host.as_deref().map(|host| ("host", host));
        let mut text = String::new();
        for (label, value) in host.iter().chain(labels).filter(|(_, value)| !value.is_empty()) {
            let comma = if text.is_empty() { "" } else { "," };
            let value = escaped(value).replace('"', "\\\"");
            let _ = write!(text, "{comma}{label}=\"{value}\"");
        }
        text
    }

    /// Adds a sample of a family that is in no table. Says whether there was none of the same labels.
    pub(crate) fn add_to(
        &mut self,
        name: &str,
        (kind, unit): (Kind, Option<&'static str>),
        help: impl FnOnce() -> String,
        labels: &[(&str, &str)],
        value: String,
    ) -> bool {
        let text = self.labels(labels);
        let family = match self.families.get_mut(name) {
            Some(family) => family,
            None => self.families.entry(name.to_owned()).or_insert_with(|| Family {
                kind,
                unit,
                help: help(),
                samples: BTreeMap::new(),
            }),
        };
        let is_new = !family.samples.contains_key(&text) && family.kind == kind;
        if is_new {
            family.samples.insert(text, value);
        }
        is_new
    }

    pub(crate) fn text(&self, format: Format) -> String {
        let is_open = format == Format::Openmetrics;
        let mut text = String::new();
        for (name, family) in &self.families {
            let ending = match family.kind {
                Kind::Gauge => "",
                Kind::Counter => "_total",
                Kind::Info => "_info",
            };
            let help = escaped(&family.help);
            if is_open {
                let kind = match family.kind {
                    Kind::Gauge => "gauge",
                    Kind::Counter => "counter",
                    Kind::Info => "info",
                };
                let _ = writeln!(text, "# TYPE {name} {kind}");
                if let Some(unit) = family.unit {
                    let _ = writeln!(text, "# UNIT {name} {unit}");
                }
                let _ = writeln!(text, "# HELP {name} {help}");
            } else {
                let kind = if family.kind == Kind::Counter { "counter" } else { "gauge" };
                let _ = writeln!(text, "# HELP {name}{ending} {help}");
                let _ = writeln!(text, "# TYPE {name}{ending} {kind}");
            }
            for (labels, value) in &family.samples {
                let braces = if labels.is_empty() { ["", ""] } else { ["{", "}"] };
                let [open, close] = braces;
                let _ = writeln!(text, "{name}{ending}{open}{labels}{close} {value}");
            }
        }
        if is_open {
            text.push_str("# EOF\n");
        }
        text
    }
}

/// A text on a line, with its backslashes doubled.
fn escaped(text: &str) -> String {
    printable(text).replace('\\', "\\\\")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::catalogue::{BUILD, GIDS, MTU};

    #[test]
    fn two_forms_of_the_same() {
        let mut all = Exposition::default();
        all.add(&MTU, &[("device", "x"), ("port", "1"), ("none", "")], 1024);
        all.add(&BUILD, &[("version", "a\"b\\c\nd")], 1);
        let counter = (Kind::Counter, Some("bytes"));
        let add = |all: &mut Exposition| {
            all.add_to("x_bytes", counter, || "Help.".into(), &[], "7".into())
        };
        assert!(add(&mut all) && !add(&mut all), "the second has the same labels");
        let mtu = "Help. The active MTU of a port.".strip_prefix("Help. ").unwrap();
        assert_eq!(
            all.text(Format::Prometheus),
            format!(
                "# HELP uverbs_build_info The version of uverbs.\n\
                 # TYPE uverbs_build_info gauge\n\
                 uverbs_build_info{{version=\"a\\\"b\\\\c\\\\nd\"}} 1\n\
                 # HELP uverbs_port_mtu_bytes {mtu}\n\
                 # TYPE uverbs_port_mtu_bytes gauge\n\
                 uverbs_port_mtu_bytes{{device=\"x\",port=\"1\"}} 1024\n\
                 # HELP x_bytes_total Help.\n\
                 # TYPE x_bytes_total counter\n\
                 x_bytes_total 7\n"
            )
        );
        assert_eq!(
            all.text(Format::Openmetrics),
            format!(
                "# TYPE uverbs_build info\n\
                 # HELP uverbs_build The version of uverbs.\n\
                 uverbs_build_info{{version=\"a\\\"b\\\\c\\\\nd\"}} 1\n\
                 # TYPE uverbs_port_mtu_bytes gauge\n\
                 # UNIT uverbs_port_mtu_bytes bytes\n\
                 # HELP uverbs_port_mtu_bytes {mtu}\n\
                 uverbs_port_mtu_bytes{{device=\"x\",port=\"1\"}} 1024\n\
                 # TYPE x_bytes counter\n\
                 # UNIT x_bytes bytes\n\
                 # HELP x_bytes Help.\n\
                 x_bytes_total 7\n\
                 # EOF\n"
            )
        );
    }

    #[test]
    fn samples_of_a_host_say_so() {
        let mut all = Exposition::default();
        for host in ["a", "b"] {
            all.turn_to(Some(host));
            all.add(&GIDS, &[("type", "ib")], 1);
        }
        let text = all.text(Format::Prometheus);
        let samples: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let expected =
            ["a", "b"].map(|it| format!("uverbs_port_gids{{host=\"{it}\",type=\"ib\"}} 1"));
        assert_eq!(samples, expected);
    }
}
