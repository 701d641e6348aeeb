//! What scenarios build their situations from: network devices, VLANs, namespaces, soft-RoCE
//! links, an InfiniBand switch; [`mlx5`] has the emulated functions, [`within`] other roots,
//! [`limited`] programs that have to do without something, [`stopped`] programs that wait in the middle. Each is a guard that takes its thing away
//! again when it is dropped, in reverse order of making if they are in one scope.
//!
//! The lab uses Debian's `ip`, `rdma` and `devlink` programs and the kernel's own files. It must not share
//! code with what it tests.

pub(crate) mod container;
#[cfg(feature = "scenarios")]
mod filter;
pub(crate) mod ip;
#[cfg(feature = "scenarios")]
pub(crate) mod limited;
pub(crate) mod mlx5;
pub(crate) mod podman;
#[cfg(feature = "scenarios")]
pub(crate) mod roce;
#[cfg(feature = "scenarios")]
pub(crate) mod stopped;
pub(crate) mod within;

use anyhow::{Context, Result, bail};
use rustix::system::delete_module;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use uverbs_vm::{NO_SIW, NOT_BUILT, stretched};

use crate::boot;
use crate::supervisor::PATH;

/// The error of a scenario that does not apply to this kernel; see [`skip`].
#[derive(Debug)]
pub(crate) struct Skip(String);

impl std::fmt::Display for Skip {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Skip {}

/// Ends a scenario without a verdict: `return Err(skip("5.10 has no …"))`. It is shown as
/// skipped, with the reason.
pub(crate) fn skip(reason: &str) -> anyhow::Error {
    Skip(reason.to_owned()).into()
}

/// Runs a program and gives all that came of it, also a failure.
///
/// # Errors
/// Where it cannot be started.
pub(crate) fn output(command: &[&str]) -> Result<Output> {
    let (program, arguments) = command.split_first().context("no command")?;
    // Also where PID 1 itself runs it, which has no such path.
    let started = Command::new(program).args(arguments).env("PATH", PATH).output();
    started.with_context(|| format!("starting `{}`", command.join(" ")))
}

/// [`output`], as the user nobody.
pub(crate) fn output_as_nobody(command: &[&str]) -> Result<Output> {
    const NOBODY: u32 = 65_534;
    let (program, arguments) = command.split_first().context("no command")?;
    let started = Command::new(program).args(arguments).uid(NOBODY).gid(NOBODY).output();
    started.with_context(|| format!("starting `{}`", command.join(" ")))
}

/// Runs a program and gives its standard output.
///
/// # Errors
/// Where it cannot be started or does not end with status 0; with the command and all it printed.
pub(crate) fn run(command: &[&str]) -> Result<String> {
    let line = command.join(" ");
    let output = output(command)?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("`{line}`: {}\n{stdout}{stderr}", output.status);
    }
    Ok(stdout.into_owned())
}

/// [`run`], for undoing: a failure is printed, since a drop cannot return it. The supervisor
/// finds what is left and fails the scenario.
pub(crate) fn undo(command: &[&str]) {
    if let Err(error) = run(command) {
        eprintln!("undoing: {error:#}");
    }
}

/// Waits until `is_so`; the kernel fills GID tables and much else in its own time.
///
/// # Errors
/// Where it is not so within a minute, which is far more than it takes on a busy machine.
pub(crate) fn wait_until(what: &str, is_so: impl FnMut() -> bool) -> Result<()> {
    wait_within(Duration::from_mins(1), what, is_so)
}

