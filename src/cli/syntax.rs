//! The command line's syntax: commands, their help, and what contradicts what.
//!
//! Help, shell completions and man pages are made from this.

use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use uverbs::selector::Selector;

use crate::args::{Common, SnapshotArgs, SourceChoice, is_file_like, not_a_device};
use crate::check::CheckArgs;
use crate::choose::ChooseArgs;
use crate::devices::DevicesArgs;
use crate::env::{EnvArgs, EnvFormat};
use crate::gids::{Format, GidArgs, GidsArgs};
use crate::guids::GuidsArgs;
use crate::mlx5::Mlx5Command;
use crate::ports::PortsArgs;
use crate::status;

/// Show RDMA devices, their ports, GID tables and GUIDs, and choose the right GID
///
/// Asks the Linux kernel directly (uverbs ioctl, RDMA netlink, sysfs): no libibverbs, no provider
/// library, no privileges.
#[derive(Debug, Parser)]
#[command(
    name = "uverbs",
    verbatim_doc_comment,
    version,
    propagate_version = true,
    subcommand_value_name = "COMMAND",
    after_help = AFTER_HELP,
    after_long_help = after_long_help(),
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const AFTER_HELP: &str = "\
Examples:
  uverbs gids                      all GIDs of all devices
  uverbs gids mlx5_0:1 --type v2   those of one port that RoCE v2 uses
  uverbs ports --json              state, MTU, width and speed of all ports, for programs
  uverbs choose                    the GID index to use on each port
  uverbs check                     what is wrong with this host

See 'uverbs COMMAND --help' for more, 'uverbs --help' for exit statuses.";

/// What the long help and the man page end with.
fn after_long_help() -> String {
    format!("{EXAMPLES}\n\n{}\n\n{REST}", status::HELP)
}

const EXAMPLES: &str = "\
Examples:
  uverbs gids                      all GIDs of all devices
  uverbs gids mlx5_0:1 --type v2   those of one port that RoCE v2 uses
  uverbs ports --json              state, MTU, width and speed of all ports, for programs
  uverbs choose                    the GID index to use on each port
  uverbs check                     what is wrong with this host
  uverbs --sysfs /host/sys gids    a host's GIDs, seen from a container
  uverbs gids --from node7.json    those of a host whose snapshot was taken";

