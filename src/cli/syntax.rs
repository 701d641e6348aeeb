//! The command line's syntax: commands and their help.
//!
//! Help, shell completions and man pages are made from this.

use clap::{Parser, Subcommand};

use crate::args::{Common, SnapshotArgs};
use crate::cdi::CdiArgs;
use crate::check::CheckArgs;
use crate::choose::ChooseArgs;
use crate::counters::CountersArgs;
use crate::devices::DevicesArgs;
use crate::env::EnvArgs;
use crate::expect::ExpectArgs;
use crate::fleet::FleetArgs;
use crate::gids::{GidArgs, GidsArgs};
use crate::guids::GuidsArgs;
use crate::history::HistoryArgs;
use crate::limits::LimitsArgs;
use crate::metrics::MetricsArgs;
use crate::mlx5::Mlx5Command;
use crate::nfd::NfdArgs;
use crate::pkeys::PkeysArgs;
use crate::ports::PortsArgs;
use crate::shell::Shell;
use crate::status;
use crate::wait::WaitArgs;
use crate::watch::WatchArgs;

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
    after_help = format!("{FIRST_EXAMPLES}{AFTER_HELP}"),
    after_long_help = after_long_help(),
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const FIRST_EXAMPLES: &str = "\
Examples:
  uverbs gids                      all GIDs of all devices
  uverbs gids mlx5_0:1 --type v2   those of one port that RoCE v2 uses
  uverbs ports --json              state, MTU, width and speed of all ports, for programs
  uverbs choose                    the GID index to use on each port
  uverbs check                     what is wrong with this host";

const AFTER_HELP: &str =
    "\n\nSee 'uverbs COMMAND --help' for more, 'uverbs --help' for exit statuses.";

/// What the long help and the man page end with.
fn after_long_help() -> String {
    format!("{FIRST_EXAMPLES}{MORE_EXAMPLES}\n\n{}\n\n{REST}", status::HELP)
}

const MORE_EXAMPLES: &str = "
  uverbs --sysfs /host/sys gids    a host's GIDs, seen from a container
  uverbs gids --from node7.json    those of a host whose snapshot was taken";

