//! Our answers and rdma-core's to the same questions, line by line.
//!
//! The program `answers` (`tests/vm/peer/answers.c`) prints the answers and errors of libibverbs and
//! libibumad. This module makes the same lines from our answers. All lines must agree.
//!
//! Deliberate differences, kept out of the comparison:
//! * room for more than 2,047 entries: rdma-core fails with `EINVAL`, ours reads the table;
//! * a node that may not be opened, where `/dev/char` has no link to it: rdma-core says `ENOENT`
//!   after five seconds, ours `EACCES` at once.
//!
//! libibumad is compared with `uverbs::umad::strict`, whose documentation lists its few
//! differences; that of `uverbs::umad` lists where the lenient functions do better.

use std::fmt::Write as _;
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context as _, Result, ensure};
use nix::sched::{CloneFlags, unshare};
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount_bind, mount_change, mount_remount,
    unmount,
};
use uverbs::Error;
use uverbs::context::Context;
use uverbs::error::Cause;
use uverbs::gid::GidEntry;
use uverbs::guid::Guid;
use uverbs::host::Host;
use uverbs::port::PortAttributes;
use uverbs::sysfs::Sysfs;
use uverbs::umad::strict;

use crate::lab::{self, Netdev, SoftRoce, run};

/// Every kind of entry: default GID, IPv4, IPv6, VLANs, the same GID on two interfaces.
pub(crate) fn agree() -> Result<()> {
    let _lab = lab::two_soft_roce_devices()?;
    for device in ["rxe0", "rxe1"] {
        compare_verbs(device)?;
    }
    compare_umad(&[0, 1, 2, 3, 4])
}

/// A device whose interface is down, and one on the loopback interface.
pub(crate) fn agree_on_links_that_are_down() -> Result<()> {
    let netdev = Netdev::dummy("d0", "02:11:22:33:44:55")?;
    netdev.address("192.168.77.1/24")?;
    let rxe = SoftRoce::new("rxe0", &netdev)?;
    rxe.wait_for_gids(2)?;
    run(&["ip", "link", "set", "d0", "down"])?;
    lab::wait_until("the port is down", || {
        Sysfs::host().query_port("rxe0", 1).is_ok_and(|port| port.state.name() == Some("down"))
    })?;
    rxe.settle()?;
    run(&["ip", "link", "set", "lo", "up"])?;
    let on_loopback = SoftRoce::on_loopback("rxe1")?;
    on_loopback.wait_for_gid("0000:0000:0000:0000:0000:0000:0000:0001")?;
    on_loopback.settle()?;
    for device in ["rxe0", "rxe1"] {
        compare_verbs(device)?;
    }
    compare_umad(&[0, 1, 2, 3, 4])
}

/// A table of more than a thousand entries, up to its last slot.
pub(crate) fn agree_on_a_full_table() -> Result<()> {
    let netdev = Netdev::dummy("d0", "02:11:22:33:44:55")?;
    let rxe = SoftRoce::new("rxe0", &netdev)?;
    rxe.wait_for_gids(1)?;
    let mut batch = String::new();
    for number in 1..=1023 {
        let (high, low) = (number / 256, number % 256);
        writeln!(batch, "address add 10.0.{high}.{low}/32 dev d0")?;
    }
    fs::write("/tmp/addresses", batch)?;
    run(&["ip", "-batch", "/tmp/addresses"])?;
    rxe.wait_for_gids(1024)?;

    let context = Host::new().open("rxe0")?;
    let table = context.query_gid_table()?;
    ensure!(table.len() == 1024, "{} entries of 1024", table.len());
    let mut exact = vec![GidEntry::default(); 1024];
    ensure!(context.query_gid_table_into(&mut exact)? == 1024 && exact == table);
    let error = context.query_gid_table_into(&mut exact[..1023]);
    ensure!(error.is_err_and(|error| error.errno() == 22), "1023 places for 1024 entries");
    // Room beyond one call's: it takes the one call and its answer all the same.
    let mut ample = vec![GidEntry::default(); 5000];
    ensure!(context.query_gid_table_into(&mut ample)? == 1024 && ample[..1024] == table);
    drop(context);

    let by_sysfs = Sysfs::host().query_gid_table("rxe0")?;
    ensure!(by_sysfs.len() == 1024, "{} entries in sysfs", by_sysfs.len());
    for (ours, theirs) in table.iter().zip(&by_sysfs) {
        ensure!(
            (ours.index(), ours.gid(), ours.gid_type())
                == (theirs.entry.index(), theirs.entry.gid(), theirs.entry.gid_type()),
            "{ours:?} by ioctl, {theirs:?} by sysfs"
        );
    }
    compare_verbs("rxe0")
}

