//! `QUERY_PORT`: the driver's answers about ports in every mode, and its refusals.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use anyhow::{Context as _, Result, ensure};
use rustix::io::Errno;
use uverbs::context::Context;
use uverbs::driver::DriverId;
use uverbs::error::Cause;
use uverbs::host::Host;
use uverbs::mlx5::port::{SteeringPort, VportNumber};
use uverbs::mlx5::{devx, query_port, query_port_into};
use uverbs_mlx5_function::control::Fault;
use uverbs_mlx5_function::description::Description;

use crate::lab::mlx5::Mlx5;
use crate::lab::{self, Netdev, SoftRoce, run};
use crate::scenarios::answers::compare;

/// The first kernel that has the query.
const SINCE: (u32, u32) = (5, 13);

/// Outside switchdev mode the query succeeds without data. A port that does not exist is an error.
pub(crate) fn nothing_to_tell() -> Result<()> {
    for description in [
        Description::infiniband(1),
        Description::infiniband(2),
        Description::roce(),
        Description::switchdev(),
        Description::embedded_cpu(2),
    ] {
        println!("{:?}", description.mode);
        let device = Mlx5::bind(0, &description)?;
        let context = Host::new().open(device.name())?;
        let last = *context.ports().end();
        ensure!(usize::try_from(last)? == description.ports.len());
        for number in 0..=last + 1 {
            let answer = query_port(&context, number);
            println!("{number}: {answer:?}");
            let known = lab::kernel()? >= SINCE;
            match answer {
                Ok(port) => {
                    ensure!(known && port == SteeringPort::default(), "{port:?}");
                    ensure!((1..=last).contains(&number), "port {number}");
                }
                Err(error) if known => {
                    ensure!(*error.cause() == Cause::NoSuchPort && error.errno() == 22);
                    ensure!(number == 0 || number > last, "port {number}");
                }
                Err(error) => {
                    ensure!(*error.cause() == Cause::UnknownToKernel && error.errno() == 93);
                    ensure!(error.to_string().contains("Linux 5.13"), "{error}");
                }
            }
        }
    }
    Ok(())
}

/// Every port of a device in switchdev mode.
pub(super) fn as_described(
    device: &Mlx5,
    description: &Description,
    vports: &[Option<VportNumber>],
) -> Result<()> {
    let context = Host::new().open(device.name())?;
    ensure!(usize::try_from(*context.ports().end())? == vports.len());
    let mut registers = BTreeSet::new();
    for (number, vport) in (1..).zip(vports) {
        let answer = query_port(&context, number);
        println!("{number}: {answer:?}");
        if lab::kernel()? < SINCE {
            let error = answer.err().context("an answer of an old kernel's")?;
            ensure!(*error.cause() == Cause::UnknownToKernel && error.errno() == 93);
            continue;
        }
        let Some(vport) = *vport else {
            let error = answer.err().context("an answer about nothing")?;
            ensure!(*error.cause() == Cause::NoRepresentor && error.errno() == 95);
            continue;
        };
        let port = answer?;
        let eswitch = &description.eswitch;
        let is_uplink = vport == VportNumber::UPLINK;
        ensure!(port.flags() == if is_uplink { 0x3d } else { 0x3f });
        ensure!(port.vport() == Some(vport));
        ensure!(port.esw_owner_vhca_id() == Some(description.vhca_id));
        let vhca_id = (!is_uplink).then(|| eswitch.vport_vhca_id.wrapping_add(vport.0));
        ensure!(port.vport_vhca_id() == vhca_id);
        let icm = if is_uplink {
            eswitch.uplink_icm
        } else {
            let own = u64::from(vport.0) << 16;
            (eswitch.vport_icm.0 + own, eswitch.vport_icm.1 + own)
        };
        ensure!(port.vport_steering_icm_rx() == Some(icm.0));
        ensure!(port.vport_steering_icm_tx() == Some(icm.1));
        let register = port.reg_c0().context("no register C0")?;
        ensure!(register.mask == 0xffff_0000 && register.value & register.mask == register.value);
        ensure!(registers.insert(register.value), "two ports with one value");
    }
    Ok(())
}

/// rdma-core's answers for all ports of a device, and for numbers that are no ports.
pub(super) fn compare_with_rdma_core(device: &str) -> Result<()> {
    let context = Host::new().open(device)?;
    let mut ours = String::new();
    for number in 0..=context.ports().end() + 1 {
        write!(ours, "port {number}: ")?;
        match query_port(&context, number) {
            Err(error) => writeln!(ours, "errno {}", error.errno())?,
            Ok(port) => {
                let port = port.as_abi();
                write!(ours, "flags {:#x} vport {} ", port.flags, port.vport)?;
                write!(ours, "vport_vhca_id {} ", port.vport_vhca_id)?;
                write!(ours, "esw_owner_vhca_id {} ", port.esw_owner_vhca_id)?;
                write!(ours, "icm_rx {:#x} ", port.vport_steering_icm_rx)?;
                write!(ours, "icm_tx {:#x} ", port.vport_steering_icm_tx)?;
                writeln!(ours, "reg_c0 {:#x} {:#x}", port.reg_c0_value, port.reg_c0_mask)?;
            }
        }
    }
    // C prints no "0x" before a zero.
    let ours = ours.replace("0x0 ", "0 ").replace("0x0\n", "0\n");
    drop(context);
    compare(&run(&["mlx5", "ports", device])?, &ours)
}

