//! Slurm on two hosts with soft RoCE, by the lines and commands of `src/docs/slurm.md` and the scripts that packages
//! install.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::pairs::{Side, two_sides};
use crate::lab::{self, Exclusive};
use crate::supervisor::PATH;
use uverbs_vm::has_its_turn;

const PAGE: &str = include_str!("../../../../../src/docs/slurm.md");
const BUSYBOX: &str = "/bin/busybox";
const SHELL: &str = "/bin/sh";
/// The usual commands.
const APPLETS: &str = "/tmp/applets";
const HEALTH_CHECK: &str = "/usr/share/uverbs/slurm/health-check";

/// What a small cluster has beside the page's lines.
const CONFIGURATION: &str = "\
ClusterName=lab
SlurmctldHost=host1
SlurmUser=root
StateSaveLocation=/tmp/slurm/state
SlurmdSpoolDir=/tmp/slurm/%n
SlurmdPidFile=/tmp/slurm/%n.pid
SlurmctldPidFile=/tmp/slurm/slurmctld.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/none
PriorityType=priority/basic
JobAcctGatherType=jobacct_gather/none
ReturnToService=1
SlurmdTimeout=0
SlurmdParameters=config_overrides
NodeName=host[1-2] CPUs=2
PartitionName=all Nodes=ALL Default=YES
";

const INTERVAL: &str = "HealthCheckInterval=60";

/// The lines of the page's first block that begins so, without the sign of the shell.
fn block(beginning: &str) -> Result<String> {
    let mut blocks = PAGE.split("```").skip(1).step_by(2);
    let block = blocks.find_map(|block| {
        let (_, lines) = block.split_once('\n')?;
        lines.starts_with(beginning).then_some(lines)
    });
    let block = block.with_context(|| format!("the page has no block with {beginning}"))?;
    Ok(block.replace("$ ", ""))
}

/// A running cluster. Ends on drop.
struct Cluster<'a> {
    sides: &'a [Side; 2],
    daemons: Vec<Child>,
}

impl<'a> Cluster<'a> {
    fn start(sides: &'a [Side; 2]) -> Result<Self> {
        let mut this = Self { sides, daemons: Vec::new() };
        for folder in [
            APPLETS,
            "/etc/slurm",
            "/etc/munge",
            "/run/munge",
            "/var/lib/munge",
            "/var/log/munge",
            "/tmp/slurm/state",
            "/tmp/slurm/host1",
            "/tmp/slurm/host2",
        ] {
            fs::create_dir_all(folder)?;
        }
        if !Path::new(SHELL).exists() {
            symlink(BUSYBOX, SHELL)?;
        }
        lab::run(&[BUSYBOX, "--install", "-s", APPLETS])?;
        fs::write("/etc/passwd", "root:x:0:0::/:/bin/sh\n")?;
        fs::write("/etc/group", "root:x:0:\n")?;
        fs::write("/etc/nsswitch.conf", "hosts: files\n")?;
        fs::write("/etc/hosts", "127.0.0.1 localhost\n192.168.250.1 host1\n192.168.250.2 host2\n")?;
        fs::write("/etc/munge/munge.key", [7; 64])?;
        fs::set_permissions("/etc/munge/munge.key", fs::Permissions::from_mode(0o400))?;
        fs::write("/etc/slurm/cgroup.conf", "CgroupPlugin=cgroup/v1\n")?;
        let page = block("HealthCheckProgram=")?;
        ensure!(page.contains(INTERVAL), "{page}");
        // It is waited for again and again.
        let page = page.replace(INTERVAL, "HealthCheckInterval=8");
        fs::write("/etc/slurm/slurm.conf", format!("{CONFIGURATION}{page}"))?;
        this.daemon(0, "munged --force --foreground")?;
        lab::wait_until("munge answers", || Path::new("/run/munge/munge.socket.2").exists())?;
        this.daemon(0, "slurmctld -D")?;
        this.daemon(0, "slurmd -D")?;
        this.daemon(1, "slurmd -D")?;
        for node in ["host1", "host2"] {
            this.wait(node, "is idle", |state, _| state == "IDLE")?;
        }
        Ok(this)
    }

