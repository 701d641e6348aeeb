//! Emulated mlx5 functions: orders to them, and a guard that binds the kernel's driver to one.
//!
//! The functions run on the host ([`uverbs_mlx5_function`]). Orders go over a serial card. No driver binds
//! to a function by itself, so a scenario first chooses the function's description.

use std::fmt;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::system::delete_module;
use rustix::termios::{
    OptionalActions, QueueSelector, SpecialCodeIndex, tcflush, tcgetattr, tcsetattr,
};
use uverbs_mlx5_function::control::{Command, Fault, Order, Reply, Request, Response};
use uverbs_mlx5_function::description::{Description, Port};
use uverbs_vm::bed::{CONTROL, FUNCTIONS};
use uverbs_vm::job::Devices;
use uverbs_vm::stretched;

use super::{names_in, run, wait_until, wait_within};
use crate::boot;

const DEVICES: &str = "/sys/bus/pci/devices";
const DRIVER: &str = "/sys/bus/pci/drivers/mlx5_core";
const AUXILIARY: &str = "/sys/bus/auxiliary";
const IB_MODULE: &str = "mlx5_ib.ko";

/// One of the machine's functions, by its number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Function(pub(crate) usize);

/// The kinds of port events.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PortEvent {
    /// The port went down.
    Down = 1,
    /// The port went up.
    Active = 4,
    /// Its LID changed.
    Lid = 6,
    /// Its P_Keys changed.
    PKeys = 7,
    /// Its GIDs changed.
    Gids = 8,
    /// Its subnet manager asks to register again.
    Reregister = 9,
}

impl Function {
    /// Gives it an order and waits for the answer.
    ///
    /// # Errors
    /// Where it refuses, with its reason, or does not answer.
    pub(crate) fn order(self, order: Order) -> Result<Reply> {
        let said = format!("{order:?}");
        match exchange(self.0, order).with_context(|| format!("giving {self} the order {said}"))? {
            Reply::Error(why) => bail!("{self} refuses the order {said}: {why}"),
            reply => Ok(reply),
        }
    }

    /// Makes it another one; failures are forgotten. What a driver has asked already, it does not
    /// ask again: see [`port_event`](Self::port_event) and [`Mlx5::bind`].
    pub(crate) fn become_(self, description: &Description) -> Result<()> {
        self.order(Order::Become(Box::new(description.clone()))).map(drop)
    }

    /// What it is now.
    pub(crate) fn description(self) -> Result<Description> {
        match self.order(Order::Describe)? {
            Reply::Description(description) => Ok(*description),
            other => bail!("{self} describes itself by {other:?}"),
        }
    }

    /// The number that the next command will have.
    pub(crate) fn next_command(self) -> Result<u64> {
        Ok(self.commands(u64::MAX)?.1)
    }

    /// The commands that the driver sent during `during`, in its own name or in that of others.
    pub(crate) fn commands_during<T>(
        self,
        during: impl FnOnce() -> Result<T>,
    ) -> Result<(T, Vec<Command>)> {
        let since = self.next_command()?;
        let done = during()?;
        Ok((done, self.commands_since(since)?))
    }

    /// The commands from this number on.
    pub(crate) fn commands_since(self, since: u64) -> Result<Vec<Command>> {
        Ok(self.commands(since)?.0)
    }

    /// The commands from this number on, and the number of the next one.
    fn commands(self, since: u64) -> Result<(Vec<Command>, u64)> {
        match self.order(Order::Commands { since })? {
            Reply::Commands { commands, next } => Ok((commands, next)),
            other => bail!("{self} lists commands by {other:?}"),
        }
    }

    /// Treats commands with this opcode otherwise (and no more as before), until [`clear`](Self::clear).
    pub(crate) fn inject(self, opcode: u16, fault: Fault) -> Result<()> {
        self.order(Order::Inject { opcode, fault }).map(drop)
    }

    /// Forgets all that was injected.
    pub(crate) fn clear(self) -> Result<()> {
        self.order(Order::Clear).map(drop)
    }

    /// Changes a port of its current description, and sends the driver an event.
    ///
    /// InfiniBand only looks at what the event names.
    pub(crate) fn port_event(
        self,
        port: u8,
        event: PortEvent,
        change: impl FnOnce(&mut Port),
    ) -> Result<()> {
        let mut description = self.description()?;
        let place = usize::from(port).checked_sub(1);
        change(place.and_then(|place| description.ports.get_mut(place)).context("no such port")?);
        self.become_(&description)?;
        self.order(Order::PortEvent { port, subtype: event as u8 }).map(drop)
    }

