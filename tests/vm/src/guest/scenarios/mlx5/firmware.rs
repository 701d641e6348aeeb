//! Commands to the firmware: typed answers are compared with the description, bytes and errnos with
//! rdma-core's.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context as _, Result, ensure};
use nix::libc;
use rustix::io::Errno;
use uverbs::context::Context;
use uverbs::error::Cause;
use uverbs::gid::GidType;
use uverbs::host::Host;
use uverbs::mlx5::devx::{
    self, CapabilityMode, DevxContext, FirmwareRefusal, PortType, RoceL3Type, RoceVersion, Status,
    Vport, VportAdminState, VportLinkState, VportSide,
};
use uverbs::mlx5::port::VportNumber;
use uverbs::mlx5::query_port;
use uverbs_mlx5_function::control::Fault;
use uverbs_mlx5_function::description::{Counters, Description, Mode};

use crate::lab::mlx5::{Function, Mlx5};
use crate::lab::{self, output, run};
use crate::scenarios::answers::compare;

const QUERY_ADAPTER: u16 = 0x101;
const NOP: u16 = 0x80d;

/// Kernels from this one on hand the firmware's reason over.
const REASON_SINCE: (u32, u32) = (6, 1);

/// Whether a kernel says why the firmware refused. (Between 5.10 and 6.1 nothing is tested.)
fn tells_reason() -> Result<bool> {
    Ok(lab::kernel()? >= REASON_SINCE)
}

/// Counters that are unlike one another.
fn counters() -> Counters {
    let pair = |number: u64| (number << 40 | 1, number << 48 | 2);
    Counters {
        received_errors: pair(1),
        transmit_errors: pair(2),
        received_ib_unicast: pair(3),
        transmitted_ib_unicast: pair(4),
        received_ib_multicast: pair(5),
        transmitted_ib_multicast: pair(6),
        received_eth_broadcast: pair(7),
        transmitted_eth_broadcast: pair(8),
        received_eth_unicast: pair(9),
        transmitted_eth_unicast: pair(10),
        received_eth_multicast: pair(11),
        transmitted_eth_multicast: pair(12),
    }
}

fn as_pairs(counters: &Counters) -> [(u64, u64); 12] {
    [
        counters.received_errors,
        counters.transmit_errors,
        counters.received_ib_unicast,
        counters.transmitted_ib_unicast,
        counters.received_ib_multicast,
        counters.transmitted_ib_multicast,
        counters.received_eth_broadcast,
        counters.transmitted_eth_broadcast,
        counters.received_eth_unicast,
        counters.transmitted_eth_unicast,
        counters.received_eth_multicast,
        counters.transmitted_eth_multicast,
    ]
}

/// Opens a device with DEVX, and checks what every kind of function answers.
pub(super) fn opened(device: &Mlx5, description: &Description) -> Result<DevxContext> {
    let context = devx::open(&Host::new().device(device.name())?)?;
    ensure!(context.has_devx());
    devx::nop(&context)?;

    let adapter = devx::query_adapter(&context)?;
    println!("{adapter:?}");
    ensure!(adapter.psid == description.psid && adapter.ieee_vendor_id == 0x2c9);

    let own = devx::query_hca_cap(&context, CapabilityMode::Current, Vport::Own)?;
    println!("{own:#?}");
    let is_ib = description.mode == Mode::InfiniBand;
    ensure!(own.vhca_id == description.vhca_id);
    ensure!(own.port_type == if is_ib { PortType::IB } else { PortType::ETH });
    ensure!(usize::from(own.num_ports) == description.ports.len());
    ensure!(!is_ib || own.gid_table_len == Some(description.ports[0].gid_table_len));
    ensure!(own.roce == (description.mode == Mode::Roce));
    let manages = matches!(description.mode, Mode::Switchdev | Mode::EmbeddedCpu { .. });
    ensure!(own.eswitch_manager == manages && own.vport_group_manager == manages);
    ensure!(own.max_user_contexts > 0);

    let lag = devx::query_lag(&context)?;
    ensure!(lag.state == description.lag.state);
    let remap = (lag.tx_remap_affinity_1, lag.tx_remap_affinity_2);
    ensure!(remap == description.lag.tx_remap_affinity);
    Ok(context)
}