    /// A line of a shell on a host, with its name.
    fn command(&self, side: usize, line: &str) -> Command {
        let own = &self.sides[side];
        let mut command = Command::new("ip");
        let [_, exec @ ..] = own.namespace.exec();
        let line = format!("hostname {}; {line}", own.name());
        command.args(exec).args([BUSYBOX, "unshare", "-u", SHELL, "-c", &line]);
        command.env("PATH", format!("{PATH}:{APPLETS}")).current_dir("/tmp/slurm");
        command.stdin(Stdio::null());
        command
    }

    fn daemon(&mut self, side: usize, line: &str) -> Result<()> {
        let child = self.command(side, &format!("exec {line}")).spawn()?;
        self.daemons.push(child);
        Ok(())
    }

    /// What a line prints that succeeds.
    fn run(&self, side: usize, line: &str) -> Result<String> {
        let output = self.command(side, line).output()?;
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        let stderr = String::from_utf8_lossy(&output.stderr);
        println!("{} $ {line}\n{stdout}{stderr}", self.sides[side].name());
        ensure!(output.status.success(), "{line}: {}: {stdout}{stderr}", output.status);
        Ok(stdout)
    }

    /// A node's state and the reason for it.
    fn node(&self, node: &str) -> Result<(String, String)> {
        let output = self.command(0, &format!("scontrol show node {node}")).output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let of = |key: &str| text.lines().find_map(|line| line.trim().strip_prefix(key));
        let state = of("State=").and_then(|own| own.split(' ').next()).unwrap_or_default();
        let reason = of("Reason=").and_then(|own| Some(own.rsplit_once(" [")?.0));
        Ok((state.to_owned(), reason.unwrap_or_default().to_owned()))
    }

    fn wait(&self, node: &str, what: &str, is_so: impl Fn(&str, &str) -> bool) -> Result<()> {
        let mut seen = None;
        let waited = lab::wait_within(Duration::from_mins(3), &format!("{node} {what}"), || {
            let now = self.node(node).ok();
            if now != seen {
                println!("{node}: {now:?}");
                seen = now;
            }
            std::thread::sleep(Duration::from_millis(500));
            seen.as_ref().is_some_and(|(state, reason)| is_so(state, reason))
        });
        waited.with_context(|| format!("{node} is {seen:?}"))
    }
}

impl Drop for Cluster<'_> {
    fn drop(&mut self) {
        for daemon in self.daemons.iter_mut().rev() {
            // It may be over.
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
        for made in [SHELL, "/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/hosts"] {
            let _ = fs::remove_file(made);
        }
    }
}

/// What Slurm does to a node whose port goes down, and what jobs get. Each step of Slurm takes seconds: a run that
/// takes samples has one part of three.
pub(crate) fn drains_and_returns() -> Result<()> {
    lab::on_the_newest_kernel("soft RoCE is of one namespace only there")?;
    let _mode = Exclusive::set()?;
    // With no cable between them, so that only one port goes down.
    for end in ["data1", "data2"] {
        lab::run(&["ip", "link", "add", end, "type", "dummy"])?;
    }
    let sides = two_sides()?;
    sides[0].ip("addr add 10.50.0.1/24 dev d0")?;
    // Here the GID has another index.
    sides[1].ip("addr add fd00:50::2/64 dev d0 nodad")?;
    sides[1].ip("addr add 10.50.0.2/24 dev d0")?;
    let cluster = Cluster::start(&sides)?;
    if has_its_turn(0, 3) {
        variables(&cluster)?;
        a_job_can_run(&cluster)?;
    }
    if has_its_turn(1, 3) {
        slurm_drains(&cluster)?;
    }
    if has_its_turn(2, 3) {
        a_person_drains(&cluster)?;
    }
    Ok(())
}

/// Drained and returned, by Slurm itself.
fn slurm_drains(cluster: &Cluster<'_>) -> Result<()> {
    let sides = cluster.sides;
    let is_drained = |state: &str, reason: &str| state.contains("DRAIN") && reason == DRAINED;
    sides[1].ip("link set d0 down")?;
    cluster.wait("host2", "is drained", is_drained)?;
    ensure!(cluster.node("host1")?.0 == "IDLE", "the other is drained, too");
    refuses(cluster)?;
    cluster.wait("host2", "is drained again", is_drained)?;
    sides[1].ip("link set d0 up")?;
    cluster.wait("host2", "is back", |state, reason| state == "IDLE" && reason.is_empty())
}