/// [`wait_until`] for what takes the kernel longer.
pub(crate) fn wait_within(
    limit: Duration,
    what: &str,
    mut is_so: impl FnMut() -> bool,
) -> Result<()> {
    let limit = stretched(limit);
    let start = Instant::now();
    while !is_so() {
        if start.elapsed() > limit {
            bail!("waited {limit:?} in vain until {what}");
        }
        thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// Gives a removal of soft RoCE, in which a context is still open, the time that it takes. Up to
/// 6.12, and in 7.2, it then still waits for that context.
pub(crate) fn wait_for_removal(removal: &thread::JoinHandle<()>) -> Result<()> {
    if kernel()? >= (7, 3) {
        return wait_until("the device is gone", || removal.is_finished());
    }
    thread::sleep(stretched(Duration::from_secs(1)));
    Ok(())
}

/// A number that the kernel has of a process, as `VmHWM` in `/proc/PID/status`: the most memory that it had, in kB.
pub(crate) fn number_of(process: u32, file: &str, name: &str) -> Result<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/{file}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let word = line.and_then(|line| line.split_whitespace().next());
    word.and_then(|word| word.parse().ok()).with_context(|| format!("no {name} in {text}"))
}

/// The running kernel's release as (version, patch level): (6, 12).
pub(crate) fn kernel() -> Result<(u32, u32)> {
    let release =
        fs::read_to_string("/proc/sys/kernel/osrelease").context("the kernel's release")?;
    let mut numbers = release.split(['.', '-', '+']).map(|number| number.trim().parse());
    match (numbers.next(), numbers.next()) {
        (Some(Ok(version)), Some(Ok(level))) => Ok((version, level)),
        _ => bail!("cannot read the kernel's release {release:?}"),
    }
}

/// Whether the running kernel is of the newest series.
pub(crate) fn is_newest_kernel() -> Result<bool> {
    Ok(kernel()? >= (7, 0))
}

/// Skips, on all kernels but the newest, a scenario of which these are the same for `reason`.
pub(crate) fn on_the_newest_kernel(reason: &str) -> Result<()> {
    if !is_newest_kernel()? {
        return Err(skip(&format!("on the newest kernel only: {reason}")));
    }
    Ok(())
}

/// Takes IPv6 away from an interface of the caller's namespace, and all its IPv6 addresses.
pub(crate) fn disable_ipv6(name: &str) -> Result<()> {
    let setting = format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6");
    fs::write(&setting, "1").context(setting)
}

/// A network device, made here and deleted on drop.
#[derive(Debug)]
pub(crate) struct Netdev(String);

/// An index that the VM gave to no interface before: it counts up, and has a thousand of some scenarios.
pub(crate) const FAR: u32 = 1_000_000;

impl Netdev {
    /// A dummy device, up, with this MAC address.
    pub(crate) fn dummy(name: &str, mac: &str) -> Result<Self> {
        run(&["ip", "link", "add", name, "address", mac, "type", "dummy"])?;
        Self(name.to_owned()).up()
    }

    /// A dummy device, up, with this index.
    pub(crate) fn dummy_with_index(name: &str, index: u32, mac: &str) -> Result<Self> {
        let index = index.to_string();
        run(&["ip", "link", "add", name, "index", &index, "address", mac, "type", "dummy"])?;
        Self(name.to_owned()).up()
    }

    /// A device that the caller has just made.
    pub(crate) fn made(name: &str) -> Self {
        Self(name.to_owned())
    }

    /// The device `NAME.ID` for a VLAN on this one, up.
    pub(crate) fn vlan(&self, id: u16) -> Result<Self> {
        let name = format!("{}.{id}", self.0);
        self.add_vlan(&name, id, &[])?;
        Self(name).up()
    }

    /// The device `NAME.ID` for a VLAN on this one, up, with this index.
    pub(crate) fn vlan_with_index(&self, id: u16, index: u32) -> Result<Self> {
        let name = format!("{}.{id}", self.0);
        self.add_vlan(&name, id, &["index", &index.to_string()])?;
        Self(name).up()
    }

    /// A device for a VLAN on this one, to be moved to a namespace, which then ends it. Returns
    /// its index here.
    pub(crate) fn traveller(&self, name: &str, id: u16) -> Result<u32> {
        self.add_vlan(name, id, &[])?;
        let index = fs::read_to_string(format!("/sys/class/net/{name}/ifindex"))?;
        index.trim().parse().with_context(|| format!("{name}'s index {index:?}"))
    }

    fn add_vlan(&self, name: &str, id: u16, more: &[&str]) -> Result<()> {
        let add = ["ip", "link", "add", "link", &self.0, "name", name];
        run(&[&add[..], more, &["type", "vlan", "id", &id.to_string()]].concat()).map(drop)
    }

    /// A macvlan on this one, with this index and MAC address. It stays down: it is to be moved.
    pub(crate) fn macvlan(&self, name: &str, index: u32, mac: &str) -> Result<Self> {
        let index = index.to_string();
        let add = ["ip", "link", "add", "link", &self.0, "name", name, "index", &index];
        run(&[&add[..], &["address", mac, "type", "macvlan", "mode", "bridge"]].concat())?;
        Ok(Self(name.to_owned()))
    }

    /// A bond, up, in which these devices are: the first is active, the others wait.
    pub(crate) fn bond(name: &str, slaves: &[&Self]) -> Result<Self> {
        Self::bond_with(name, &[], slaves)
    }

    /// The same, with this index.
    pub(crate) fn bond_with_index(name: &str, index: u32, slaves: &[&Self]) -> Result<Self> {
        Self::bond_with(name, &["index", &index.to_string()], slaves)
    }

    fn bond_with(name: &str, more: &[&str], slaves: &[&Self]) -> Result<Self> {
        Self::bond_of(name, more, &["mode", "active-backup"], slaves)
    }

    /// The same with other options.
    pub(crate) fn bond_of(
        name: &str,
        more: &[&str],
        options: &[&str],
        slaves: &[&Self],
    ) -> Result<Self> {
        run(&[&["ip", "link", "add", name], more, &["type", "bond"], options].concat())?;
        Self(name.to_owned()).with_ports(slaves)
    }

    /// A bridge, up, with this index, in which these devices are.
    pub(crate) fn bridge(name: &str, index: u32, ports: &[&Self]) -> Result<Self> {
        run(&["ip", "link", "add", name, "index", &index.to_string(), "type", "bridge"])?;
        Self(name.to_owned()).with_ports(ports)
    }

    fn with_ports(self, ports: &[&Self]) -> Result<Self> {
        for port in ports {
            // A bond takes only what is down.
            run(&["ip", "link", "set", &port.0, "down"])?;
            run(&["ip", "link", "set", &port.0, "master", &self.0])?;
            run(&["ip", "link", "set", &port.0, "up"])?;
        }
        self.up()
    }

    fn up(self) -> Result<Self> {
        run(&["ip", "link", "set", &self.0, "up"])?;
        Ok(self)
    }

    /// Takes its IPv6 away, and all its IPv6 addresses.
    pub(crate) fn disable_ipv6(&self) -> Result<()> {
        disable_ipv6(&self.0)
    }

    /// Gives it an address with its prefix length. IPv6 ones are usable at once.
    pub(crate) fn address(&self, address: &str) -> Result<()> {
        let mut command = vec!["ip", "address", "add", address, "dev", &self.0];
        if address.contains(':') {
            command.push("nodad");
        }
        run(&command).map(drop)
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.0
    }
}

impl Drop for Netdev {
    fn drop(&mut self) {
        undo(&["ip", "link", "delete", &self.0]);
    }
}

/// A soft-RoCE device, made here and deleted on drop.
///
/// On kernels up to 6.12 the deletion waits until every context on it is closed: drop yours first.
#[derive(Debug)]
pub(crate) struct SoftRoce(String);

impl SoftRoce {
    /// A soft-RoCE device on a network device of this namespace.
    pub(crate) fn new(name: &str, netdev: &Netdev) -> Result<Self> {
        run(&["rdma", "link", "add", name, "type", "rxe", "netdev", netdev.name()])?;
        Ok(Self(name.to_owned()))
    }

    /// Gives it another name.
    pub(crate) fn renamed(self, name: &str) -> Result<Self> {
        run(&["rdma", "dev", "set", &self.0, "name", name])?;
        std::mem::forget(self);
        Ok(Self(name.to_owned()))
    }

    /// Its port's GID table as sysfs shows it, the unused entries left out: (index, GID).
    pub(crate) fn gids(&self) -> Result<Vec<(u32, String)>> {
        let directory = format!("/sys/class/infiniband/{}/ports/1/gids", self.0);
        let mut gids = Vec::new();
        for entry in fs::read_dir(&directory).with_context(|| directory.clone())? {
            let entry = entry?;
            let index = entry.file_name().to_string_lossy().parse()?;
            let gid = fs::read_to_string(entry.path())?.trim().to_owned();
            if gid.contains(|digit: char| !matches!(digit, '0' | ':')) {
                gids.push((index, gid));
            }
        }
        gids.sort_unstable();
        Ok(gids)
    }

    /// Deletes it and makes another one in its place, by one start of the program: that takes longer than
    /// what it does.
    pub(crate) fn replaced_by(self, name: &str, netdev: &Netdev) -> Result<Self> {
        let old = &self.0;
        let line =
            format!("link delete {old}\nlink add {name} type rxe netdev {}\n", netdev.name());
        let mut child = Command::new("rdma").args(["-b", "-"]).stdin(Stdio::piped()).spawn()?;
        let mut pipe = child.stdin.take().context("no pipe")?;
        pipe.write_all(line.as_bytes())?;
        drop(pipe);
        let status = child.wait()?;
        anyhow::ensure!(status.success(), "rdma: {line}: {status}");
        std::mem::forget(self);
        Ok(Self(name.to_owned()))
    }

    /// A soft-RoCE device on the loopback interface.
    pub(crate) fn on_loopback(name: &str) -> Result<Self> {
        run(&["rdma", "link", "add", name, "type", "rxe", "netdev", "lo"])?;
        Ok(Self(name.to_owned()))
    }

    /// Waits until its GID table has this GID, in the form of sysfs.
    pub(crate) fn wait_for_gid(&self, wanted: &str) -> Result<()> {
        wait_until(&format!("{} has {wanted}", self.0), || {
            self.gids().is_ok_and(|gids| gids.iter().any(|(_, gid)| gid == wanted))
        })
        .with_context(|| format!("its GIDs are {:?}", self.gids()))
    }

    /// Waits until its GID table no longer changes.
    pub(crate) fn settle(&self) -> Result<()> {
        let mut before = self.gids()?;
        let mut since = Instant::now();
        wait_until("the GID table stands still", || {
            let now = self.gids().unwrap_or_default();
            if now != before {
                since = Instant::now();
                before = now;
            }
            // Reading a table of a thousand files takes its time, too; one more reading will do.
            since.elapsed() > stretched(Duration::from_millis(300))
        })
    }

    /// Waits until its GID table has `count` used entries.
    pub(crate) fn wait_for_gids(&self, count: usize) -> Result<()> {
        wait_until(&format!("{} has {count} GIDs", self.0), || {
            self.gids().is_ok_and(|gids| gids.len() == count)
        })
        .with_context(|| format!("its GIDs are {:?}", self.gids()))
    }
}

impl Drop for SoftRoce {
    fn drop(&mut self) {
        undo(&["rdma", "link", "delete", &self.0]);
    }
}

/// The InfiniBand switch `switch0` of our own module; see `modules/ib_switch`. Unloaded on drop.
#[derive(Debug)]
pub(crate) struct IbSwitch(());

impl IbSwitch {
    /// Loads the module.
    ///
    /// # Errors
    /// [`Skip`], if it could not be built for this kernel.
    pub(crate) fn load() -> Result<Self> {
        if let Ok(why) = fs::read_to_string(NOT_BUILT) {
            println!("{why}");
            return Err(skip("our modules are not built for this kernel"));
        }
        Self::load_again()?;
        Ok(Self(()))
    }

    /// Loads the module, which was unloaded.
    pub(crate) fn load_again() -> Result<()> {
        boot::load_module("ib_switch.ko", "")
    }

    /// Unloads the module, if it can be.
    pub(crate) fn try_unload() -> rustix::io::Result<()> {
        delete_module(c"ib_switch", 0)
    }

    /// Changes something of the port, as the module says that it is written: `lid 12`.
    #[expect(clippy::unused_self, reason = "only while the module is loaded")]
    pub(crate) fn change(&self, what: &str) -> Result<()> {
        let path = "/sys/module/ib_switch/parameters/change";
        fs::write(path, what).with_context(|| format!("writing {what} to {path}"))
    }

    fn is_loaded() -> Result<bool> {
        Ok(fs::exists("/sys/module/ib_switch")?)
    }

    fn unload() {
        if let Err(error) = Self::try_unload() {
            eprintln!("undoing: unloading ib_switch: {error}");
        }
    }
}

impl Drop for IbSwitch {
    fn drop(&mut self) {
        Self::unload();
    }
}

/// The module `siw` (soft iWARP) of the kernel's own source, which Debian does not build. Unloaded on drop, with its
/// devices.
#[derive(Debug)]
pub(crate) struct SoftIwarp(());

impl SoftIwarp {
    /// Loads the module.
    ///
    /// # Errors
    /// [`Skip`], if it could not be built for this kernel.
    pub(crate) fn load() -> Result<Self> {
        for place in [NOT_BUILT.to_owned(), format!("/modules/{NO_SIW}")] {
            if let Ok(why) = fs::read_to_string(place) {
                return Err(skip(&format!("siw is not built for this kernel: {why}")));
            }
        }
        boot::load_module("siw.ko", "")?;
        Ok(Self(()))
    }

    /// Adds a soft-iWARP device on a network device. It goes with the module.
    pub(crate) fn add(name: &str, netdev: &Netdev) -> Result<()> {
        run(&["rdma", "link", "add", name, "type", "siw", "netdev", netdev.name()]).map(drop)
    }

    fn is_loaded() -> Result<bool> {
        Ok(fs::exists("/sys/module/siw")?)
    }

    fn unload() {
        if let Err(error) = delete_module(c"siw", 0) {
            eprintln!("undoing: unloading siw: {error}");
        }
    }
}

impl Drop for SoftIwarp {
    fn drop(&mut self) {
        Self::unload();
    }
}

/// A network namespace, made here and deleted on drop.
#[derive(Debug)]
pub(crate) struct Namespace(String);

impl Namespace {
    /// A new, empty namespace.
    pub(crate) fn new(name: &str) -> Result<Self> {
        run(&["ip", "netns", "add", name])?;
        Ok(Self(name.to_owned()))
    }

    /// The first process's namespace by a name, for programs that take only names.
    pub(crate) fn first(name: &str) -> Result<Self> {
        run(&["ip", "netns", "attach", name, "1"])?;
        Ok(Self(name.to_owned()))
    }

    /// Moves a network device there. On the namespace's end the kernel deletes a dummy device;
    /// hence the guard is taken.
    pub(crate) fn take(&self, netdev: Netdev) -> Result<()> {
        run(&["ip", "link", "set", netdev.name(), "netns", &self.0])?;
        std::mem::forget(netdev);
        Ok(())
    }

    /// Runs a program inside.
    pub(crate) fn run(&self, command: &[&str]) -> Result<String> {
        run(&[&self.exec(), command].concat())
    }

    /// Runs a program inside and gives all that came of it.
    pub(crate) fn output(&self, command: &[&str]) -> Result<Output> {
        output(&[&self.exec(), command].concat())
    }

    /// The words before a command that runs inside.
    pub(crate) fn exec(&self) -> [&str; 4] {
        ["ip", "netns", "exec", &self.0]
    }

    /// Calls a function on a thread that is inside. `/sys` stays that of outside.
    pub(crate) fn call<T: Send>(&self, function: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        let path = format!("/run/netns/{}", self.0);
        thread::scope(|scope| {
            let inside = scope.spawn(move || {
                let namespace = fs::File::open(&path).context(path)?;
                let network = Some(LinkNameSpaceType::Network);
                move_into_link_name_space(namespace.as_fd(), network).context("entering")?;
                function()
            });
            inside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        undo(&["ip", "netns", "delete", &self.0]);
    }
}

/// The mode in which a device belongs to only one network namespace; shared again on drop.
#[derive(Debug)]
pub(crate) struct Exclusive(());

impl Exclusive {
    pub(crate) fn set() -> Result<Self> {
        Self::turn("exclusive")?;
        Ok(Self(()))
    }

    /// The kernel refuses while there is another network namespace, and one that was deleted goes in its own time.
    fn turn(mode: &str) -> Result<()> {
        wait_until(&format!("the mode of namespaces is {mode}"), || {
            run(&["rdma", "system", "set", "netns", mode]).is_ok()
        })
    }
}

impl Drop for Exclusive {
    fn drop(&mut self) {
        if let Err(error) = Self::turn("shared") {
            eprintln!("undoing: {error:#}");
        }
    }
}

/// A file that was moved aside; put back on drop.
#[derive(Debug)]
pub(crate) struct Aside {
    aside: String,
    place: String,
}

impl Aside {
    pub(crate) fn moved(place: &str) -> Result<Self> {
        let aside = format!("{place}.aside");
        fs::rename(place, &aside).with_context(|| format!("moving {place} aside"))?;
        Ok(Self { aside, place: place.to_owned() })
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        if let Err(error) = fs::rename(&self.aside, &self.place) {
            eprintln!("undoing: {}: {error}", self.place);
        }
    }
}

/// `/dev/char` with the links that udev makes, for every node of verbs. Gone on drop, and not only the
/// links: where the folder is, rdma-core waits five seconds whenever a device does not open.
#[derive(Debug)]
pub(crate) struct NodeLinks(());

impl NodeLinks {
    const FOLDER: &str = "/dev/char";

    pub(crate) fn make() -> Result<Self> {
        fs::create_dir(Self::FOLDER).context(Self::FOLDER)?;
        let this = Self(());
        for name in names_in("/dev/infiniband")? {
            let node = format!("/dev/infiniband/{name}");
            let number = fs::metadata(&node)?.rdev();
            let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
            symlink(format!("../infiniband/{name}"), format!("{}/{major}:{minor}", Self::FOLDER))?;
        }
        Ok(this)
    }
}

impl Drop for NodeLinks {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(Self::FOLDER) {
            eprintln!("undoing: {}: {error}", Self::FOLDER);
        }
    }
}

/// `rxe0` on `d0` (IPv4 192.168.77.1/24, VLAN 7 with 10.7.0.1/24): four GIDs.
#[derive(Debug)]
pub(crate) struct VlanLab {
    /// The RDMA device. Fields are dropped in this order.
    pub(crate) rxe: SoftRoce,
    _vlan: Netdev,
    /// The interface below it.
    pub(crate) netdev: Netdev,
}

/// Sets a [`VlanLab`] up.
pub(crate) fn vlan_lab() -> Result<VlanLab> {
    let netdev = Netdev::dummy("d0", "02:11:22:33:44:55")?;
    netdev.address("192.168.77.1/24")?;
    let vlan = netdev.vlan(7)?;
    vlan.address("10.7.0.1/24")?;
    let rxe = SoftRoce::new("rxe0", &netdev)?;
    rxe.wait_for_gids(4)?;
    Ok(VlanLab { rxe, _vlan: vlan, netdev })
}

/// `rxe1` on `d1` (IPv6 `2001:db8::1/64`): two GIDs.
#[derive(Debug)]
pub(crate) struct Ipv6Lab {
    _rxe: SoftRoce,
    _netdev: Netdev,
}

/// What `tests/vm/try` runs its command among: a [`VlanLab`] and an [`Ipv6Lab`].
pub(crate) fn two_soft_roce_devices() -> Result<(VlanLab, Ipv6Lab)> {
    let first = vlan_lab()?;
    let netdev = Netdev::dummy("d1", "02:66:77:88:99:aa")?;
    netdev.address("2001:db8::1/64")?;
    let rxe = SoftRoce::new("rxe1", &netdev)?;
    rxe.wait_for_gids(2)?;
    Ok((first, Ipv6Lab { _rxe: rxe, _netdev: netdev }))
}

/// Removes what a scenario left.
///
/// # Errors
/// Names everything that it found, and what could not be taken away.
pub(crate) fn sweep() -> Result<()> {
    let mut found = boot::load_missing_modules()?;
    // With its driver a function's RDMA device and interfaces go.
    found.extend(mlx5::sweep()?);
    if IbSwitch::is_loaded()? {
        IbSwitch::unload();
        found.push("ib_switch".to_owned());
    }
    for link in names_in("/sys/class/infiniband")? {
        undo(&["rdma", "link", "delete", &link]);
        found.push(link);
    }
    if SoftIwarp::is_loaded()? {
        SoftIwarp::unload();
        found.push("siw".to_owned());
    }
    // The second is no interface, but a file of the module bonding.
    let stays = |name: &String| ["lo", "bonding_masters"].contains(&name.as_str());
    for netdev in names_in("/sys/class/net")?.into_iter().filter(|name| !stays(name)) {
        // A VLAN goes with the device below it.
        if fs::exists(format!("/sys/class/net/{netdev}"))? {
            undo(&["ip", "link", "delete", &netdev]);
        }
        found.push(netdev);
    }
    for namespace in names_in("/run/netns")? {
        undo(&["ip", "netns", "delete", &namespace]);
        found.push(namespace);
    }
    if run(&["rdma", "system", "show"])?.contains("netns exclusive") {
        Exclusive::turn("shared")?;
        found.push("the exclusive mode".to_owned());
    }
    if !found.is_empty() {
        bail!("left behind: {}", found.join(", "));
    }
    Ok(())
}

/// The names in a directory; none where it does not exist.
pub(crate) fn names_in(directory: &str) -> Result<Vec<String>> {
    if !fs::exists(directory)? {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(directory).with_context(|| directory.to_owned())?;
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort_unstable();
    Ok(names)
}