/// Two InfiniBand ports.
pub(crate) fn infiniband() -> Result<()> {
    let mut description = Description::infiniband(2);
    "MT_0000000543".clone_into(&mut description.psid);
    description.lag.state = 1;
    description.lag.tx_remap_affinity = (2, 1);
    let second = &mut description.ports[1];
    (second.state, second.phys_state, second.lmc, second.sm_sl) = (2, 5, 3, 7);
    second.counters = counters();
    let device = Mlx5::bind(0, &description)?;
    let context = opened(&device, &description)?;
    // Any context will do for this one.
    let plain = Host::new().open(device.name())?;
    for (number, port) in (1..).zip(&description.ports) {
        let vport = devx::query_hca_vport_context(&plain, number, Vport::Own)?;
        println!("{vport:#?}");
        ensure!((vport.vport_state.0, vport.phys_state.0) == (port.state, port.phys_state));
        ensure!(vport.port_guid.to_u64() == port.guid);
        ensure!(vport.node_guid.to_u64() == description.node_guid);
        ensure!(vport.system_image_guid.to_u64() == description.system_image_guid);
        ensure!((vport.lid, vport.lmc) == (port.lid, port.lmc));
        ensure!((vport.sm_lid, vport.sm_sl) == (port.sm_lid, port.sm_sl));
        ensure!(vport.cap_mask1 == port.cap_mask && vport.has_smi);
        let told = devx::query_vport_counter(&context, number, Vport::Own)?.named();
        let told = told.map(|(_, traffic)| (traffic.packets, traffic.octets));
        ensure!(told == as_pairs(&port.counters), "{told:?}");
    }
    let error = devx::query_hca_vport_context(&plain, 3, Vport::Own).err();
    let error = error.context("a third port of two")?;
    println!("{error}");
    ensure!(matches!(error.cause(), Cause::Firmware(_)) == tells_reason()?, "{error:?}");
    Ok(())
}

/// A RoCE port: its addresses are what the kernel made of its GIDs.
pub(crate) fn roce() -> Result<()> {
    let mut description = Description::roce();
    description.ports[0].counters = counters();
    let device = Mlx5::bind(0, &description)?;
    let netdev = device.netdev()?;
    run(&["ip", "address", "add", "10.9.0.1/24", "dev", &netdev])?;
    let vlan = format!("{netdev}.7");
    run(&["ip", "link", "add", "link", &netdev, "name", &vlan, "type", "vlan", "id", "7"])?;
    run(&["ip", "address", "add", "10.7.0.1/24", "dev", &vlan])?;
    let context = opened(&device, &description)?;
    // Two of the MAC address, and two of each IPv4 address.
    lab::wait_until("the GIDs are there", || {
        context.query_gid_table().is_ok_and(|table| table.len() == 6)
    })?;

    let port = &description.ports[0];
    let cap = devx::query_roce_cap(&context, CapabilityMode::Current, Vport::Own)?;
    println!("{cap:?}");
    ensure!(cap.v1 && cap.v2 && cap.ipv4 && cap.ipv6);
    ensure!((cap.destination_udp_port, cap.address_table_len) == (4791, port.gid_table_len));

    let nic = devx::query_nic_vport_context(&context, Vport::Own)?;
    println!("{nic:#?}");
    ensure!(nic.permanent_address.0 == port.mac && nic.roce_enabled);
    ensure!(nic.port_guid.to_u64() == port.guid);
    ensure!(nic.node_guid.to_u64() == description.node_guid);
    let state = devx::query_vport_state(&context, VportSide::Function, Vport::Own)?;
    ensure!((state.state, state.admin_state) == (VportLinkState::UP, VportAdminState::UP));
    let told = devx::query_vport_counter(&context, 0, Vport::Own)?.named();
    ensure!(told.map(|(_, it)| (it.packets, it.octets)) == as_pairs(&port.counters));

    let table = context.query_gid_table()?;
    let mut vlans = 0;
    for index in 0..cap.address_table_len {
        let entry = table.iter().find(|entry| entry.index() == u32::from(index));
        let told = devx::query_roce_address(&context, index, 0)?;
        ensure!(told.is_some() == entry.is_some(), "slot {index}: {told:?} for {entry:?}");
        let (Some(entry), Some(address)) = (entry, told) else { continue };
        println!("{index}: {address:?}");
        ensure!(address.gid == entry.gid());
        let v2 = entry.gid_type() == GidType::ROCE_V2;
        ensure!(address.version == if v2 { RoceVersion::V2 } else { RoceVersion::V1 });
        let is_ipv4 = entry.gid().ipv4().is_some();
        let l3_type = if is_ipv4 { RoceL3Type::IPV4 } else { RoceL3Type::IPV6 };
        ensure!(address.l3_type == v2.then_some(l3_type), "{address:?}");
        ensure!(address.mac.0 == port.mac);
        let of_vlan = entry.gid().ipv4() == Some([10, 7, 0, 1].into());
        ensure!(!of_vlan || address.vlan == Some(7));
        vlans += usize::from(address.vlan == Some(7));
    }
    ensure!(table.len() == 6 && vlans == 2, "{table:?}");
    let error = devx::query_roce_address(&context, cap.address_table_len, 0).err();
    let error = error.context("a slot behind the table")?;
    println!("{error}");
    if tells_reason()? {
        ensure!(
            matches!(error.cause(), Cause::Firmware(refusal) if refusal.status == Status::IX_ERR)
        );
    }
    drop(context);
    run(&["ip", "link", "delete", &vlan])?;
    Ok(())
}