/// Slots that were freed and used again: a sparse table.
pub(crate) fn agree_on_a_sparse_table() -> Result<()> {
    let netdev = Netdev::dummy("d0", "02:11:22:33:44:55")?;
    let rxe = SoftRoce::new("rxe0", &netdev)?;
    rxe.wait_for_gids(1)?;
    for last in 1..=9 {
        netdev.address(&format!("10.0.0.{last}/32"))?;
    }
    rxe.wait_for_gids(10)?;
    for last in [2, 5, 6] {
        run(&["ip", "address", "delete", &format!("10.0.0.{last}/32"), "dev", "d0"])?;
    }
    rxe.wait_for_gids(7)?;
    let table = Host::new().open("rxe0")?.query_gid_table()?;
    let dense = table.iter().zip(0..).all(|(entry, place)| entry.index() == place);
    ensure!(!dense, "the table has no empty slot: {table:?}");
    compare_verbs("rxe0")
}

/// libibverbs' answers for a device.
pub(crate) fn compare_verbs(device: &str) -> Result<()> {
    let theirs = run(&["answers", "verbs", device])?;
    compare(&theirs, &verbs_lines(device)?)
}

/// libibumad's answers for all devices, their port GUIDs asked for with each of these rooms, at
/// most 4. Each question reads every P_Key of the device.
pub(crate) fn compare_umad(rooms: &[usize]) -> Result<()> {
    let words: Vec<String> = rooms.iter().map(usize::to_string).collect();
    let command = ["answers", "umad"].into_iter().chain(words.iter().map(String::as_str));
    compare(&run(&command.collect::<Vec<_>>())?, &umad_lines(rooms)?)
}

/// Compares two sets of answers, and shows the first lines that differ.
pub(crate) fn compare(theirs: &str, ours: &str) -> Result<()> {
    let mut differing = String::new();
    let mut count = 0;
    let (mut theirs_left, mut ours_left) = (theirs.lines(), ours.lines());
    loop {
        let pair = (theirs_left.next(), ours_left.next());
        match pair {
            (None, None) => break,
            (their, our) if their == our => count += 1,
            (their, our) => {
                let end = "(nothing)";
                let (their, our) = (their.unwrap_or(end), our.unwrap_or(end));
                writeln!(differing, "rdma-core: {their}\nuverbs:    {our}")?;
                if differing.len() > 4000 {
                    break;
                }
            }
        }
    }
    println!("{count} answers agree");
    ensure!(differing.is_empty(), "answers differ:\n{differing}");
    ensure!(count > 0, "no answer was compared");
    Ok(())
}

fn verbs_lines(name: &str) -> Result<String> {
    let mut host = Host::new();
    let device = host.device(name)?;
    let context = Context::open(&device)?;
    let mut text = format!("guid {:016x}\n", device.node_guid.to_u64());
    device_line(&mut text, &context)?;
    // As the device counts them: netlink counts those that can be asked, none but 0 of a switch.
    let ports = context.query_device()?.raw().base.phys_port_cnt;
    for number in 0..=u32::from(ports) + 1 {
        let answer = context.query_port(number);
        let (gids, pkeys) =
            answer.as_ref().map_or((0, 0), |port| (port.gid_tbl_len, port.pkey_tbl_len));
        port_line(&mut text, number, answer)?;
        for index in 0..gids + 2 {
            gid_line(&mut text, &context, number, index)?;
        }
        for index in 0..pkeys + 2 {
            match host.sysfs().query_pkey(name, number, index) {
                Ok(pkey) => writeln!(text, "pkey {number} {index}: {pkey}")?,
                Err(_) => writeln!(text, "pkey {number} {index}: none")?,
            }
        }
    }
    gid_line(&mut text, &context, 1, i32::MAX.unsigned_abs())?;
    gid_line(&mut text, &context, 1, u32::MAX)?;
    gid_line(&mut text, &context, u32::MAX, 0)?;
    gid_line(&mut text, &context, 257, 0)?;
    for room in [0, 1, 2, 3, 255, 256, 2047] {
        table_lines(&mut text, &context, room)?;
    }
    Ok(text)
}

