//! The model of NCCL against what NCCL's own code answered: `tests/golden/README.md`.

use std::io::Read;
use std::net::Ipv6Addr;

use serde_json::Value;

use super::*;
use crate::choose::nccl::{Implementation, Release, Settings};
use crate::device::NodeType;
use crate::gid::GidType;
use crate::port::{LinkLayer, PortState};

/// The recorded hosts, one JSON object per line.
fn hosts() -> Vec<Value> {
    let file = include_bytes!("../../tests/golden/nccl-answers.jsonl.gz");
    let mut text = String::new();
    flate2::read::GzDecoder::new(&file[..]).read_to_string(&mut text).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap()
}

fn small<T: TryFrom<i64>>(value: &Value) -> T {
    T::try_from(number(value)).ok().unwrap()
}

fn row(row: &Value) -> Row<'static> {
    let text = row[2].as_str().unwrap();
    Row {
        index: small(&row[0]),
        gid: row[1].as_str().unwrap().parse::<Ipv6Addr>().unwrap().into(),
        gid_type: match text {
            "IB/RoCE v1" | "hidden" => GidType::ROCE_V1,
            "RoCE v2" => GidType::ROCE_V2,
            // A type that no release knows.
            "Invalid GID type" => GidType(77),
            other => panic!("{other}"),
        },
        type_is_hidden: text == "hidden",
        has_address_handle: true,
        may_lead_elsewhere: false,
        is_heard: Some(true),
        home: Home::None,
    }
}

fn ports(host: &Value) -> Vec<Port<'_>> {
    let port = |device, port: &Value| Port {
        device,
        node_type: NodeType::CA,
        driver: None,
        number: small(&port["number"]),
        place: None,
        is_found: true,
        state: PortState(small(&port["state"])),
        link_layer: LinkLayer(small(&port["link"])),
        gid_tbl_len: small(&port["length"]),
        has_types: true,
        assumes_types: false,
        rows: port["rows"].as_array().unwrap().iter().map(row).collect(),
    };
    let devices = host["devices"].as_array().unwrap().iter();
    devices
        .flat_map(|device| {
            let name = device["name"].as_str().unwrap();
            let ports = device["ports"].as_array().unwrap().iter();
            ports.map(move |own| port(name, own))
        })
        .collect()
}

/// A recorded answer in the same words as [`words`].
fn recorded(answer: &Value, flid: bool) -> String {
    match answer[0].as_str() {
        None => "not used".to_owned(),
        Some("index") => {
            let (chosen, sent) = (number(&answer[1]), number(&answer[2]));
            // It is sent as one byte.
            assert!(answer[3] == 0 || sent == chosen & 0xff, "{answer}");
            format!("index {chosen}")
        }
        // A negative number of the one variable that may not be negative.
        Some("fails") if answer[1] == "gid" && flid && number(&answer[2]) < 0 => {
            "no GID below 0".to_owned()
        }
        Some("fails") if answer[1] == "gid" => format!("no GID {}", number(&answer[2])),
        Some("fails") => format!("no type of {}", number(&answer[2])),
        Some("crash") => "crash".to_owned(),
        Some(other) => panic!("{other}"),
    }
}

fn words(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Taken(index) | Outcome::Empty(index) => format!("index {index}"),
        Outcome::Outside(index) => format!("no GID {index}"),
        Outcome::Fails(Why::UnreadableType(index)) => format!("no type of {index}"),
        Outcome::Fails(Why::RangeCrash) => "crash".to_owned(),
        Outcome::Fails(Why::BadValue(_)) => "no GID below 0".to_owned(),
        Outcome::Ignored(_) => "not used".to_owned(),
        other => format!("{other:?}"),
    }
}

/// `v2.30.7-1`.
fn release(name: &str) -> Release {
    let parts: Vec<u32> =
        name.trim_matches('v').split(['.', '-']).map(|part| part.parse().unwrap()).collect();
    Release::of(parts[0], parts[1], parts[2])
}

#[test]
fn every_recorded_answer() {
    let (mut count, mut wrong) = (0, Vec::new());
    for host in hosts() {
        let ports = ports(&host);
        let variable = |name: &str| host["settings"][name].as_str();
        for (version, answers) in host["nccl"].as_object().unwrap() {
            let settings = Settings::new(Implementation::Nccl(release(version)), variable);
            for port in &ports {
                let name = format!("{}:{}", port.device, port.number);
                let is_ib = port.link_layer == LinkLayer::INFINIBAND;
                let flid = is_ib && release(version) >= Release::V2_22;
                let answer = recorded(&answers["ports"][&name], flid);
                let outcome = nccl::choose(port, &settings).outcome;
                let own = match (&outcome, answer.strip_prefix("index ")) {
                    // The index is read, and the LID used.
                    (Outcome::ByLid, Some(_)) if is_ib && !flid => answer.clone(),
                    _ => words(&outcome),
                };
                count += 1;
                if own != answer {
                    wrong.push(format!(
                        "{} {version} {name} {:?}: {own}, recorded {answer}, {}",
                        host["id"], port.link_layer, host["settings"]
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {count} differ:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(count, 14_040, "every port of every host, by every release");
}