/// An embedded CPU asks about its host's vports.
pub(crate) fn other_vports() -> Result<()> {
    let mut description = Description::embedded_cpu(2);
    description.eswitch.vport_vhca_id = 0x3000;
    description.eswitch.spare_vfs = 3;
    description.ports[0].counters = counters();
    let mut device = Mlx5::bind(0, &description)?;
    device.switchdev()?;
    let context = opened(&device, &description)?;
    let plain = Host::new().open(device.name())?;
    match devx::query_esw_functions(&plain) {
        Ok(functions) => {
            println!("{functions:?}");
            ensure!((functions.host_num_of_vfs, functions.host_total_vfs) == (2, 5));
            ensure!(functions.host_pf_enabled && lab::kernel()? >= REASON_SINCE);
        }
        // Linux 5.10 does not let it through.
        Err(error) => ensure!(error.errno() == 22 && lab::kernel()? == (5, 10), "{error}"),
    }
    for number in 0..=2u16 {
        let vport = Vport::Other(VportNumber(number));
        let cap = devx::query_hca_cap(&plain, CapabilityMode::Current, vport)?;
        ensure!(cap.vhca_id == 0x3000 + number);
        let esw = devx::query_esw_vport_context(&plain, vport)?;
        let own = u64::from(number) << 16;
        let icm = (description.eswitch.vport_icm.0 + own, description.eswitch.vport_icm.1 + own);
        ensure!((esw.sw_steering_icm_rx, esw.sw_steering_icm_tx) == icm);
        let state = devx::query_vport_state(&context, VportSide::Eswitch, vport)?;
        ensure!((state.state, state.admin_state) == (VportLinkState::UP, VportAdminState::UP));
        let nic = devx::query_nic_vport_context(&context, vport)?;
        ensure!(nic.system_image_guid.to_u64() == description.system_image_guid);
        ensure!(nic.permanent_address.0 == [0; 6] && nic.port_guid.is_zero());
    }
    let wire = devx::query_vport_state(&context, VportSide::Uplink, Vport::Own)?;
    ensure!(wire.state == VportLinkState::UP);
    let told = devx::query_vport_counter(&context, 0, Vport::Own)?.named();
    ensure!(
        told.map(|(_, it)| (it.packets, it.octets)) == as_pairs(&description.ports[0].counters)
    );
    let absent = Vport::Other(VportNumber(77));
    let error = devx::query_esw_vport_context(&plain, absent).err();
    let error = error.context("a vport that is not there")?;
    println!("{error}");
    ensure!(matches!(error.cause(), Cause::Firmware(_)) == tells_reason()?, "{error:?}");
    Ok(())
}

/// Prefixes of the names of operations that the kernel never lets through.
const NOT_GENERAL: &str = "not general: ";