    /// Its PCI address.
    pub(crate) fn pci(self) -> &'static str {
        FUNCTIONS.get(self.0).copied().unwrap_or("(no such function)")
    }

    /// A file or folder of its PCI device.
    fn path(self, name: &str) -> String {
        format!("{DEVICES}/{}/{name}", self.pci())
    }

    /// Lets the kernel remove its PCI device: the driver is notified, and can still reach it.
    pub(crate) fn remove(self) -> Result<()> {
        write(&self.path("remove"), "1")?;
        wait_until(&format!("{self} is removed"), || !fs::exists(self.path("")).unwrap_or(true))
    }

    /// Pulls it out of its slot: the kernel is not notified, and nothing reaches it any more.
    pub(crate) fn pull_out(self) -> Result<()> {
        self.order(Order::Unplug).map(drop)
    }

    /// Puts it back; for [`rescan`](Self::rescan).
    pub(crate) fn put_back(self) -> Result<()> {
        self.order(Order::Plug).map(drop)
    }

    /// Looks for PCI devices, and finds this one. Most kernels then bind the driver, whatever
    /// `drivers_autoprobe` says.
    pub(crate) fn rescan(self) -> Result<()> {
        write("/sys/bus/pci/rescan", "1")?;
        wait_until(&format!("{self} is there again"), || fs::exists(self.path("")).unwrap_or(false))
    }

    /// Whether its PCI device is there for the kernel, and does not answer.
    fn reads_as_ones(self) -> Result<bool> {
        let config = self.path("config");
        if !fs::exists(&config)? {
            return Ok(false);
        }
        let mut vendor = [0; 2];
        let read = File::open(&config).and_then(|mut file| file.read_exact(&mut vendor));
        read.with_context(|| format!("reading {config}"))?;
        Ok(vendor == [0xff; 2])
    }

    /// Sets the mode of its e-switch.
    fn set_mode(self, mode: &str) -> Result<()> {
        let device = format!("pci/{}", self.pci());
        run(&["devlink", "dev", "eswitch", "set", &device, "mode", mode]).map(drop)
    }

    fn is_bound(self) -> Result<bool> {
        Ok(fs::exists(self.path("driver"))?)
    }

    /// Unbinds the driver, where one is bound.
    fn unbind(self) -> Result<()> {
        if !self.is_bound()? {
            return Ok(());
        }
        let rdma_device_is_gone =
            || names_in(&self.path("infiniband")).is_ok_and(|names| names.is_empty());
        if self.reads_as_ones()? {
            // A driver that has not noticed waits a minute for each of its last commands.
            let what = format!("{self}, pulled out, is given up");
            wait_within(Duration::from_mins(4), &what, rdma_device_is_gone)?;
        }
        write(&format!("{DRIVER}/unbind"), self.pci())?;
        wait_until(&format!("{self}'s RDMA device is gone"), rdma_device_is_gone)
    }
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "function {} ({})", self.0, self.pci())
    }
}

/// A function with the driver bound to it, and its RDMA device; unbound on drop.
#[derive(Debug)]
pub(crate) struct Mlx5 {
    function: Function,
    name: String,
}

impl Mlx5 {
    /// Makes the function of this number the one that is described, and binds the driver.
    ///
    /// # Errors
    /// Where the driver refuses it, or does not give it an RDMA device with a node.
    pub(crate) fn bind(number: usize, description: &Description) -> Result<Self> {
        let function = Function(number);
        function.become_(description)?;
        // The kernel reads the class, which says InfiniBand or Ethernet, when it finds the device.
        function.remove()?;
        function.rescan()?;
        Self::bind_as_it_is(function)
    }

    /// Binds the driver to a function that is there, where that has not happened.
    pub(crate) fn bind_as_it_is(function: Function) -> Result<Self> {
        let mut this = Self { function, name: String::new() };
        if !function.is_bound()? {
            write(&format!("{DRIVER}/bind"), function.pci())?;
        }
        this.find()?;
        Ok(this)
    }

    /// Waits for its RDMA device and the node.
    pub(crate) fn find(&mut self) -> Result<()> {
        let function = self.function;
        wait_until(&format!("{function} has an RDMA device and a node"), || {
            let devices = names_in(&function.path("infiniband")).unwrap_or_default();
            let nodes = names_in(&function.path("infiniband_verbs")).unwrap_or_default();
            let [device] = devices.as_slice() else { return false };
            device.clone_into(&mut self.name);
            nodes
                .first()
                .is_some_and(|node| fs::exists(format!("/dev/infiniband/{node}")).unwrap_or(false))
        })
    }

    /// Name of the RDMA device.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The function below it.
    pub(crate) fn function(&self) -> Function {
        self.function
    }

