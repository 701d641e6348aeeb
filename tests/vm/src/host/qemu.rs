//! One boot: QEMU with a kernel, an initramfs and two serial ports, watched until it ends.

use crate::apt::Checked;
use crate::kernels::Kernel;
use crate::machines::Machine;
use crate::{boards, console};
use anyhow::{Context, Result, ensure};
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use uverbs_vm::report::Report;
use uverbs_vm::{REPORTS, SAMPLE, TIME_SCALE, WORLDS, stretched, time_scale};

/// How long one boot may take, the tests in it included.
const LIMIT: Duration = Duration::from_mins(40);
/// How long a person may play.
const LIMIT_OF_A_PERSON: Duration = Duration::from_hours(24);
/// How long QEMU may take to end after the guest's last word.
const END_LIMIT: Duration = Duration::from_mins(1);
/// How long QEMU may take to end after it has closed its connections to the devices.
const CLOSE_LIMIT: Duration = Duration::from_secs(10);

/// What is booted.
#[derive(Debug)]
pub(crate) struct Boot<'a> {
    /// The unpacked QEMU, which has the kernel's machine.
    pub(crate) qemu: &'a Path,
    /// The kernel.
    pub(crate) kernel: &'a Kernel,
    /// The initramfs.
    pub(crate) initramfs: PathBuf,
    /// Further arguments for QEMU: its devices.
    pub(crate) devices: Vec<String>,
    /// Whether it has one processor, whose clock counts instructions.
    pub(crate) is_counted: bool,
    /// How many processors it has otherwise.
    pub(crate) processors: u8,
    /// Where the logs go: `console.log`, `report.log`, `qemu.log`.
    pub(crate) logs: PathBuf,
    /// The seed of samples; none where all is wanted.
    pub(crate) sample: Option<u64>,
    /// Whether a person uses it.
    pub(crate) is_played_with: bool,
}

impl Boot<'_> {
    /// Boots, and gives every report to `on_report` as it comes. What it returns is the line that
    /// the guest hears.
    ///
    /// `is_broken` says whether a device that others serve has ended, with which there is nothing
    /// more to wait for.
    ///
    /// Returns what was wrong with the boot itself: the kernel's complaints, a missing end, a
    /// limit passed. None of it is an error here; errors are the host's own.
    pub(crate) fn run(
        &self,
        mut on_report: impl FnMut(Report) -> Option<String>,
        is_broken: impl Fn() -> bool,
    ) -> Result<Vec<String>> {
        let mut reports = Reports::create(self.log("report.log"))?;
        File::create(self.log("console.log"))?;
        let mut answers = self.answers()?;
        let mut qemu = Running(self.command()?.spawn().context("starting QEMU")?);

        let mut wrong = Vec::new();
        let limit = if self.is_played_with { LIMIT_OF_A_PERSON } else { LIMIT };
        let patience = boards::of(self.kernel.machine)?.patience;
        let mut deadline = Instant::now() + stretched(limit) * patience;
        let mut late = "the guest was not done in time";
        let (mut ended, mut broken) = (false, false);
        loop {
            let exited = qemu.0.try_wait()?;
            for report in reports.fresh()? {
                if report == Report::End {
                    ended = true;
                    late = "the guest did not switch off";
                    deadline = Instant::now() + stretched(END_LIMIT) * patience;
                }
                if let Some(line) = on_report(report) {
                    answers
                        .write_all(format!("{line}\n").as_bytes())
                        .context("telling the guest")?;
                }
            }
            // QEMU that ends closes the connections a little before.
            if !ended && !broken && is_broken() {
                broken = true;
                late = "an mlx5 function ended before the machine";
                deadline = Instant::now() + stretched(CLOSE_LIMIT);
            }
            if let Some(status) = exited {
                if !status.success() {
                    wrong.push(format!("QEMU: {status}"));
                }
                break;
            }
            if Instant::now() > deadline {
                wrong.push(late.to_owned());
                break;
            }
            thread::sleep(Duration::from_millis(20));
        }
        drop(qemu);
        if !ended {
            wrong.push("the guest's end mark is missing".into());
        }
        wrong.extend(console::complaints(&self.console()));
        if !wrong.is_empty() {
            wrong.push(format!("the console's log, {}, ends:", self.log("console.log").display()));
            wrong.push(console::tail(&self.console(), 40));
            wrong.push(fs::read_to_string(self.log("qemu.log")).unwrap_or_default());
        }
        Ok(wrong)
    }

    /// The pipe whose end the guest reads as its report port. It is open on both ends here: QEMU
    /// would wait for a writer.
    fn answers(&self) -> Result<File> {
        let path = self.log("answers");
        if path.exists() {
            fs::remove_file(&path)?;
        }
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU)?;
        Ok(OpenOptions::new().read(true).write(true).open(path)?)
    }

    fn log(&self, name: &str) -> PathBuf {
        self.logs.join(name)
    }

    fn console(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.log("console.log")).unwrap_or_default()).into_owned()
    }

    /// The command line.
    fn command(&self) -> Result<Command> {
        let board = boards::of(self.kernel.machine)?;
        let mut command = program(self.qemu, self.kernel.machine)?;
        for directory in ["usr/share/qemu", "usr/share/seabios", "usr/share/slof"] {
            command.arg("-L").arg(self.qemu.join(directory));
        }
        // Shared memory: a device outside of QEMU's process can read and write it.
        command
            .args(["-machine", &format!("{},memory-backend=memory", board.model)])
            .args(["-object", "memory-backend-memfd,id=memory,size=1G,share=on"])
            .args(["-accel", "tcg", "-cpu", board.processor])
            .args(["-nodefaults", "-display", "none", "-no-reboot"]);
        if self.is_counted {
            command.args(["-smp", "1", "-icount", "shift=0"]);
        } else {
            command.args(["-smp", &self.processors.to_string()]);
        }
        let answers = format!(",input-path={}", self.log("answers").display());
        for (id, log, more) in [("console", "console.log", ""), ("report", "report.log", &answers)]
        {
            let path = self.log(log);
            let file = format!("file,id={id},append=on,path={}{more}", path.display());
            command.args(["-chardev", &file]);
            if id == "console" || board.reports.is_empty() {
                command.args(["-serial", &format!("chardev:{id}")]);
            }
        }
        for device in board.reports {
            command.args(["-device", device]);
        }
        command.args(board.more).args(&self.devices);
        // An oops ends the boot at once. The watchdogs' patience is that of a slow machine. What
        // the kernel does not know itself, like the last one, becomes init's environment.
        let [console, reports] = board.ports;
        let append = format!(
            "console={console} loglevel=5 panic=-1 oops=panic watchdog_thresh=60 \
             rcupdate.rcu_cpu_stall_timeout=300 workqueue.watchdog_thresh=120 {REPORTS}={reports} \
             {TIME_SCALE}={} {WORLDS}={}{}",
            time_scale() * board.patience,
            std::env::var(WORLDS).unwrap_or_default(),
            self.sample.map(|seed| format!(" {SAMPLE}={seed}")).unwrap_or_default()
        );
        command
            .arg("-kernel")
            .arg(&self.kernel.image)
            .arg("-initrd")
            .arg(&self.initramfs)
            .args(["-append", &append])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(self.log("qemu.log"))?);
        Ok(command)
    }
}