const REST: &str = "\
JSON:
  One document with a list named after the command (gid: gids) and a list \"problems\" of
  {\"device\", \"error\", \"errno\"}. What is not known is null; GUIDs are texts of 0x and 16 digits;
  a number whose name is not known is a text, unknown(N). Keys may be added, never changed.
  With --from each row has the key \"host\" as well.

Environment:
  NO_COLOR  if not empty, no colour; --color comes first
  TERM      no colour if it is dumb or not set; --color comes first";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List RDMA devices
    ///
    /// Asks RDMA netlink, or sysfs where there is none. A device is opened only if its driver is
    /// not known otherwise, and then without a context. As with any tool that asks RDMA netlink,
    /// the kernel may load its modules `ib_core` and `ib_uverbs` for it.
    #[command(
        verbatim_doc_comment,
        after_help = "\
Examples:
  uverbs devices
  uverbs devices mlx5_0
  uverbs devices --no-header | awk '{print $1}'   only names
  uverbs devices --json"
    )]
    Devices(DevicesArgs),
    /// Show the GID tables of devices or ports
    ///
    /// Rows are in order of device, port and index. Indices have gaps and change with addresses:
    /// choose a GID by its address, type and network interface, not by its index.
    ///
    /// NETDEV is the interface's name if uverbs can prove that the interface is in this network
    /// namespace. Else it is the index (`#5`), or the name by sysfs (`eth0?`), which may belong to
    /// another namespace; `?` is an interface that cannot be read, `-` is none.
    ///
    /// If no GID matches the filters, stderr says so and the status is 1.
    ///
    /// `--format show_gids` prints what the `show_gids` script prints, with two differences: indices
    /// are in numeric order, and an interface is named only if it is in this network namespace.
    #[command(
        verbatim_doc_comment,
        after_help = "\
Examples:
  uverbs gids
  uverbs gids mlx5_0 mlx5_1/1
  uverbs gids --type v2 --netdev eth0
  uverbs gids --ip 192.168.77.1
  uverbs gids --cidr 10.0.0.0/8 --no-header | awk '{print $3}'   only indices
  uverbs gids --format show_gids"
    )]
    Gids(GidsArgs),
    /// Show one GID
    ///
    /// Columns are those of `uverbs gids`. An empty slot gives no row, a message, and status 1.
    #[command(
        verbatim_doc_comment,
        after_help = "\
Examples:
  uverbs gid mlx5_0:1 3
  uverbs gid mlx5_0/1 0 --json"
    )]
    Gid(GidArgs),
    /// Show ports: state, link layer, MTU, width, speed, LID, interface, port GUID
    ///
    /// GBPS is the nominal rate in Gb/s, MTU the active one in bytes; sysfs does not have the MTU.
    /// NETDEV is the port's network interface if it is in this network namespace.
    #[command(
        verbatim_doc_comment,
        after_help = "\
Examples:
  uverbs ports
  uverbs ports mlx5_0:1
  uverbs ports --no-header | awk '$3 != \"active\" {print $1 \":\" $2}'   ports that are not active
  uverbs ports --json"
    )]
    Ports(PortsArgs),
    /// Show node, system image and port GUIDs
    ///
    /// A port's GUID is the lower half of its GID at index 0. It is `-` (JSON: null) if that slot
    /// is empty or cannot be read, or that half is zero, as on iWARP.
    #[command(
        verbatim_doc_comment,
        after_help = "\
Examples:
  uverbs guids
  uverbs guids mlx5_0
  uverbs guids --json"
    )]
    Guids(GuidsArgs),
    /// Choose the GID index to use on each port
    ///
    /// No GID is recommended whose network interface is known to be down or in another network
    /// namespace. Of the others uverbs prefers RoCE v2 before v1, then what is not link-local, then IPv4,
    /// then the port's own interface before a VLAN's. A GID whose interface is proven to be in this
    /// namespace comes before one of which that is not known, except that a GID whose address is here
    /// comes before v1 and link-local ones. With --sysfs nothing is known of interfaces. --explain gives
    /// the doubts.
    ///
    /// NCCL and UCX are the indices that their newest releases take with the variables that are set
    /// here (with --from: there), `-` if they take no GID of the port; the JSON says why. Where the
    /// three are not alike, stderr says so.
    ///
    /// With --from, stderr also says whether one setting fits all hosts, and which hosts differ. "All
    /// ports" are those that have a usable GID: a port that nobody named may be down.
    ///
    /// The status is 1 if a port that was named has no usable GID, no port of a device that was
    /// named, or, where none was named, no port of a host; and if it is not known of a port which GID is
    /// right, as a row could not be read.
    #[command(
        verbatim_doc_comment,
        after_help = "\
Examples:
  uverbs choose
  uverbs choose mlx5_0:1 --explain                    every row, and why it is taken or not
  uverbs choose --like nccl --explain                 the same of NCCL's choice
  uverbs choose --like ucx-1.13                       what an older UCX takes
  uverbs choose --netdev eth0 --no-header | awk '{print $3}'
  uverbs choose --cidr 10.0.0.0/8 --json
  uverbs choose --from node1.json --from node2.json   what fits both hosts, and which differ
  uverbs choose --from snapshots                      the same of all files in a folder"
    )]
    Choose(ChooseArgs),
    /// Print the variables by which a program uses the right GIDs
    ///
    /// If one index is right on every port, it is set. Otherwise the program's own choice is left, if
    /// that is right, or an address range is set; stderr says why. The program's list of devices leaves
    /// out ports that have no usable GID or are not named. Variables that are set now and do not fit
    /// are named on stderr. They are right for the newest releases; `choose --like` shows what others do.
    ///
    /// The status is 1, and no variable is printed, if no setting that uverbs tries is right on every
    /// port, if a port or a row could not be read that may be used, or if what is named has no usable GID.
    /// What is printed although it is not proven to be right is named on stderr, and in the JSON as `doubts`.
    #[command(
        verbatim_doc_comment,
        after_help = "\
Examples:
  uverbs env nccl
  uverbs env ucx mlx5_0:1 mlx5_1:1
  uverbs env nccl --format kubernetes   for a container's env list
  uverbs env nvshmem --json"
    )]
    Env(EnvArgs),
    /// Check this host: modules, nodes, ports, GIDs, interfaces, settings
    ///
    /// A line for each finding: how much it matters, its name, which does not change, what was seen
    /// and what to do.
    ///
    /// The last line says what was looked at, and how many hosts have problems.
    ///
    /// The status is 0 if there is no problem, 2 if there is one, and with --strict 1 if there are
    /// only warnings. Notes do not count. It is 3 if the check could not be made: a device that was named
    /// is not there, a file cannot be read, or the command line is wrong. If some hosts or devices could
    /// be checked and a problem was found, it is 2.
    #[command(
        verbatim_doc_comment,
        after_help = "\
Examples:
  uverbs check
  uverbs check mlx5_0 mlx5_1:1 --strict
  uverbs check --link-layer infiniband
  uverbs check --source sysfs            without opening a device
  uverbs check --from snapshots          all hosts whose snapshots are in a folder
  uverbs check --json"
    )]
    Check(CheckArgs),
    /// Write all that these commands read as one JSON document
    ///
    /// `--from FILE` of the other commands reads it, elsewhere and later. It has the host's name, the
    /// devices, ports, GIDs and GUIDs, network interfaces with their addresses, and the variables of
    /// NCCL, NVSHMEM and UCX that choose GIDs; nothing else. What could not be read is in the document with
    /// its error, and does not change the status.
    #[command(
        verbatim_doc_comment,
        after_help = "\
Examples:
  uverbs snapshot > node7.json
  uverbs snapshot --source sysfs > node7.json   without opening a device"
    )]
    Snapshot(SnapshotArgs),
    /// Show what only the mlx5 driver and its devices' firmware know
    ///
    /// For devices of the driver mlx5, NVIDIA ConnectX-4 and newer; `uverbs devices` names drivers.
    #[command(
        verbatim_doc_comment,
        subcommand,
        subcommand_value_name = "COMMAND",
        after_help = "\
Examples:
  uverbs mlx5 port                 how steering knows the ports of all mlx5 devices
  uverbs mlx5 vport mlx5_0:1       what the firmware knows of a port
  uverbs mlx5 device mlx5_0        what it knows of a device"
    )]
    Mlx5(Mlx5Command),
    /// Print a shell's completions
    #[command(
        verbatim_doc_comment,
        after_help = "\
Examples:
  uverbs completions bash > /etc/bash_completion.d/uverbs
  uverbs completions zsh > /usr/share/zsh/site-functions/_uverbs
  uverbs completions fish > ~/.config/fish/completions/uverbs.fish"
    )]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print a man page
    #[command(
        verbatim_doc_comment,
        after_help = "\
Examples:
  uverbs man > uverbs.1
  uverbs man gids > uverbs-gids.1
  uverbs man | man -l -"
    )]
    Man {
        /// The command whose page it is; else the page of uverbs itself
        #[arg(value_parser = COMMANDS, hide_possible_values = true)]
        command: Option<String>,
    },
}