    /// Name of its network interface.
    pub(crate) fn netdev(&self) -> Result<String> {
        let names = names_in(&self.function.path("net"))?;
        match <[String; 1]>::try_from(names) {
            Ok([name]) => Ok(name),
            Err(names) => bail!("{} has the interfaces {names:?}, not one", self.function),
        }
    }

    /// Sets its e-switch to switchdev mode, in which it has an RDMA device with another number and
    /// a port for each vport.
    pub(crate) fn switchdev(&mut self) -> Result<()> {
        let before = self.index()?;
        self.function.set_mode("switchdev")?;
        wait_until(&format!("{} has another RDMA device", self.function), || {
            self.find().and_then(|()| self.index()).is_ok_and(|index| index != before)
        })
    }

    /// The kernel's number for its RDMA device, which no other one ever has.
    fn index(&self) -> Result<u32> {
        // "1: mlx5_0: node_type ca …"
        let shown = run(&["rdma", "dev", "show", &self.name])?;
        let index = shown.split(':').next().unwrap_or_default().trim();
        index.parse().with_context(|| format!("the index in {shown:?}"))
    }

    /// Unbinds the driver, and binds it again. A context that is open stays without a device.
    pub(crate) fn rebind(&mut self) -> Result<()> {
        self.function.unbind()?;
        write(&format!("{DRIVER}/bind"), self.function.pci())?;
        self.find()
    }

    /// [`remove`](Function::remove)s the PCI device while the driver is bound.
    pub(crate) fn unplug(self) -> Result<Function> {
        let function = self.function;
        std::mem::forget(self);
        function.remove()?;
        Ok(function)
    }
}

impl Drop for Mlx5 {
    fn drop(&mut self) {
        // What is held back would hold up the driver.
        let unbound = self.function.clear().and_then(|()| self.function.unbind());
        if let Err(error) = unbound {
            eprintln!("undoing: {error:#}");
        }
    }
}

/// A function whose RDMA device can go and come by itself.
#[derive(Debug)]
pub(crate) struct Rdma {
    device: Mlx5,
    by: By,
}

/// By what it goes and comes.
#[derive(Debug)]
enum By {
    /// Its driver, of which this is the folder, and what that is bound to: a device of the auxiliary bus;
    /// before Linux 5.11, which has no such bus, the whole function.
    Driver(String, String),
    /// The e-switch's mode: in switchdev mode RDMA's driver sees ports only when the mode is set.
    Mode,
}

impl Rdma {
    /// Whether drivers are bound to parts of a function.
    pub(crate) fn has_parts() -> Result<bool> {
        Ok(fs::exists(AUXILIARY)?)
    }

    /// That of a function that has its RDMA device, outside of switchdev mode.
    pub(crate) fn by_driver(device: Mlx5) -> Result<Self> {
        let function = device.function;
        let names = names_in(&function.path(""))?;
        let own = names.into_iter().find(|name| {
            name.starts_with("mlx5_core.rdma")
                && fs::exists(function.path(&format!("{name}/driver"))).unwrap_or(false)
        });
        let by = match own {
            Some(own) => {
                let driver = fs::canonicalize(function.path(&format!("{own}/driver")))?;
                By::Driver(driver.to_string_lossy().into_owned(), own)
            }
            None => By::Driver(DRIVER.to_owned(), function.pci().to_owned()),
        };
        Ok(Self { device, by })
    }

    /// That of a function in switchdev mode.
    pub(crate) fn by_mode(device: Mlx5) -> Self {
        Self { device, by: By::Mode }
    }

    /// Takes the RDMA device away.
    pub(crate) fn take_away(&self) -> Result<()> {
        let function = self.device.function;
        match &self.by {
            By::Driver(driver, own) => write(&format!("{driver}/unbind"), own)?,
            By::Mode => {
                // No driver is bound to what there is in the other mode.
                let autoprobe = format!("{AUXILIARY}/drivers_autoprobe");
                write(&autoprobe, "0")?;
                let done = function.set_mode("legacy");
                write(&autoprobe, "1")?;
                done?;
            }
        }
        wait_until(&format!("{function}'s RDMA device is gone"), || {
            names_in(&function.path("infiniband")).is_ok_and(|names| names.is_empty())
        })
    }

    /// Brings it back, with this name.
    pub(crate) fn bring_back(&mut self, name: &str) -> Result<()> {
        match &self.by {
            By::Driver(driver, own) => write(&format!("{driver}/bind"), own)?,
            By::Mode => self.device.function.set_mode("switchdev")?,
        }
        self.device.find()?;
        if self.device.name() != name {
            run(&["rdma", "dev", "set", self.device.name(), "name", name])?;
            name.clone_into(&mut self.device.name);
        }
        Ok(())
    }