/// A command of a name, an input, and how much room there is for the output.
type Trial = (&'static str, Vec<u8>, usize);

/// An input of an operation: with its `op_mod`, and bytes from the eighth on.
fn input(opcode: u16, op_mod: u16, arguments: &[u8]) -> Vec<u8> {
    let mut bytes = opcode.to_be_bytes().to_vec();
    bytes.extend([0; 4]);
    bytes.extend(op_mod.to_be_bytes());
    bytes.extend(arguments);
    bytes.resize(bytes.len().max(16), 0);
    bytes
}

/// The commands that are compared, as the program `mlx5` takes them.
pub(in crate::scenarios) fn trial_words() -> Vec<String> {
    words(&trials())
}

fn words(trials: &[Trial]) -> Vec<String> {
    let mut words = Vec::new();
    for (_, input, room) in trials {
        let mut hex = String::new();
        for byte in input {
            // Into a String nothing fails.
            let _ = write!(hex, "{byte:02x}");
        }
        words.extend([room.to_string(), hex]);
    }
    words
}

/// Commands of every kind: those that are answered, refused by the firmware, and by the kernel.
fn trials() -> Vec<Trial> {
    let mut trials = vec![
        ("current capabilities", input(0x100, 1, &[]), 4112),
        ("greatest capabilities", input(0x100, 0, &[]), 4112),
        ("capabilities of RoCE", input(0x100, 9, &[]), 4112),
        ("capabilities of no kind", input(0x100, 0x7f << 1, &[]), 4112),
        ("capabilities of vport 1", input(0x100, 1, &[0x80, 0, 0, 1]), 4112),
        ("half of the capabilities", input(0x100, 1, &[]), 2048),
        ("adapter", input(0x101, 0, &[]), 272),
        ("ISSI", input(0x10a, 0, &[]), 112),
        ("e-switch functions", input(0x740, 0, &[]), 128),
        ("vport state", input(0x750, 0, &[]), 16),
        ("vport state of the uplink", input(0x750, 2, &[]), 16),
        ("e-switch vport", input(0x752, 0, &[]), 272),
        ("NIC vport", input(0x754, 0, &[]), 272),
        ("NIC vport 77", input(0x754, 0, &[0x80, 0, 0, 77]), 272),
        ("RoCE address", input(0x760, 0, &[0, 1]), 48),
        ("RoCE address 65535", input(0x760, 0, &[0xff, 0xff]), 48),
        ("HCA vport", input(0x762, 0, &[]), 528),
        ("HCA vport of port 1", input(0x762, 0, &[0, 1]), 528),
        ("HCA vport of port 9", input(0x762, 0, &[0, 9]), 528),
        ("vport counters", input(0x770, 0, &[0; 24]), 528),
        ("LAG", input(0x842, 0, &[]), 16),
        ("NOP", input(0x80d, 0, &[]), 16),
        ("NOP with much room", input(0x80d, 0, &[]), 4096),
        ("what is not known yet", input(0xcff, 0, &[]), 16),
        // The kernel lets none of these through.
        ("not general: GIDs of a vport", input(0x764, 0, &[]), 32),
        ("not general: P_Keys of a vport", input(0x765, 0, &[]), 20),
        ("not general: access register", input(0x805, 1, &[0, 0, 0x50, 0x04]), 80),
        ("not general: create a PD", input(0x800, 0, &[]), 16),
        ("not general: modify the vport's state", input(0x751, 0, &[]), 16),
        ("not general: no operation", input(0, 0, &[]), 16),
    ];
    trials.push(("an input that is short", input(NOP, 0, &[])[..15].to_vec(), 16));
    trials.push(("an input of two bytes", input(NOP, 0, &[])[..2].to_vec(), 16));
    trials.push(("an output that is short", input(NOP, 0, &[]), 15));
    trials
}

/// Sends a trial; the answer as the peer prints it.
fn ours(context: &Context, input: &[u8], room: usize) -> Result<(String, Option<uverbs::Error>)> {
    // As the peer's: what is not written stays.
    let mut output = vec![0xee; room];
    let error = devx::general_cmd(context, input, &mut output).err();
    let errno = error.as_ref().map_or(0, uverbs::Error::errno);
    let syndrome = output
        .get(4..8)
        .map_or(0, |bytes| bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)));
    let mut line = format!("errno {errno} status {} syndrome {syndrome:#x}\nout ", output[0]);
    for byte in output {
        write!(line, "{byte:02x}")?;
    }
    line.push('\n');
    Ok((line, error))
}