/// The commands that have a man page of their own; a subcommand's name follows a hyphen.
const COMMANDS: [&str; 15] = [
    "devices",
    "gids",
    "gid",
    "ports",
    "guids",
    "choose",
    "env",
    "check",
    "snapshot",
    "mlx5",
    "mlx5-port",
    "mlx5-vport",
    "mlx5-device",
    "completions",
    "man",
];

impl Cli {
    /// Reads the command line of this process.
    pub(crate) fn from_command_line() -> Result<Self, clap::Error> {
        let cli = Self::try_parse()?;
        match cli.contradiction() {
            None => Ok(cli),
            Some(message) => Err(Self::command().error(ErrorKind::ArgumentConflict, message)),
        }
    }

    /// Whether problems go to stderr, as they are not in the answer.
    pub(crate) fn shows_problems(&self) -> bool {
        !self.is_json()
    }

    /// The snapshots that are to be read.
    pub(crate) fn from(&self) -> &[PathBuf] {
        let own = match &self.command {
            Command::Devices(args) => &args.from,
            Command::Gids(args) => &args.from,
            Command::Gid(args) => &args.from,
            Command::Ports(args) => &args.from,
            Command::Guids(args) => &args.from,
            Command::Choose(args) => &args.from,
            Command::Env(args) => &args.from,
            Command::Check(args) => &args.from,
            Command::Snapshot(_)
            | Command::Mlx5(_)
            | Command::Completions { .. }
            | Command::Man { .. } => return &[],
        };
        &own.from
    }

    /// The devices and ports that are named, of commands that can read snapshots.
    fn selectors(&self) -> &[Selector] {
        match &self.command {
            Command::Devices(args) => &args.selectors,
            Command::Gids(args) => &args.selectors,
            Command::Ports(args) => &args.selectors,
            Command::Guids(args) => &args.selectors,
            Command::Choose(args) => &args.selectors,
            Command::Env(args) => &args.selectors,
            Command::Check(args) => &args.selectors,
            Command::Gid(_)
            | Command::Snapshot(_)
            | Command::Mlx5(_)
            | Command::Completions { .. }
            | Command::Man { .. } => &[],
        }
    }

