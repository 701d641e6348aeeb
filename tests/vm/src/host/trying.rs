//! `tests/vm/try`: a command, or a shell, on a machine with RDMA devices. Of what tests need it fetches only the
//! kernel, QEMU and a few programs, and it builds nothing: `tests/vm/try` has built the command and the guest.

use crate::apt::Apt;
use crate::cache::Cache;
use crate::initramfs::{Initramfs, Tree};
use crate::kernels::{self, Series};
use crate::machines::Machine;
use crate::phases::Phases;
use crate::terminal::{self, Terminal};
use crate::{Hardware, Lab, elf, packages, paths, status};
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::io::{Write, stderr, stdout};
use std::process::ExitCode;
use uverbs_vm::job::{Devices, Job};
use uverbs_vm::report::{Report, Stream};

/// The status with which `uverbs` ends if its command line is wrong.
const WRONG_USAGE: u8 = 3;

/// What is tried.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) series: &'static Series,
    pub(crate) devices: Devices,
    /// The command and its arguments; a shell if there are none.
    pub(crate) command: Vec<String>,
    /// The seconds that building took.
    pub(crate) built: Option<f32>,
}

/// The programs that make the devices, by their paths in Debian.
const PROGRAMS: &[&str] = &["bin/busybox", "bin/ip", "sbin/devlink", "usr/bin/rdma"];

/// What `uverbs` has against a command, as it says it; nothing is fetched or booted for that.
pub(crate) fn refusal(command: &[String]) -> Option<ExitCode> {
    let is_ours = command.first().is_some_and(|program| program == "uverbs");
    let said = is_ours.then(|| uverbs_cli::refusal(command)).flatten()?;
    // Without a stderr nobody reads it.
    let _ = write!(stderr(), "{said}");
    Some(ExitCode::from(WRONG_USAGE))
}

/// Fetches what is missing, boots, and runs the command: its output and exit status become ours.
pub(crate) fn run(wanted: Wanted, cache: Cache, mut apt: Apt) -> Result<ExitCode> {
    let Wanted { series, devices, command, built } = wanted;
    let mut phases = Phases::default();
    if let Some(seconds) = built {
        phases.add("building", seconds);
    }
    phases.begin("fetching what is not there yet", "2 minutes the first time, then no time");
    let kernel = kernels::plain(series, &cache, &mut apt)?;
    let lab = lab(devices, command.is_empty(), &cache, &mut apt)?;
    drop((apt, cache));
    phases.begin(&format!("booting Linux {}", kernel.version), usual_boot(devices));

    // Several may be tried at once.
    let name = format!("try-{}", std::process::id());
    let terminal = command.is_empty().then(|| Terminal::new(&name)).transpose()?;
    let job = if terminal.is_some() {
        Job::Shell(devices, terminal::size())
    } else {
        Job::Try(devices, command.clone())
    };
    let hardware = Hardware { bed: devices.bed(), terminal: terminal.as_ref() };
    let what = if command.is_empty() { "the shell".to_owned() } else { command.join(" ") };
    let (mut exit, mut printed, mut connected) = (None, Ok(()), None);
    let trouble = lab.boot(&kernel, hardware, &name, &job, None, |report| {
        match report {
            Report::Begin(_) => {
                phases.begin_silently(&what);
                connected = terminal.as_ref().map(Terminal::connect);
            }
            Report::Output(Stream::Out, bytes) if printed.is_ok() => {
                printed = stdout().write_all(&bytes).and_then(|()| stdout().flush());
            }
            Report::Output(Stream::Err, bytes) if printed.is_ok() => {
                printed = stderr().write_all(&bytes);
            }
            Report::Exit(status) => {
                exit = Some(status);
                phases.begin_silently("switching off");
            }
            Report::Trouble(what) => status(&what),
            _ => {}
        }
        None
    })?;
    connected.transpose()?;
    phases.end();
    printed.context("printing the command's output")?;
    match exit {
        Some(exit) if trouble.is_empty() => {
            fs::remove_dir_all(paths::logs(&name))?;
            status(&phases.summary());
            Ok(ExitCode::from(u8::try_from(exit)?))
        }
        Some(_) => bail!("the machine is not well\n{}", trouble.join("\n")),
        None => bail!("{what} did not run to its end\n{}", trouble.join("\n")),
    }
}

/// How long a boot takes on two processors with nothing else to do.
fn usual_boot(devices: Devices) -> &'static str {
    if devices == Devices::SoftRoce { "20 s" } else { "40 s" }
}

/// What is booted, but for the kernel.
fn lab(devices: Devices, has_shell: bool, cache: &Cache, apt: &mut Apt) -> Result<Lab> {
    let qemu = packages::qemu(Machine::guest()?, cache, apt)?;
    let tree = packages::to_play(cache, apt)?;
    // Both were built with this program.
    let own = std::env::current_exe().context("the place of this program")?;
    let [guest, uverbs] = ["guest", "uverbs"].map(|name| own.with_file_name(name));
    for program in [&guest, &uverbs] {
        let bytes = fs::read(program).with_context(|| program.display().to_string())?;
        let is_static = elf::needs(&bytes)? == elf::Needs::default();
        ensure!(
            is_static,
            "{} is not static: run tests/vm/try, which builds it",
            program.display()
        );
    }
    let machine = Machine::guest()?;
    let tree = Tree { directory: &tree, root: "", machine };
    let mut initramfs = Initramfs::with(&guest, PROGRAMS, tree)?;
    initramfs.program("usr/bin/uverbs", &uverbs)?;
    if has_shell {
        initramfs.file("etc/profile", profile(devices).into_bytes());
    }
    Ok(Lab { machine, qemu, guest, initramfs })
}

/// What the shell reads first.
fn profile(devices: Devices) -> String {
    let example = if devices == Devices::SoftRoce {
        "uverbs gids; uverbs choose --explain; ip address add 10.1.2.3/24 dev d1; ip link set d0 down; uverbs check"
    } else {
        "uverbs devices; uverbs mlx5 port; uverbs mlx5 device; uverbs check"
    };
    format!(
        "PS1='\\w # '\nuverbs devices\necho 'Try: {example}'\n\
         echo 'You are root, and nothing can be damaged. \"exit\" switches the machine off.'\n"
    )
}
