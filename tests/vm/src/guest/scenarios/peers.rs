//! The programs that answer the same questions by other means, as the other scenarios rely on
//! them: rdma-core's from Debian, and our own C programs linked with its libraries.

use crate::lab::mlx5::Mlx5;
use crate::lab::{self, output, run};
use anyhow::{Result, ensure};
use uverbs_mlx5_function::control::Fault;
use uverbs_mlx5_function::description::Description;

/// rdma-core's mlx5 library tells the uplink of an e-switch, and carries commands to the firmware.
pub(crate) fn answer_for_mlx5() -> Result<()> {
    const CREATE_UCTX: u16 = 0xa04;
    const NOP_OPCODE: u16 = 0x80d;
    const NOP: &str = "080d0000000000000000000000000000";
    let mut device = Mlx5::bind(0, &Description::switchdev())?;
    device.switchdev()?;
    let name = device.name();
    let told = run(&["mlx5", "ports", name])?;
    println!("{told}");
    // QUERY_PORT came with 5.13.
    let wanted = if lab::kernel()? >= (5, 13) {
        "port 0: errno 22\n\
         port 1: errno 95\n\
         port 2: flags 0x3d vport 65535 vport_vhca_id 0 esw_owner_vhca_id 42 \
         icm_rx 0x1111000022220000 icm_tx 0x3333000044440000 reg_c0 0x10000 0xffff0000\n\
         port 3: errno 22\n"
    } else {
        "port 0: errno 93\nport 1: errno 93\nport 2: errno 93\nport 3: errno 93\n"
    };
    ensure!(told == wanted, "not {wanted}");
    let function = device.function();
    let nop = |context: &str| {
        function.commands_during(|| {
            let said = output(&["mlx5", "devx", name, context, "16", NOP])?;
            let told = String::from_utf8_lossy(&said.stdout).into_owned();
            println!("{context}: {told}");
            Ok(told)
        })
    };
    let done = "errno 0 status 0 syndrome 0x0\n";
    let (told, commands) = nop("devx")?;
    ensure!(told.starts_with(done), "not {done}");
    ensure!(commands.iter().any(|command| command.opcode == NOP_OPCODE && command.uid != 0));

    // 6.1 gives the answer of a refused command; 5.10 makes an errno of it.
    function.inject(NOP_OPCODE, Fault::Status { status: 3, syndrome: 0xbeef })?;
    let (told, _) = nop("devx")?;
    ensure!(told.starts_with(if lab::kernel()? >= (6, 1) {
        "errno 121 status 3 syndrome 0xbeef\n"
    } else {
        "errno 22 status 0 syndrome 0x0\n"
    }));

    // Without DEVX there is nobody in whose name the command could be given.
    function.inject(CREATE_UCTX, Fault::Status { status: 3, syndrome: 0 })?;
    for (context, wanted) in
        [("devx", "open: errno 22\n"), ("plain", "errno 22 status 0 syndrome 0x0\n")]
    {
        let (told, commands) = nop(context)?;
        ensure!(told.starts_with(wanted), "not {wanted}");
        ensure!(commands.iter().all(|command| command.opcode != NOP_OPCODE), "{commands:?}");
    }
    Ok(())
}

/// Every peer runs and says something plausible.
pub(crate) fn answer() -> Result<()> {
    let _lab = lab::vlan_lab()?;
    for (command, expected) in [
        (&["ibv_devices"][..], "rxe0"),
        (&["ibv_devinfo", "-v"], "fe80::11:22ff:fe33:4455, RoCE v2"),
        (&["ibstat"], "CA 'rxe0'"),
        (&["rdma", "link"], "link rxe0/1 state ACTIVE"),
        (&["strace", "-V"], "strace -- version"),
        (&["answers", "verbs", "rxe0"], "gid 1 0: 1 0 fe800000000000000011"),
        (&["answers", "umad"], "name rxe0"),
    ] {
        let said = run(command)?;
        let command = command.join(" ");
        println!("# {command}\n{said}");
        ensure!(said.contains(expected), "`{command}` does not say {expected:?}");
    }
    Ok(())
}