    /// The device.
    pub(crate) fn device(&self) -> &Mlx5 {
        &self.device
    }
}

/// The module of the RDMA driver, unloaded; loaded again on drop.
#[derive(Debug)]
pub(crate) struct IbModule(());

impl IbModule {
    /// Unloads it. RDMA devices go, while the functions stay bound.
    pub(crate) fn unload() -> Result<Self> {
        delete_module(c"mlx5_ib", 0).context("unloading mlx5_ib")?;
        Ok(Self(()))
    }

    /// Loads it again.
    pub(crate) fn load(self) -> Result<()> {
        std::mem::forget(self);
        boot::load_module(IB_MODULE, "")
    }
}

impl Drop for IbModule {
    fn drop(&mut self) {
        if let Err(error) = boot::load_module(IB_MODULE, "") {
            eprintln!("undoing: {error:#}");
        }
    }
}

/// What `vm try` runs its command with: the first function.
pub(crate) fn tried(devices: Devices) -> Result<Mlx5> {
    let description = match devices {
        Devices::SoftRoce => bail!("soft RoCE is no function"),
        Devices::InfiniBand1 => Description::infiniband(1),
        Devices::InfiniBand2 => Description::infiniband(2),
        Devices::Roce => Description::roce(),
        Devices::Switchdev => Description::switchdev(),
        Devices::EmbeddedCpu => Description::embedded_cpu(2),
    };
    let mut device = Mlx5::bind(0, &description)?;
    if matches!(devices, Devices::Switchdev | Devices::EmbeddedCpu) {
        device.switchdev()?;
    }
    Ok(device)
}

/// Puts back what a scenario did to the functions, and names it.
pub(super) fn sweep() -> Result<Vec<String>> {
    let mut found = Vec::new();
    if !fs::exists(format!("{DEVICES}/{CONTROL}"))? {
        return Ok(found);
    }
    for function in (0..FUNCTIONS.len()).map(Function) {
        function.clear()?;
        // A driver that is bound is to find out before the function is another one.
        if function.reads_as_ones()? {
            function.unbind()?;
            function.remove()?;
        }
        let was_out = function.order(Order::Plug)? == Reply::Done;
        let is_removed = !fs::exists(function.path(""))?;
        if was_out {
            found.push(format!("{function}, pulled out"));
        } else if is_removed {
            found.push(format!("{function}, removed"));
        } else if function.is_bound()? {
            found.push(format!("{function}, bound"));
        }
        if is_removed {
            function.rescan()?;
        }
        function.unbind()?;
    }
    Ok(found)
}

fn write(path: &str, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("writing {text} to {path}"))
}

/// Sends an order over the serial card, and waits for the answer to it.
fn exchange(function: usize, order: Order) -> Result<Reply> {
    /// Nothing that is ordered takes long.
    const PATIENCE: Duration = Duration::from_secs(20);
    /// How long one read waits, in tenths of a second.
    const READ: u8 = 10;
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);

    let mut port = boot::serial_card(CONTROL)?;
    let mut settings = tcgetattr(&port)?;
    settings.make_raw();
    settings.set_speed(115_200)?;
    settings.special_codes[SpecialCodeIndex::VMIN] = 0;
    settings.special_codes[SpecialCodeIndex::VTIME] = READ;
    tcsetattr(&port, OptionalActions::Now, &settings)?;
    tcflush(&port, QueueSelector::IOFlush)?;

    let number = next_number();
    let request = serde_json::to_string(&Request { number, function, order })?;
    port.write_all(format!("{request}\n").as_bytes())?;
    let mut lines = BufReader::new(port);
    let mut line = Vec::new();
    let start = Instant::now();
    while start.elapsed() < stretched(PATIENCE) {
        lines.read_until(b'\n', &mut line)?;
        if !line.ends_with(b"\n") {
            continue;
        }
        // It may also be the end of a line that came too late for somebody, or the whole of it.
        match serde_json::from_slice(&line) {
            Ok(Response { number: Some(its), reply }) if its == number => return Ok(reply),
            _ => eprintln!("not the answer to {number}: {}", String::from_utf8_lossy(&line).trim()),
        }
        line.clear();
    }
    bail!("no answer but {:?}", String::from_utf8_lossy(&line));
}

/// A number that no other request has, of this or another process.
fn next_number() -> u64 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    u64::from(process::id()) << 32 | u64::from(NEXT.fetch_add(1, Ordering::Relaxed))
}