    /// A file's name in the place of a device's, as in `--from a.json b.json`.
    fn misplaced_file(&self) -> Option<String> {
        let from = self.from();
        // What has a port is no file, and a folder may have a device's name, as in sysfs.
        let is_file = |name: &str| !from.is_empty() && Path::new(name).is_file();
        let is_misplaced = |own: &&Selector| {
            is_file_like(&own.device) || own.port.is_none() && is_file(&own.device)
        };
        let name = &self.selectors().iter().find(is_misplaced)?.device;
        Some(from.first().map_or_else(
            || not_a_device(name),
            |first| {
                format!(
                    "{name} is not a device; --from takes one file: --from {} --from {name}",
                    first.display()
                )
            },
        ))
    }

    /// Whether the answer is a JSON document.
    pub(crate) fn is_json(&self) -> bool {
        match &self.command {
            Command::Gids(args) => args.format(&self.common) == Format::Json,
            Command::Env(args) => args.format(&self.common) == EnvFormat::Json,
            Command::Devices(_)
            | Command::Gid(_)
            | Command::Ports(_)
            | Command::Guids(_)
            | Command::Choose(_)
            | Command::Check(_)
            | Command::Snapshot(_)
            | Command::Mlx5(_)
            | Command::Completions { .. }
            | Command::Man { .. } => self.common.json,
        }
    }

    fn is_table(&self) -> bool {
        match &self.command {
            Command::Gids(args) => args.format(&self.common) == Format::Table,
            Command::Devices(_)
            | Command::Gid(_)
            | Command::Ports(_)
            | Command::Guids(_)
            | Command::Choose(_)
            | Command::Check(_)
            | Command::Mlx5(_) => !self.common.json,
            Command::Env(_)
            | Command::Snapshot(_)
            | Command::Completions { .. }
            | Command::Man { .. } => false,
        }
    }

    fn is_show_gids(&self) -> bool {
        matches!(&self.command, Command::Gids(args) if args.format(&self.common) == Format::ShowGids)
    }

    /// What clap cannot see, as options may come before the command or after it.
    fn contradiction(&self) -> Option<String> {
        let common = &self.common;
        if let Some(message) = self.misplaced_file() {
            return Some(message);
        }
        let source = match &self.command {
            Command::Gids(args) => {
                if common.json && args.format.is_some_and(|format| format != Format::Json) {
                    return Some("--json contradicts --format".to_owned());
                }
                args.source.source
            }
            Command::Gid(args) => args.source.source,
            Command::Ports(args) => args.source.source,
            Command::Guids(args) => args.source.source,
            Command::Choose(args) => args.source.source,
            Command::Check(args) => args.source.source,
            Command::Snapshot(args) => args.source.source,
            Command::Env(args) => {
                if common.json && args.format.is_some_and(|format| format != EnvFormat::Json) {
                    return Some("--json contradicts --format".to_owned());
                }
                args.source.source
            }
            Command::Mlx5(_) if common.sysfs.is_some() => {
                return Some("mlx5 needs the device itself; --sysfs reads files only".to_owned());
            }
            Command::Devices(_)
            | Command::Mlx5(_)
            | Command::Completions { .. }
            | Command::Man { .. } => None,
        };
        if !self.from().is_empty() {
            if common.sysfs.is_some() || source.is_some() {
                return Some("--from reads snapshots and nothing else".to_owned());
            }
            if self.is_show_gids() && self.from().len() > 1 {
                return Some("show_gids knows one host: give --from one file".to_owned());
            }
        }
        if common.no_header && !self.is_table() {
            return Some("--no-header is for tables".to_owned());
        }
        if let Some(folder) = &common.sysfs {
            if source.is_some_and(|source| source != SourceChoice::Sysfs) {
                return Some("with --sysfs there is no other --source than sysfs".to_owned());
            }
            if !folder.is_dir() {
                return Some(format!("--sysfs: {} is not a folder", folder.display()));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_a_page() {
        let command = Cli::command();
        let mut names = Vec::new();
        for command in command.get_subcommands() {
            let name = command.get_name();
            names.push(name.to_owned());
            names.extend(command.get_subcommands().map(|own| format!("{name}-{}", own.get_name())));
        }
        assert_eq!(names, COMMANDS);
    }

    #[test]
    fn only_a_given_auto_contradicts_sysfs() {
        let parsed = |args: &[&str]| Cli::try_parse_from(args).unwrap().contradiction();
        assert_eq!(parsed(&["uverbs", "--sysfs", "/", "gids"]), None);
        assert_eq!(parsed(&["uverbs", "gids", "--sysfs", "/", "--source", "sysfs"]), None);
        for source in ["auto", "ioctl"] {
            assert!(parsed(&["uverbs", "gids", "--sysfs", "/", "--source", source]).is_some());
        }
    }
}