fn table_lines(text: &mut String, context: &Context, room: usize) -> Result<()> {
    let mut entries = vec![GidEntry::default(); room];
    match context.query_gid_table_into(&mut entries) {
        Ok(count) => {
            writeln!(text, "table {room}: {count}")?;
            for entry in entries.iter().take(count) {
                writeln!(text, "table {room}: {}", entry_text(entry))?;
            }
        }
        Err(error) => writeln!(text, "table {room}: -{}", error.errno())?,
    }
    Ok(())
}

/// A context whose device is removed (where the kernel waits for it: is going to be).
pub(crate) fn agree_on_a_device_that_is_gone() -> Result<()> {
    let lab = lab::vlan_lab()?;
    compare_gone("rxe0", lab::wait_for_removal, move || drop(lab))
}

/// libibverbs' answers for a device that is open when `remove` removes it, which `wait` gives its time.
pub(crate) fn compare_gone(
    device: &str,
    wait: impl FnOnce(&thread::JoinHandle<()>) -> Result<()>,
    remove: impl FnOnce() + Send + 'static,
) -> Result<()> {
    let context = Context::open(&Host::new().device(device)?)?;
    let mut peer = Command::new("answers")
        .args(["gone", device])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("starting answers")?;
    let mut lines = BufReader::new(peer.stdout.take().context("its output")?).lines();
    let mut next = || lines.next().context("answers ended")?.context("reading its answer");
    ensure!(next()?.starts_with("guid ") && next()? == "open");

    let removal = thread::spawn(remove);
    wait(&removal)?;
    let mut ours = String::new();
    device_line(&mut ours, &context)?;
    port_line(&mut ours, 1, context.query_port(1))?;
    gid_line(&mut ours, &context, 1, 0)?;
    gid_line(&mut ours, &context, 9, 0)?;
    table_lines(&mut ours, &context, 256)?;
    table_lines(&mut ours, &context, 0)?;
    drop(context);

    drop(peer.stdin.take().context("its input")?.write_all(b"\n"));
    let theirs: Vec<String> = lines.collect::<Result<_, _>>()?;
    ensure!(peer.wait()?.success(), "answers failed");
    removal.join().map_err(|_| anyhow::anyhow!("the removal failed"))?;
    compare(&theirs.join("\n"), &ours)
}

/// A node that may not be opened.
pub(crate) fn agree_on_a_refused_open() -> Result<()> {
    const FOLDER: &str = "/dev/infiniband";
    let _lab = lab::vlan_lab()?;
    let node = "/dev/infiniband/uverbs0";
    // rdma-core goes on to look here, where udev links every node; without it, it says ENOENT.
    let links = lab::NodeLinks::make()?;
    // Reading is enough for uverbs, and not for programs.
    for (mode, said) in [
        (0o644, "uverbs0 (mode 0644) may not be opened for writing by this user"),
        (0o600, "uverbs0 (mode 0600) may not be opened by this user"),
    ] {
        fs::set_permissions(node, Permissions::from_mode(mode))?;
        let theirs = lab::output_as_nobody(&["answers", "verbs", "rxe0"])?;
        let theirs = String::from_utf8_lossy(&theirs.stdout).into_owned();
        ensure!(theirs.lines().last() == Some("open: errno 13"), "{theirs}");
        let found = lab::output_as_nobody(&["uverbs", "check"])?;
        let found = String::from_utf8_lossy(&found.stdout).into_owned();
        ensure!(found.contains(said), "{found}");
    }
    drop(links);
    let ours = lab::output_as_nobody(&["uverbs", "gids", "--source", "ioctl", "--json"])?;
    let ours: serde_json::Value = serde_json::from_slice(&ours.stdout)?;
    ensure!(ours["problems"][0]["errno"] == 13, "{ours}");

    // Nor may root open one where devices cannot be opened at all.
    fs::set_permissions(node, Permissions::from_mode(0o666))?;
    let device = Host::new().device("rxe0")?;
    ensure!(Context::open(&device).is_ok(), "{node} cannot be opened");
    unshare(CloneFlags::CLONE_NEWNS).context("a mount namespace")?;
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    mount_bind(FOLDER, FOLDER)?;
    mount_remount(FOLDER, MountFlags::BIND | MountFlags::NODEV, "")?;
    let refused =
        Context::open(&device).err().context("a node in a mount with nodev was opened")?;
    ensure!(*refused.cause() == Cause::MountedNodev && refused.errno() == 13, "{refused:?}");
    let found = Command::new("uverbs").arg("check").output()?;
    let found = String::from_utf8_lossy(&found.stdout).into_owned();
    ensure!(found.contains("uverbs0 (mode 0666) may not be opened, as its mount has"), "{found}");
    unmount(FOLDER, UnmountFlags::empty())?;
    Ok(())
}