/// What our library makes of a trial, as the peer prints it; its error; whether the device saw it.
struct Tried {
    printed: String,
    error: Option<uverbs::Error>,
    reached: bool,
}

/// Sends every trial.
fn tried(device: &Mlx5, context: &Context, trials: &[Trial]) -> Result<Vec<Tried>> {
    let function = device.function();
    let mut since = function.next_command()?;
    let mut all = Vec::new();
    for (_, input, room) in trials {
        let (printed, error) = ours(context, input, *room)?;
        let commands = function.commands_since(since)?;
        since += u64::try_from(commands.len())?;
        // The driver may have sent something for itself; its commands have no user context.
        let reached = commands.iter().any(|it| it.uid != 0 && it.opcode == opcode_of(input));
        all.push(Tried { printed, error, reached });
    }
    Ok(all)
}

fn opcode_of(input: &[u8]) -> u16 {
    input.first_chunk().map_or(0, |bytes| u16::from_be_bytes(*bytes))
}

/// Every trial, on contexts with and without DEVX, answered and failed as by rdma-core.
pub(super) fn compare_trials(device: &Mlx5) -> Result<()> {
    const CREATE_UCTX: u16 = 0xa04;
    let found = Host::new().device(device.name())?;
    let trials = trials();
    let arguments = words(&trials);
    let theirs = |kind| {
        let words = ["mlx5", "devx", device.name(), kind].into_iter();
        run(&words.chain(arguments.iter().map(String::as_str)).collect::<Vec<_>>())
    };
    let printed = |all: &[Tried]| all.iter().map(|it| it.printed.as_str()).collect::<String>();

    let with_devx = tried(device, &devx::open(&found)?.into_context(), &trials)?;
    compare(&theirs("devx")?, &printed(&with_devx))?;
    let without = tried(device, &Context::open(&found)?, &trials)?;
    // rdma-core asks for DEVX whether it needs it or not, and does without if it must.
    let fault = Fault::Status { status: Status::NO_RES.0, syndrome: 0 };
    device.function().inject(CREATE_UCTX, fault)?;
    compare(&theirs("plain")?, &printed(&without))?;
    let refused = devx::open(&found).err().context("a context that was refused")?;
    let theirs = output(&["mlx5", "devx", device.name(), "devx", "16", "080d"])?;
    let theirs = String::from_utf8_lossy(&theirs.stdout).into_owned();
    ensure!(theirs == format!("open: errno {}\n", refused.errno()), "{refused}; {theirs}");
    device.function().clear()?;

    let mut refusals = 0;
    for (((what, ..), devx), plain) in trials.iter().zip(&with_devx).zip(&without) {
        // Operations that the device saw only with DEVX need it.
        let needs_devx = devx.reached && !plain.reached;
        let cause = |tried: &Tried| tried.error.as_ref().map(|error| error.cause().clone());
        ensure!((cause(plain) == Some(Cause::NeedsDevx)) == needs_devx, "{what}, without DEVX");
        ensure!(cause(devx) != Some(Cause::NeedsDevx), "{what}, with DEVX");
        if what.starts_with(NOT_GENERAL) {
            ensure!(!devx.reached && devx.error.is_some(), "{what} reached the device");
        }
        if let Some(error) = &devx.error {
            println!("{what}: {error}");
        }
        refusals += usize::from(matches!(cause(devx), Some(Cause::Firmware(_))));
    }
    println!("figure: {}: {} firmware commands as by rdma-core", device.name(), 2 * trials.len());
    ensure!((refusals > 2) == tells_reason()?, "{refusals} refusals were the firmware's");
    Ok(())
}