/// Memory for the answer that is too short, and longer than the kernel's structure.
pub(crate) fn odd_memory() -> Result<()> {
    let mut device = Mlx5::bind(0, &Description::embedded_cpu(1))?;
    device.switchdev()?;
    let context = Host::new().open(device.name())?;
    let known = lab::kernel()? >= SINCE;
    for room in [0, 1, 16, 39, 40, 41, 64, 4096, 65535, 65536] {
        let mut answer = vec![0xee; room];
        let errno = query_port_into(&context, 1, &mut answer).err().map_or(0, |e| e.errno());
        let expected = match room {
            // The encoder's own error.
            65536 => 22,
            _ if !known => 93,
            0..40 => 22,
            _ => 0,
        };
        ensure!(errno == expected, "{room} bytes: errno {errno}");
        if errno == 0 {
            let mut exact = [0; 40];
            query_port_into(&context, 1, &mut exact)?;
            ensure!(answer[..40] == exact && exact[..8] == 0x3fu64.to_ne_bytes());
            ensure!(answer[40..].iter().all(|byte| *byte == 0), "{room} bytes");
        } else {
            ensure!(answer.iter().all(|byte| *byte == 0xee), "written in spite of errno {errno}");
        }
        if room <= 4096 {
            let theirs = run(&["mlx5", "port", device.name(), "1", &room.to_string()])?;
            ensure!(theirs.trim() == format!("errno {errno}"), "{room} bytes: {theirs}");
        }
    }
    Ok(())
}

/// Another driver's device is refused by name, and nothing is sent to it.
pub(crate) fn another_driver() -> Result<()> {
    const NOP: [u8; 16] = [0x08, 0x0d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let netdev = Netdev::dummy("d0", "02:11:22:33:44:55")?;
    let rxe = SoftRoce::new("rxe0", &netdev)?;
    rxe.wait_for_gids(1)?;
    let mlx5 = Mlx5::bind(0, &Description::infiniband(1))?;
    let mut host = Host::new();
    let device = host.device("rxe0")?;
    let context = Context::open(&device)?;
    let nop = devx::general_cmd(&context, &NOP, &mut [0; 16]);
    for error in [query_port(&context, 1).err(), nop.err(), devx::open(&device).err()] {
        let error = error.context("rxe answered as mlx5")?;
        println!("{error}");
        ensure!(*error.cause() == Cause::OtherDriver(DriverId::RXE) && error.errno() == 95);
    }
    let theirs = run(&["mlx5", "port", "rxe0", "1", "40"])?;
    ensure!(theirs.trim() == "errno 95", "{theirs}");
    // What the kernel says where the driver is taken for another: the header's check.
    let mut device = host.device(mlx5.name())?;
    device.driver = Some(DriverId::RXE);
    let error = Context::open(&device).err().context("a wrong driver id was accepted")?;
    ensure!(error.errno() == 22, "{error}");
    Ok(())
}

/// In switchdev mode the driver asks the firmware, and passes its refusal on.
pub(crate) fn firmware_refuses() -> Result<()> {
    const QUERY_ESW_VPORT_CONTEXT: u16 = 0x752;
    const STATUSES: [(u8, Errno); 6] = [
        (0x01, Errno::IO),
        (0x03, Errno::INVAL),
        (0x06, Errno::BUSY),
        (0x08, Errno::NOMEM),
        (0x0f, Errno::AGAIN),
        (0x77, Errno::IO),
    ];
    let mut device = Mlx5::bind(0, &Description::embedded_cpu(2))?;
    device.switchdev()?;
    let function = device.function();
    let context = Host::new().open(device.name())?;
    let before = match query_port(&context, 2) {
        Ok(port) => port,
        Err(error) => {
            ensure!(lab::kernel()? < SINCE && *error.cause() == Cause::UnknownToKernel, "{error}");
            return Ok(());
        }
    };
    for (status, errno) in STATUSES {
        let fault = Fault::Status { status, syndrome: 0xbeef };
        function.inject(QUERY_ESW_VPORT_CONTEXT, fault)?;
        let error = query_port(&context, 2).err().context("an answer without the firmware's")?;
        println!("status {status:#x}: {error}");
        // Not least: EIO of a device that is there is not "gone".
        ensure!(*error.cause() == Cause::Os(errno.raw_os_error()), "{error:?}");
        let theirs = run(&["mlx5", "port", device.name(), "2", "40"])?;
        ensure!(theirs.trim() == format!("errno {}", error.errno()), "{theirs}");
        function.clear()?;
    }
    ensure!(query_port(&context, 2)? == before);
    Ok(())
}