fn entry_text(entry: &GidEntry) -> String {
    let gid = entry.gid().full().replace(':', "");
    let ifindex = entry.netdev_ifindex().map_or(0, std::num::NonZero::get);
    let (port, index) = (entry.port(), entry.index());
    format!("{port} {index} {gid} type {} ifindex {ifindex}", entry.gid_type().0)
}

fn gid_line(text: &mut String, context: &Context, port: u32, index: u32) -> Result<()> {
    let answer = match context.query_gid_ex(port, index) {
        Ok(Some(entry)) => entry_text(&entry),
        // An empty slot is not an error here; in C it is ENODATA.
        Ok(None) => "errno 61".to_owned(),
        Err(error) => format!("errno {}", error.errno()),
    };
    Ok(writeln!(text, "gid {port} {index}: {answer}")?)
}

fn port_line(text: &mut String, number: u32, answer: Result<PortAttributes, Error>) -> Result<()> {
    let port = match answer {
        Ok(port) => port,
        Err(error) => return Ok(writeln!(text, "port {number}: errno {}", error.errno())?),
    };
    let told = "the ioctl tells it";
    write!(
        text,
        "port {number}: state {} max_mtu {} active_mtu {} gid_tbl_len {} cap {} max_msg_sz {}",
        port.state.0,
        port.max_mtu.context(told)?.0,
        port.active_mtu.context(told)?.0,
        port.gid_tbl_len,
        hex(port.port_cap_flags.into()),
        port.max_msg_sz.context(told)?,
    )?;
    write!(
        text,
        " bad_pkey {} qkey_viol {} pkey_tbl_len {} lid {} sm_lid {} lmc {}",
        port.bad_pkey_cntr.context(told)?,
        port.qkey_viol_cntr.context(told)?,
        port.pkey_tbl_len,
        port.lid,
        port.sm_lid,
        port.lmc,
    )?;
    write!(
        text,
        " max_vl {} sm_sl {} subnet_timeout {} init_type {} width {} speed {} phys {} link {}",
        port.max_vl_num.context(told)?,
        port.sm_sl,
        port.subnet_timeout.context(told)?,
        port.init_type_reply.context(told)?,
        port.active_width.context(told)?.0,
        port.active_speed.context(told)?.0,
        port.phys_state.0,
        port.link_layer.0,
    )?;
    let (flags, more) = (port.flags.context(told)?, port.port_cap_flags2.context(told)?);
    Ok(writeln!(text, " flags {flags} cap2 {}", hex(more.into()))?)
}

/// A number as C's `%#x` writes it: zero has no prefix.
fn hex(number: u64) -> String {
    if number == 0 { "0".to_owned() } else { format!("{number:#x}") }
}

fn device_line(text: &mut String, context: &Context) -> Result<()> {
    let attributes = match context.query_device() {
        Ok(attributes) => attributes,
        Err(error) => return Ok(writeln!(text, "device: errno {}", error.errno())?),
    };
    let raw = attributes.raw();
    let base = &raw.base;
    write!(
        text,
        "device: node {:016x} sys_image {:016x} max_mr_size {} page_size_cap {}",
        attributes.node_guid().to_u64(),
        attributes.sys_image_guid().to_u64(),
        base.max_mr_size,
        base.page_size_cap,
    )?;
    write!(
        text,
        " vendor {} part {} hw {} max_qp {} max_qp_wr {} flags {} max_sge {} max_sge_rd {}",
        base.vendor_id,
        base.vendor_part_id,
        base.hw_ver,
        base.max_qp,
        base.max_qp_wr,
        hex(base.device_cap_flags.into()),
        base.max_sge,
        base.max_sge_rd,
    )?;
    write!(
        text,
        " max_cq {} max_cqe {} max_mr {} max_pd {} rd_atom {} {} {} {} {} atomic {}",
        base.max_cq,
        base.max_cqe,
        base.max_mr,
        base.max_pd,
        base.max_qp_rd_atom,
        base.max_ee_rd_atom,
        base.max_res_rd_atom,
        base.max_qp_init_rd_atom,
        base.max_ee_init_rd_atom,
        base.atomic_cap,
    )?;
    write!(
        text,
        " max_ee {} max_rdd {} max_mw {} raw {} {} mcast {} {} {} max_ah {} srq {} {} {}",
        base.max_ee,
        base.max_rdd,
        base.max_mw,
        base.max_raw_ipv6_qp,
        base.max_raw_ethy_qp,
        base.max_mcast_grp,
        base.max_mcast_qp_attach,
        base.max_total_mcast_qp_attach,
        base.max_ah,
        base.max_srq,
        base.max_srq_wr,
        base.max_srq_sge,
    )?;
    writeln!(
        text,
        " max_pkeys {} ack_delay {} ports {} timestamp_mask {} clock {} flags_ex {} max_dm {}",
        base.max_pkeys,
        base.local_ca_ack_delay,
        base.phys_port_cnt,
        raw.timestamp_mask,
        raw.hca_core_clock,
        hex(raw.device_cap_flags_ex),
        raw.max_dm_size,
    )?;
    Ok(())
}