/// Every status is reported with its number, its name and the syndrome.
pub(crate) fn refusals() -> Result<()> {
    /// Status, and what kernels before 6.1 made of it.
    const STATUSES: [(u8, Errno); 17] = [
        (0x01, Errno::IO),
        (0x02, Errno::INVAL),
        (0x03, Errno::INVAL),
        (0x04, Errno::IO),
        (0x05, Errno::INVAL),
        (0x06, Errno::BUSY),
        (0x08, Errno::NOMEM),
        (0x09, Errno::INVAL),
        (0x0a, Errno::INVAL),
        (0x0f, Errno::AGAIN),
        (0x10, Errno::INVAL),
        (0x30, Errno::INVAL),
        (0x40, Errno::INVAL),
        (0x50, Errno::IO),
        (0x51, Errno::IO),
        (0x07, Errno::IO),
        (0xfe, Errno::IO),
    ];
    let device = Mlx5::bind(0, &Description::infiniband(1))?;
    let function = device.function();
    let context = devx::open(&Host::new().device(device.name())?)?;
    for (status, errno) in STATUSES {
        let syndrome = 0x00ab_0000 | u32::from(status);
        function.inject(QUERY_ADAPTER, Fault::Status { status, syndrome })?;
        let error = devx::query_adapter(&context).err().context("an answer that was refused")?;
        println!("{error}");
        if tells_reason()? {
            let refusal = FirmwareRefusal::new(Status(status), syndrome);
            ensure!(*error.cause() == Cause::Firmware(refusal) && error.errno() == 121);
            let text = error.to_string();
            ensure!(text.contains(&format!("syndrome {syndrome:#x}")));
        } else {
            ensure!(*error.cause() == Cause::Os(errno.raw_os_error()), "{error:?}");
        }
        function.clear()?;
    }
    devx::query_adapter(&context)?;
    Ok(())
}

/// The library waits for a late answer, which delays no other query.
pub(crate) fn late_answers() -> Result<()> {
    let device = Mlx5::bind(0, &Description::infiniband(1))?;
    let function = device.function();
    let context = devx::open(&Host::new().device(device.name())?)?;
    function.inject(QUERY_ADAPTER, Fault::Delay(1000))?;
    ensure!(!devx::query_adapter(&context)?.psid.is_empty());
    function.clear()?;
    function.inject(NOP, Fault::Silence)?;
    let since = function.next_command()?;
    thread::scope(|scope| {
        let waiting = scope.spawn(|| devx::nop(&context));
        lab::wait_until("the command has come", || {
            nops(function, since).is_ok_and(|statuses| statuses == [None])
        })?;
        devx::query_adapter(&context)?;
        ensure!(nops(function, since)? == [None]);
        ensure!(!waiting.is_finished(), "answered in silence");
        function.clear()?;
        waiting.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok(())
    })
}

/// Statuses of the NOPs that have come.
fn nops(function: Function, since: u64) -> Result<Vec<Option<u8>>> {
    let commands = function.commands_since(since)?;
    Ok(commands.iter().filter(|it| it.opcode == NOP).map(|it| it.status).collect())
}

/// On a device that is gone every command says so, as rdma-core's do.
pub(crate) fn gone() -> Result<()> {
    let device = Mlx5::bind(0, &Description::infiniband(1))?;
    let found = Host::new().device(device.name())?;
    let contexts = [devx::open(&found)?.into_context(), Context::open(&found)?];
    let mut peer = Command::new("mlx5")
        .args(["gone", device.name()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("starting mlx5")?;
    let mut lines = BufReader::new(peer.stdout.take().context("its output")?).lines();
    let first = lines.next().context("mlx5 ended")??;
    ensure!(first == "open", "{first}");

    let function = device.unplug()?;
    for context in &contexts {
        let error = devx::query_esw_functions(context).err().context("an answer of nobody")?;
        println!("{error}");
        ensure!(*error.cause() == Cause::DeviceGone(libc::EIO), "{error:?}");
    }
    let mut told = String::new();
    for port in [1, 99] {
        let error = query_port(&contexts[0], port).err().context("an answer of nobody")?;
        println!("{error}");
        let is_old = *error.cause() == Cause::UnknownToKernel && lab::kernel()? < (5, 13);
        ensure!(*error.cause() == Cause::DeviceGone(libc::EIO) || is_old, "{error:?}");
        writeln!(told, "port {port}: errno {}", error.errno())?;
    }
    told += &ours(&contexts[0], &input(NOP, 0, &[]), 16)?.0;
    drop(peer.stdin.take().context("its input")?.write_all(b"\n"));
    let theirs: Vec<String> = lines.collect::<Result<_, _>>()?;
    ensure!(peer.wait()?.success(), "mlx5 failed");
    compare(&theirs.join("\n"), &told)?;
    drop(contexts);
    function.rescan()?;
    drop(Mlx5::bind_as_it_is(function)?);
    Ok(())
}