const REST: &str = "\
JSON:
  Mostly one document with a list named after the command (gid: gids) and a list \"problems\" of
  {\"device\", \"error\", \"errno\"}. What is not known is null; GUIDs are texts of 0x and 16 digits;
  a number whose name is not known is a text, unknown(N); a GID's type that could not be read is unknown.
  Keys may be added, never changed.
  With --from each row has the key \"host\" as well; those of fleet have \"hosts\".

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
    ///
    /// If it is not known which node a device has, or if its PCI function, NUMA node or board could
    /// not be read and is shown, stderr says so, and the status stays 0; but if a file that may name the
    /// node cannot be read, it is 3.
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
    /// another namespace; `?` is an interface that cannot be read, `-` is none. An interface whose
    /// name could be taken for one of these, or does not show as what it is, goes by its index.
    ///
    /// If no GID matches the filters, stderr says so and the status is 1.
    ///
    /// `--format show_gids` prints what the `show_gids` script prints, with two differences: devices
    /// and indices are in numeric order, and an interface is named only if it is in this network namespace.
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
    /// GBPS is the nominal rate in Gb/s, MTU the active one in bytes; sysfs does not have the MTU. On InfiniBand
    /// it says SDR also of a speed that the kernel does not know: GBPS and SPEED are `-` then.
    /// NETDEV is the port's network interface if it is in this network namespace.
    ///
    /// `--format ibstat` prints what ibstat prints: of a device with all its ports, of a port only this one.
    /// `--format ibdev2netdev` prints a line for each port of which an interface is known, that of its GID 0; its
    /// state is NA if it is not known here: sysfs has its name in its own network namespace.
    #[command(
        verbatim_doc_comment,
        after_help = "\
Examples:
  uverbs ports
  uverbs ports mlx5_0:1
  uverbs ports --no-header | awk '$3 != \"active\" {print $1 \":\" $2}'   ports that are not active
  uverbs ports --format ibstat
  uverbs ports --format ibdev2netdev
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
    /// Show what ports and devices count: traffic, errors, objects in use
    ///
    /// Counters that are 0 are left out, except with --all and in JSON. Data is in bytes, also where the
    /// kernel counts words of 4 bytes. NOTE is `saturated` where a counter of few bits has reached its end
    /// and counts no more until it is reset: its value is not known.
    ///
    /// A driver's own counters come from RDMA netlink, which has them in every network namespace; those
    /// of the performance management agent (`symbol_error`, `link_downed`) only from sysfs, which shows them
    /// in the device's own namespace. On mlx5 a file of sysfs costs a command to the firmware, or two. One question
    /// to the agent gives many of them: if it is refused, those that were not read are named on stderr.
    ///
    /// --processes lists who has contexts, protection domains, completion queues, memory regions, shared
    /// receive queues and identifiers of the connection manager: processes, and parts of the kernel. In a
    /// container the kernel gives no number for the processes of the host and of other containers; before
    /// Linux 5.5 it does not list them there, and so no objects are shown.
    /// Linux 5.10 lists no contexts and no shared receive queues. Queue pairs are only counted: to list
    /// them, the kernel asks the driver for each.
    #[command(
        verbatim_doc_comment,
        after_help = "\
Examples:
  uverbs counters
  uverbs counters mlx5_0:1 --all
  uverbs counters --rate 1                how much in a second
  uverbs counters mlx5_0 --processes      who uses it
  uverbs counters --json"
    )]
    Counters(CountersArgs),
    /// Show the partitions that ports are members of
    ///
    /// The P_Keys that are in use, by sysfs: no ioctl has them. A full member can talk to all members of its
    /// partition, a limited one only to full ones. Ethernet ports have 0xffff; snapshots do not have theirs.
    #[command(
        verbatim_doc_comment,
        after_help = "\
Examples:
  uverbs pkeys
  uverbs pkeys mlx5_0:1
  uverbs pkeys --no-header | awk '$5 == \"limited\" {print $1 \":\" $2, $4}'
  uverbs pkeys --json"
    )]
    Pkeys(PkeysArgs),
    /// Show limits and capabilities of devices
    ///
    /// A line for each field, named as by `ibv_devinfo -v`: sizes of queues and memory regions, capabilities,
    /// on-demand paging, atomics. Capabilities are words; a bit without a name is unknown(N). `-` is that
    /// the device, its driver or the kernel does not have it. Opens the device.
    #[command(
        verbatim_doc_comment,
        after_help = "\
Examples:
  uverbs limits mlx5_0
  uverbs limits --no-header | awk '$2 == \"max_qp\" {print $1, $3}'
  uverbs limits mlx5_0 --json"
    )]
    Limits(LimitsArgs),
    /// Choose the GID index to use on each port
    ///
    /// No GID is recommended whose network interface is known to be down or in another network
    /// namespace. Of the others uverbs prefers RoCE v2 before v1, then what is not link-local, then IPv4,
    /// then the port's own interface before a VLAN's. A GID whose interface is proven to be in this
    /// namespace comes before one of which that is not known, except that a GID whose address is here
    /// comes before v1 and link-local ones. With --sysfs nothing is known of interfaces. --explain gives
    /// the doubts.
    ///
    /// NCCL and UCX are the indices that their newest known releases (2.30.7, 1.22) take with the variables that
    /// are set here (with --from: there), `-` if they take no GID of the port, or perhaps none; the JSON says why.
    /// A `?` after an index means that this is not known. Where the three are not alike, stderr says so.
    ///
    /// With --from, stderr also says whether one setting fits all hosts, and which hosts differ. "All
    /// ports" are those that have a usable GID: a port that nobody named may be down.
    ///
    /// The status is 1 if a port that was named has no usable GID, no port of a device that was
    /// named, or, where none was named, no port of a host that has ports; and if of a port none is
    /// recommended, as it is not known which is right. It is 0 if one is right as far as is known; stderr
    /// says what is not proven. With --like it is about what the program takes. It is 3 if something could not
    /// be read. Rows whose type sysfs keeps back (EINVAL) come after all others.
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
    /// out active ports that have no usable GID, and ports that are not named; programs leave out a port
    /// that is down by themselves. Where the program takes a wrong GID now, stderr says so. The
    /// variables are right for the newest known releases (NCCL 2.30.7, UCX 1.22); `choose --like` shows what
    /// others do. Where lines of `export` are printed, variables of this process count, also with --from.
    ///
    /// The status is 1, and no variable is printed, if no setting that uverbs tries is right on every
    /// port, or if what is named has no usable GID; it is 3 if a port could not be read that may be used.
    /// What is printed although it is not proven to be right is named on stderr. In the JSON `is_sure` is
    /// false then, and `doubts` has what is doubtful of GIDs.
    #[command(
        verbatim_doc_comment,
        after_help = "\
Examples:
  uverbs env nccl
  uverbs env ucx mlx5_0:1 mlx5_1:1
  uverbs env nccl --format kubernetes   for a container's env list
  uverbs env nccl --format slurm        for Slurm's TaskProlog
  uverbs env nvshmem --json"
    )]
    Env(EnvArgs),
    /// Check this host: modules, limits, nodes, ports, GIDs, interfaces, settings
    ///
    /// One line per finding: severity, name, observation, advice. Names of findings do not change.
    ///
    /// The last line says what was looked at, and how many hosts have problems.
    ///
    /// The status is 0 if there is no problem, 2 if there is one, and with --strict or --format nagios 1 if
    /// there are only warnings. Notes do not count. It is 3 if the check could not be made: a device that was named
    /// is not there, a file cannot be read, or the command line is wrong. If some hosts or devices could
    /// be checked and a problem was found, it is 2.
    ///
    /// --expect also compares with a file of `uverbs expect`. Each deviation is a problem, and so is what the file
    /// names and could not be read (`expect-unread`).
    #[command(
        verbatim_doc_comment,
        after_help = "\
Examples:
  uverbs check
  uverbs check mlx5_0 mlx5_1:1 --strict
  uverbs check --link-layer infiniband
  uverbs check --need umad --need rdma-cm
  uverbs check --source sysfs            without opening a device
  uverbs check --format nagios           for Nagios, Icinga and NHC
  uverbs check --from snapshots          all hosts whose snapshots are in a folder
  uverbs check --json"
    )]
    Check(CheckArgs),
    Expect(ExpectArgs),
    /// Compare the hosts of a fleet, and say which ports cannot meet
    ///
    /// Reads snapshots of many hosts. A line for each finding; hosts of which the same is found share it.
    /// `cannot-meet`: ports that a job joins, and why they cannot. Of two sides HOSTS are the one that fewer others
    /// meet, or one of two that are alike in this; of ports that nobody can meet, all.
    /// `not-known`: whether they can is not known. `duplicate`: a GUID, address or LID is on several hosts.
    /// `odd`: hosts that are not as most are, in kernel, devices, firmware, ports, GIDs or settings.
    /// `missing`: a host of --hosts has no snapshot.
    ///
    /// A job joins ports of one device name and number (a rail). Where more than one port of ten has another
    /// name than most in its network, a rail is the network, unless a host has two ports in one. Looked at are
    /// the GIDs that uverbs recommends and those that NCCL and UCX take with the settings of each host; the line
    /// names them if not all three are meant.
    /// Switches are not known: that ports can meet says that nothing on the hosts keeps them from it.
    ///
    /// With --hosts, stderr says which variables are right on all of them, or which hosts to leave out: the
    /// shortest list that was found, which need not be the shortest that there is.
    ///
    /// The status is 0 if nothing was found, and all that is compared is known. It is 1 if not; with --hosts
    /// hosts that are odd, or of which not everything is known, do not count, unless a device is missing or left
    /// over, and of the GIDs those count that are recommended, as a job can set them, and on InfiniBand those
    /// that NCCL and UCX take. It is 1, too, if it is not known that programs can open the devices of a job. It
    /// is 3 if a snapshot, a device or a port could not be read.
    #[command(
        verbatim_doc_comment,
        after_help = "\
Examples:
  uverbs fleet --from snapshots                  all files in a folder
  uverbs fleet --from snapshots --hosts 'n[1-3,07],m5'
  uverbs fleet --from snapshots --all-to-all
  uverbs fleet --from snapshots --routed         routers join all networks
  uverbs fleet --from snapshots --json"
    )]
    Fleet(FleetArgs),
    Metrics(MetricsArgs),
    Nfd(NfdArgs),
    Cdi(CdiArgs),
    /// Write all that commands with --from read as one JSON document
    ///
    /// `--from FILE` of the other commands reads it, elsewhere and later. It has the host's name and kernel;
    /// the devices with their hardware, nodes, ports, GIDs, GUIDs and P_Keys; network interfaces with their
    /// addresses; some modules; the limit of locked memory; and the variables of NCCL, NVSHMEM and UCX that
    /// choose GIDs, with the paths of the files that set them. No other variable is in it. What could not be
    /// read is in the document with its error, or marked as unread, and does not change the status.
    #[command(
        verbatim_doc_comment,
        after_help = "\
Examples:
  uverbs snapshot > node7.json
  uverbs snapshot --source sysfs > node7.json   without opening a device"
    )]
    Snapshot(SnapshotArgs),
    /// Print each change of devices, ports and GID tables as it happens
    ///
    /// A line for each difference: when it was found, the port, what it is, before and after, and what
    /// caused the reading. A GID that moved has another index now. With --json each line is an object.
    ///
    /// What cannot be heard is said on stderr, and found when all is read again. A device is kept open only
    /// where that does not hold up its removal; with --source sysfs none is opened. The filters show only
    /// rows of GID tables, and devices and tables with which such rows come and go.
    ///
    /// It ends with 0 on SIGINT and SIGTERM, when nobody reads the lines, and when --timeout is over; with 1 if
    /// --timeout is over and there were fewer lines than --count.
    ///
    /// --record writes to a file, for `uverbs history` and for --at of other commands: what a snapshot has, and
    /// then what changes in it. A full file is kept as FILE.1, and the one before that is removed. If the disk is
    /// full, stderr says so, and the recording goes on when there is room.
    #[command(
        verbatim_doc_comment,
        after_help = "\
Examples:
  uverbs watch --timeout 1
  uverbs watch mlx5_0:1 --only gid --count 1 --timeout 1   until a row of the table changes
  uverbs watch --json --timeout 0.5 | jq -r .what
  uverbs watch --record node7.jsonl --timeout 0.5          a flight recorder"
    )]
    Watch(WatchArgs),
    /// Wait until ports have a usable GID
    ///
    /// Ends with 0 when each port and each device that is named has a GID that `uverbs choose`
    /// recommends, and prints these; without names, when any port has one. What is named need not be
    /// there yet. If that is not so when --timeout is over, or when a signal ends it, the status is 1, or 3 if
    /// something that is asked for could not be read; stderr says what is missing.
    #[command(
        verbatim_doc_comment,
        after_help = "\
Examples:
  uverbs wait --timeout 1
  uverbs wait mlx5_0:1 mlx5_1:1 --timeout 0.5
  uverbs wait mlx5_0 --type v2 --cidr 10.0.0.0/8 --timeout 0.5"
    )]
    Wait(WaitArgs),
    /// Show how a host, a port or a row of a GID table went, by a recording
    ///
    /// Reads what `uverbs watch --record` wrote, FILE.1 first if that is there. A line for each difference, as
    /// `uverbs watch` has them. `not_recorded` is a time of which nothing is known. If no recorder ran then, or what
    /// it wrote cannot be read, what is different after it has the cause `gap`.
    ///
    /// --like shows what a program would have taken on each port, right or wrong: a line for each change of
    /// that, after the changes that were found at the same time.
    #[command(
        verbatim_doc_comment,
        after_help = "\
Examples:
  uverbs history node7.jsonl
  uverbs history node7.jsonl mlx5_0:1 3                    how this row went
  uverbs history node7.jsonl mlx5_0:1 --like nccl-2.20     which GID NCCL would have taken, and since when
  uverbs history node7.jsonl --json"
    )]
    History(HistoryArgs),
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
    ///
    /// They complete commands, options, devices, ports, interfaces, releases and files. The shell asks `uverbs`
    /// for them each time, so they are those of this host, or of what --from or --sysfs names.
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
const COMMANDS: [&str; 26] = [
    "devices",
    "gids",
    "gid",
    "ports",
    "guids",
    "counters",
    "pkeys",
    "limits",
    "choose",
    "env",
    "check",
    "expect",
    "fleet",
    "metrics",
    "nfd",
    "cdi",
    "snapshot",
    "watch",
    "wait",
    "history",
    "mlx5",
    "mlx5-port",
    "mlx5-vport",
    "mlx5-device",
    "completions",
    "man",
];

#[cfg(test)]
mod tests;
