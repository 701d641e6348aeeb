//! The file, as it is written: each group of devices with what is allowed of them, and short comments.

use std::fmt::Write as _;

use uverbs::check::expect::{Allowed, Field, Form, Gathered, Hosts, LeftOut, Value};
use uverbs::port::Rate;

use crate::hosts::{SHOWN, some};
use crate::text::{count, plain_json, printable};

/// `3 hosts (node1, node2, node3)`, with a few names.
fn text(hosts: &Hosts) -> String {
    let all = hosts.names().count();
    let mut text = count(all, "host");
    let names: Vec<_> = hosts.names().flatten().take(SHOWN).map(printable).collect();
    if !names.is_empty() {
        let more = if all > names.len() { ", …" } else { "" };
        let _ = write!(text, " ({}{more})", names.join(", "));
    }
    text
}

const HEADER: &str = "\
# `uverbs check --expect FILE` names what is different. What is left out is not compared.
# Allowed is a value, or a list of values; of numbers also a range: { min = 1, max = 4 }.
# Devices are of the first group that has their driver, board and name.

# whether each device has to be of a group
";

/// Why it may not be known which devices there are.
const UNLISTED: &str = "a host could not be read whole";

/// The file. Of `unread`, hosts and files, something could not be read.
pub(super) fn write(gathered: &Gathered, hosts: &Hosts, unread: &[String]) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut text = format!(
        "# What a good host looks like, by `uverbs expect` {version} from {}.\n",
        text(hosts)
    );
    if !unread.is_empty() {
        let _ = writeln!(text, "# Not read, or not as a whole: {}.", printable(&some(unread)));
    }
    text += HEADER;
    let pattern = &gathered.pattern;
    let why = if pattern.only_these_devices { "" } else { UNLISTED };
    line(&mut text, "only_these_devices", &pattern.only_these_devices.to_string(), why);
    for (own, left_out) in pattern.devices.iter().zip(&gathered.left_out) {
        text += "\n[[devices]]\n";
        for (key, list, is_left_out) in [
            ("driver", &own.drivers, gathered.lacks_driver),
            ("board", &own.boards, gathered.lacks_board),
            ("name", &own.names, false),
        ] {
            if !list.is_empty() {
                let list: Vec<String> = list.iter().map(|own| quoted(own)).collect();
                line(&mut text, key, &listed(&list), "");
            } else if is_left_out {
                let _ = writeln!(text, "# {key} is left out: {}", reason(LeftOut::NotRead));
            }
        }
        if let Some(own) = &own.count {
            line(&mut text, "count", &allowed(Form::Number, own), "devices of this group");
        } else {
            let _ = writeln!(text, "# count is left out: {UNLISTED}");
        }
        let mut is_of_port = false;
        for field in Field::ALL {
            let why = left_out.iter().find(|(own, _)| *own == field).map(|(_, why)| *why);
            let own = own.fields.get(&field);
            if own.is_none() && why.is_none() {
                continue;
            }
            if !field.is_of_device() && !std::mem::replace(&mut is_of_port, true) {
                text += "# of each port:\n";
            }
            if let Some(own) = own {
                line(&mut text, field.name(), &allowed(field.form(), own), comment(field));
            } else {
                let why = why.map(reason).unwrap_or_default();
                let _ = writeln!(text, "# {} is left out: {why}", field.name());
            }
        }
    }
    text
}

fn line(text: &mut String, key: &str, value: &str, comment: &str) {
    let gap = if comment.is_empty() { "" } else { "  # " };
    let _ = writeln!(text, "{key} = {value}{gap}{comment}");
}

fn comment(field: Field) -> &'static str {
    match field {
        Field::PcieSpeed => "GT/s",
        Field::PcieWidth | Field::Width => "lanes",
        Field::Rate => "Gb/s",
        Field::Mtu => "bytes: the RDMA MTU in use",
        Field::RoceV2Ipv4 | Field::RoceV2Ipv6 => "a RoCE v2 GID is in one of these",
        Field::PKeys => "all of these",
        Field::GidIndex => "which uverbs recommends",
        Field::NcclIndex => "which the newest known NCCL takes, or \"none\"",
        Field::UcxIndex => "which the newest known UCX takes, or \"none\"",
        _ => "",
    }
}

fn reason(why: LeftOut) -> &'static str {
    match why {
        LeftOut::NotRead => "it could not be read everywhere",
        LeftOut::NoneKnown => "no device is known to have one",
        LeftOut::NotEverywhere => "not all have it",
        LeftOut::OfOneHost => "the network is of this host only; write the one of all hosts",
        LeftOut::NothingCommon => "ports have nothing in common",
        _ => "it is not the same",
    }
}

fn allowed(form: Form, own: &Allowed) -> String {
    match own {
        Allowed::OneOf(values) => {
            let values: Vec<String> = values.iter().map(|own| value(form, own)).collect();
            listed(&values)
        }
        Allowed::Within { min, max } => {
            let end = |name: &str, own: &Option<u64>| {
                own.map(|own| format!("{name} = {}", value(form, &Value::Number(own))))
            };
            let ends: Vec<String> =
                [end("min", min), end("max", max)].into_iter().flatten().collect();
            format!("{{ {} }}", ends.join(", "))
        }
    }
}

/// One value as it is, and several as a list.
fn listed(values: &[String]) -> String {
    match values {
        [one] => one.clone(),
        all => format!("[{}]", all.join(", ")),
    }
}

fn value(form: Form, own: &Value) -> String {
    match (form, own) {
        (Form::Tenths, Value::Number(own)) => Rate(*own).to_string(),
        (Form::PKeys, Value::Number(own)) => format!("{own:#06x}"),
        (_, Value::Number(own)) => own.to_string(),
        (_, own) => quoted(&own.to_string()),
    }
}

/// A text of TOML. What JSON escapes, TOML does too, and in the same way; `plain_json` escapes the rest.
fn quoted(text: &str) -> String {
    let json = serde_json::Value::from(text).to_string();
    plain_json(&json).into_owned()
}
