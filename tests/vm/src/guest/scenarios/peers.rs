//! The peers, on which the other scenarios rely: rdma-core's programs from Debian, and our own C programs
//! linked with rdma-core's libraries.

use crate::lab::{self, run};
use anyhow::{Result, ensure};

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