/// What a person has drained stays so, whether the port is down or up.
fn a_person_drains(cluster: &Cluster<'_>) -> Result<()> {
    cluster.run(0, "scontrol update NodeName=host2 State=DRAIN Reason='fan is replaced'")?;
    for state in ["down", "up"] {
        cluster.sides[1].ip(&format!("link set d0 {state}"))?;
        cluster.run(1, &format!("SLURMD_NODENAME=host2 {HEALTH_CHECK}"))?;
        let (state, reason) = cluster.node("host2")?;
        ensure!(state.contains("DRAIN") && reason == "fan is replaced", "{state}: {reason}");
    }
    Ok(())
}

/// The reason while the port is down.
const DRAINED: &str = "uverbs: netdev-down,port-down";

/// Each task has the index of its own node, and none that is not known; what a job has set stays.
fn variables(cluster: &Cluster<'_>) -> Result<()> {
    for (set, expected) in [
        ("", ["host1 NCCL=1 UCX=1", "host2 NCCL=2 UCX=2"]),
        ("NCCL_IB_GID_INDEX=0", ["host1 NCCL=0 UCX=1", "host2 NCCL=0 UCX=2"]),
        ("NCCL_IB_HCA=rxe1", ["host1 NCCL= UCX=1", "host2 NCCL= UCX=2"]),
    ] {
        let show = "echo $SLURMD_NODENAME NCCL=$NCCL_IB_GID_INDEX UCX=$UCX_IB_GID_INDEX";
        let printed = cluster.run(0, &format!("{set} srun -N2 -n2 sh -c '{show}'"))?;
        let mut lines: Vec<&str> = printed.lines().collect();
        lines.sort_unstable();
        ensure!(lines == expected, "{set}: {lines:?}");
    }
    Ok(())
}

/// The verdict on a job's nodes, by the commands of the page.
fn a_job_can_run(cluster: &Cluster<'_>) -> Result<()> {
    // Not a batch script: PID 1 here does not reap the processes that srun leaves, and Slurm would wait for them.
    // One kernel has no two devices of one name, as the hosts of a cluster have.
    let lines = block("$ mkdir snapshots")?
        .replace("uverbs fleet", "sed -i s/rxe2/rxe1/g snapshots/*\nuverbs fleet");
    fs::write("/tmp/slurm/fleet.sh", format!("set -ex\n{lines}"))?;
    let said = cluster.run(0, "salloc -N2 sh fleet.sh 2>&1")?;
    for part in ["NCCL: right on all hosts:", "UCX: right on all hosts:", "2 hosts"] {
        ensure!(said.contains(part), "{said}");
    }
    Ok(())
}

/// How often a job is to start on a bad node, which the health check may drain first.
const TRIES: u32 = 8;

/// A job does not start on a bad node that nobody has drained yet.
fn refuses(cluster: &Cluster<'_>) -> Result<()> {
    let (resume, submit) = (
        "scontrol update NodeName=host2 State=RESUME",
        "sbatch -w host2 --output=never.out --wrap='echo it started'",
    );
    cluster.run(0, &format!("{resume} && {submit}"))?;
    for _ in 0..TRIES {
        cluster.wait("host2", "is drained", |state, _| state.contains("DRAIN"))?;
        let jobs = cluster.run(0, "scontrol show jobs -o")?;
        let job = jobs.lines().find(|line| line.contains("never.out")).context("no job")?;
        ensure!(job.contains("JobState=PENDING") && !job.contains("Held"), "{job}");
        // It was to start, and the prolog refused it; unless the health check drained the node before.
        if !job.contains("Restarts=0") {
            ensure!(!Path::new("/tmp/slurm/never.out").exists(), "it started");
            return Ok(());
        }
        cluster.run(0, resume)?;
    }
    anyhow::bail!("the health check drained the node before the job was to start, {TRIES} times")
}
