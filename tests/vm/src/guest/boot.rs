//! The first and last steps of an init: mounts, modules, the report port, power.

use crate::lab::names_in;
use anyhow::{Context, Result, bail};
use rustix::mount::{MountFlags, mount};
use rustix::system::{RebootCommand, finit_module, reboot};
use rustix::termios::{OptionalActions, tcdrain, tcgetattr, tcsetattr};
use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::thread;
use std::time::Duration;
use uverbs_vm::REPORTS;
use uverbs_vm::report::Report;

/// The modules in the order in which they load, one a line: file, then parameters.
const MODULES: &str = "/modules/order";

/// Mounts the file systems that programs expect.
pub(crate) fn mount_all() -> Result<()> {
    for (kind, path) in [
        ("proc", "/proc"),
        ("sysfs", "/sys"),
        ("devtmpfs", "/dev"),
        ("tmpfs", "/tmp"),
        ("tmpfs", "/run"),
    ] {
        fs::create_dir_all(path).with_context(|| format!("creating {path}"))?;
        mount(kind, path, kind, MountFlags::empty(), None)
            .with_context(|| format!("mounting {kind} on {path}"))?;
    }
    Ok(())
}

/// Loads every module of the initramfs. PCI devices without a driver stay so until a scenario binds
/// one.
pub(crate) fn load_modules() -> Result<()> {
    let autoprobe = "/sys/bus/pci/drivers_autoprobe";
    fs::write(autoprobe, "0").with_context(|| format!("writing {autoprobe}"))?;
    // No default interfaces: tunl0, gre0, sit0 …
    let tunnels = "/proc/sys/net/core/fb_tunnels_only_for_init_net";
    fs::write(tunnels, "2").with_context(|| format!("writing {tunnels}"))?;
    let order = fs::read_to_string(MODULES).with_context(|| format!("reading {MODULES}"))?;
    for line in order.lines() {
        let (name, parameters) = line.split_once(' ').unwrap_or((line, ""));
        load_module(name, parameters)?;
    }
    Ok(())
}

/// Loads those modules of the initramfs that are not loaded, and names them.
pub(crate) fn load_missing_modules() -> Result<Vec<String>> {
    let mut missing = Vec::new();
    let order = fs::read_to_string(MODULES).with_context(|| format!("reading {MODULES}"))?;
    for line in order.lines() {
        let (file, parameters) = line.split_once(' ').unwrap_or((line, ""));
        let name = file.trim_end_matches(".ko").replace('-', "_");
        if !fs::exists(format!("/sys/module/{name}"))? {
            load_module(file, parameters)?;
            missing.push(format!("{name}, unloaded"));
        }
    }
    Ok(missing)
}

/// Loads one module of the initramfs.
pub(crate) fn load_module(name: &str, parameters: &str) -> Result<()> {
    let path = format!("/modules/{name}");
    let file = File::open(&path).with_context(|| format!("opening {path}"))?;
    finit_module(&file, &CString::new(parameters)?, 0).with_context(|| format!("loading {path}"))
}

/// The second serial port, on which the guest reports, and hears what it is to run.
#[derive(Debug)]
pub(crate) struct Port(File);

/// Opens the report port.
pub(crate) fn report_port() -> Result<Port> {
    let name = std::env::var(REPORTS).with_context(|| format!("no {REPORTS}"))?;
    let path = &format!("/dev/{name}");
    // O_NOCTTY: a child's session must not make the port its terminal.
    let flags = i32::try_from(rustix::fs::OFlags::NOCTTY.bits())?;
    let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path);
    let file = file.with_context(|| format!("opening {path}"))?;
    // No echo: what comes in would go out as a report.
    let mut settings = tcgetattr(&file)?;
    settings.make_raw();
    tcsetattr(&file, OptionalActions::Now, &settings).with_context(|| format!("setting {path}"))?;
    Ok(Port(file))
}

/// Opens the serial port at a PCI address.
pub(crate) fn serial_card(address: &str) -> Result<File> {
    for name in names_in("/sys/class/tty")? {
        let place = fs::read_link(format!("/sys/class/tty/{name}"))?;
        if place.components().any(|part| part.as_os_str() == address) {
            // O_NOCTTY: the port must not become anybody's terminal by itself.
            let flags = i32::try_from(rustix::fs::OFlags::NOCTTY.bits())?;
            let path = format!("/dev/{name}");
            let port = OpenOptions::new().read(true).write(true).custom_flags(flags).open(&path);
            return port.context(path);
        }
    }
    bail!("this machine has no serial port at {address}")
}

impl Port {
    /// Writes one report.
    pub(crate) fn send(&mut self, report: &Report) -> Result<()> {
        self.0.write_all(format!("{report}\n").as_bytes()).context("writing a report")
    }

    /// Asks for the next line, without its end.
    pub(crate) fn ask(&mut self) -> Result<String> {
        self.send(&Report::Ready)?;
        let mut line = Vec::new();
        loop {
            let mut byte = [0];
            self.0.read_exact(&mut byte).context("reading the port")?;
            match byte {
                [b'\n'] => return String::from_utf8(line).context("a line that is not UTF-8"),
                [byte] => line.push(byte),
            }
        }
    }

    /// Waits until all reports have left the machine.
    pub(crate) fn drain(&self) -> Result<()> {
        tcdrain(&self.0).context("draining the report port")
    }
}

/// Writes a line to the kernel's log, so that an oops can be assigned to a scenario.
pub(crate) fn note(text: &str) {
    // The log is a help to the reader of a failure; without it everything works.
    let _ = fs::write("/dev/kmsg", format!("<4>uverbs: {text}\n"));
}

/// Switches the machine off; hard, where a driver does not let go.
pub(crate) fn switch_off() -> ! {
    thread::spawn(|| {
        let _ = reboot(RebootCommand::PowerOff);
    });
    thread::sleep(Duration::from_secs(5));
    let _ = fs::write("/proc/sys/kernel/sysrq", "1");
    let _ = fs::write("/proc/sysrq-trigger", "b");
    loop {
        thread::park();
    }
}
