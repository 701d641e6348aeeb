//! `uverbs cdi`: which nodes a container gets with a device, for the engines that read the Container Device Interface.

use std::fmt::Write as _;

use clap::Args;
use uverbs::device::{Device, Node};
use uverbs::inventory::{Parts, Problem, Wanted};

use crate::args::{Common, NamedDevices, OutputArg, device_here};
use crate::hosts::{Seen, host};
use crate::output::Output;
use crate::report::{EINVAL, Report};
use crate::selection::Asked;
use crate::status::Status;

/// What all devices are, as these engines name them: a vendor and a class.
const KIND: &str = "uverbs/rdma";

const KEPT: &str = "a file that is there is left as it is";

/// Write which nodes a container gets with a device, as a CDI specification
///
/// Podman, containerd, CRI-O and Docker read it in /etc/cdi and /var/run/cdi (Container Device Interface).
/// Each RDMA device is there as `uverbs/rdma=NAME`. With it a container gets the device's nodes: `uverbs0`;
/// `umad0` and `issm0` of its ports if the module `ib_umad` is loaded; and `rdma_cm`, which all devices
/// share, if `rdma_ucm` is. The page kubernetes.md says what a container can do with them.
///
/// It has the names of nodes as they are now: write it again when devices come or go. A device that has no
/// uverbs node, whose nodes are not known, or with a name that CDI does not allow, is left out, and the status
/// is 3. Without a device there is
/// nothing to write, and FILE is removed. FILE is left as it is if all devices are left out, if `rdma_cm` is
/// not known, or if a device that is named is not there; the status is 3 then, too.
#[derive(Debug, Args)]
#[command(
    verbatim_doc_comment,
    mut_arg("selectors", |own| own.value_parser(device_here)),
    after_help = "\
Examples:
  uverbs cdi
  uverbs cdi --output /etc/cdi/uverbs-rdma.json
  uverbs cdi mlx5_0 mlx5_1 --no-umad"
)]
pub(crate) struct CdiArgs {
    #[command(flatten)]
    pub(crate) named: NamedDevices,
    /// Leave out umadN and issmN, which send management datagrams to the fabric
    #[arg(long)]
    no_umad: bool,
    #[command(flatten)]
    output: OutputArg,
}

pub(crate) fn answer(
    common: &Common,
    args: &CdiArgs,
    report: &mut Report,
) -> serde_json::Result<Output> {
    let asked = Asked::new(&args.named.selectors);
    let is_asked = |device: &Device| asked.has_device(&device.name);
    let wanted = Wanted::new(Parts::LISTED).devices(&is_asked);
    let mut host = host(common);
    let seen = Seen::here(host.inventory(&wanted));
    let mut devices = Vec::new();
    let selected: Vec<&Device> =
        seen.select(&asked, report).into_iter().map(|own| own.device).collect();
    // Nothing of ib_umad is read for a device whose own node is known and enough.
    let enough = |own: &Device| own.node.clone().filter(|_| args.no_umad);
    let others = selected.iter().copied().filter(|own| enough(own).is_none());
    let mut nodes = host.nodes_of_all(others).into_iter();
    for device in selected {
        let own = enough(device).map(|own| Ok(vec![own])).or_else(|| nodes.next());
        let Some(own) = own else { break };
        match own {
            Ok(_) if !is_name(&device.name) => report.problem(&device.name, refused(&device.name)),
            Ok(nodes) => devices.push((device.name.as_str(), nodes)),
            Err(error) => report.problem(&device.name, &error),
        }
    }
    if args.output.is_file() && asked.missing(&seen.inventory).count > 0 {
        // A slip of the keyboard takes no device from a file.
        report.raise(Status::Failed);
        report.note(KEPT);
        return Ok(Output::Text(Vec::new()));
    }
    if devices.is_empty() {
        // Of a host that could not be read, what was known of it stays.
        if report.status() >= Status::Failed && args.output.is_file() {
            report.note(KEPT);
        } else if args.output.remove(report) {
            report.note("no device, and so no file: it was removed");
        }
        return Ok(Output::Text(Vec::new()));
    }
    let shared = match host.connection_manager_node() {
        Ok(shared) => shared,
        Err(error) => {
            report.host_problem(&error);
            if args.output.is_file() {
                report.note(KEPT);
                return Ok(Output::Text(Vec::new()));
            }
            None
        }
    };
    for (_, nodes) in &mut devices {
        nodes.extend(shared.clone());
    }
    Ok(args.output.write(specification(&devices)?.into_bytes(), report))
}

/// Whether engines take this name of a device.
fn is_name(name: &str) -> bool {
    let is_inner = |own: char| own.is_ascii_alphanumeric() || "_-.:".contains(own);
    name.chars().all(is_inner)
        && name.starts_with(|own: char| own.is_ascii_alphanumeric())
        && name.ends_with(|own: char| own.is_ascii_alphanumeric())
}

fn refused(name: &str) -> Problem {
    let text = format!(
        "{name}: a name in CDI has letters, digits and _-.: in it, and a letter or digit at each \
         end (errno {EINVAL}); rename it: rdma dev set NAME name NEW"
    );
    Problem { text, errno: EINVAL }
}

/// The document. Names need no escapes.
fn specification(devices: &[(&str, Vec<Node>)]) -> serde_json::Result<String> {
    // The version in which a name may begin with a digit; else the first that engines have in common.
    let has_digit =
        devices.iter().any(|(name, _)| name.starts_with(|own: char| own.is_ascii_digit()));
    let version = if has_digit { "0.5.0" } else { "0.3.0" };
    let mut text =
        format!("{{\n  \"cdiVersion\": \"{version}\",\n  \"kind\": \"{KIND}\",\n  \"devices\": [");
    for (place, (name, nodes)) in devices.iter().enumerate() {
        let comma = if place == 0 { "" } else { "," };
        let _ = write!(
            text,
            "{comma}\n    {{\"name\": \"{name}\", \"containerEdits\": {{\"deviceNodes\": ["
        );
        for (place, Node { path, .. }) in nodes.iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            let path = serde_json::to_string(&path.to_string_lossy())?;
            let _ = write!(text, "{comma}\n      {{\"path\": {path}, \"permissions\": \"rw\"}}");
        }
        text += "\n    ]}}";
    }
    Ok(text + "\n  ]\n}\n")
}