/// The QEMU of a machine, without arguments. It is started by its own release's dynamic loader, since it wants a
/// newer C library than the host may have.
fn program(root: &Path, machine: Machine) -> Result<Command> {
    let loader = root.join("usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2");
    let qemu = root.join("usr/bin").join(boards::of(machine)?.program);
    for file in [&loader, &qemu] {
        ensure!(file.exists(), "no {}: `vm fetch --refresh` gets QEMU anew", file.display());
    }
    // It ends with this program, even if that is killed.
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(loader);
    command.arg("--library-path").arg(root.join("usr/lib/x86_64-linux-gnu")).arg(qemu);
    Ok(command)
}

/// That this QEMU of a machine has a device of this kind.
///
/// # Errors
/// Says so where it has not.
pub(crate) fn has_device(root: &Path, machine: Machine, kind: &str) -> Result<()> {
    // The exit status is the same in either case.
    let said = program(root, machine)?.arg("-device").arg(format!("{kind},help")).checked()?;
    ensure!(said.starts_with(&format!("{kind} options:")), "this QEMU has no device {kind}");
    Ok(())
}

/// The QEMU that was started here; killed where it still runs when it is no longer wanted.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Either fails only where the process has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The report port's log, read while QEMU writes it.
struct Reports {
    file: File,
    /// The beginning of a line whose end has not come yet.
    pending: Vec<u8>,
}

impl Reports {
    fn create(path: PathBuf) -> Result<Self> {
        File::create(&path)?;
        Ok(Self { file: File::open(path)?, pending: Vec::new() })
    }

    /// The reports that have come since the last call.
    fn fresh(&mut self) -> Result<Vec<Report>> {
        self.file.read_to_end(&mut self.pending)?;
        let Some(end) = self.pending.iter().rposition(|&byte| byte == b'\n') else {
            return Ok(Vec::new());
        };
        let rest = self.pending.split_off(end + 1);
        let lines = std::mem::replace(&mut self.pending, rest);
        Ok(String::from_utf8_lossy(&lines).lines().filter_map(Report::parse).collect())
    }
}