/// What `answers umad` prints, by our strict rules.
fn umad_lines(rooms: &[usize]) -> Result<String> {
    let sysfs = Sysfs::host();
    let names = strict::get_cas_names(&sysfs, 128);
    let mut text = format!("names: {}\n", names.len());
    let mut known = Vec::new();
    for name in &names {
        writeln!(text, "name {name}")?;
        known.push(Some(name.to_string()));
    }
    known.extend([Some("nosuch0".to_owned()), None]);
    for name in &known {
        let name = name.as_deref();
        let shown = name.unwrap_or("(default)");
        match strict::get_ca(&sysfs, name) {
            Ok(ca) => {
                writeln!(text, "ca {shown}: 0")?;
                ca_lines(&mut text, &ca)?;
            }
            Err(failure) => writeln!(text, "ca {shown}: {}", failure.value())?,
        }
        for number in 0..=3 {
            match strict::get_port(&sysfs, name, number) {
                Ok(port) => {
                    writeln!(text, "get_port {shown} {number}: 0")?;
                    umad_port_line(&mut text, &port)?;
                }
                Err(failure) => writeln!(text, "get_port {shown} {number}: {}", failure.value())?,
            }
        }
        for &room in rooms {
            let mut guids = [Guid::from(0xabab_abab_abab_abab); 4];
            let answer = strict::get_ca_portguids(&sysfs, name, Some(&mut guids[..room]));
            write!(text, "portguids {shown} array {room}: {}", count(answer))?;
            for guid in guids {
                write!(text, " {:016x}", guid.to_u64())?;
            }
            let answer = strict::get_ca_portguids(&sysfs, name, None);
            writeln!(text, "\nportguids {shown} null {room}: {}", count(answer))?;
        }
    }
    Ok(text)
}

fn count(answer: Result<usize, strict::Failure>) -> i64 {
    match answer {
        Ok(count) => i64::try_from(count).unwrap_or(i64::MAX),
        Err(failure) => failure.value().into(),
    }
}

fn ca_lines(text: &mut String, ca: &strict::Ca) -> Result<()> {
    writeln!(
        text,
        "ca {} type {} ports {} fw '{}' type '{}' hw '{}' node {:016x} system {:016x}",
        ca.ca_name,
        ca.node_type,
        ca.numports,
        ca.fw_ver,
        ca.ca_type,
        ca.hw_ver,
        ca.node_guid.to_u64(),
        ca.system_guid.to_u64(),
    )?;
    ca.ports.iter().flatten().try_for_each(|port| umad_port_line(text, port))
}

fn umad_port_line(text: &mut String, port: &strict::Port) -> Result<()> {
    write!(
        text,
        "port {}: ca {} lid {} lmc {} sm_lid {} sm_sl {} state {} phys {} rate {} cap {}",
        port.portnum,
        port.ca_name,
        port.base_lid,
        port.lmc,
        port.sm_lid,
        port.sm_sl,
        port.state,
        port.phys_state,
        port.rate,
        hex(port.capmask.into()),
    )?;
    let (prefix, guid) = (port.gid_prefix, port.port_guid.to_u64());
    write!(text, " prefix {prefix:016x} guid {guid:016x} link {} pkeys", port.link_layer)?;
    for pkey in &port.pkeys {
        write!(text, " {pkey}")?;
    }
    Ok(writeln!(text)?)
}
