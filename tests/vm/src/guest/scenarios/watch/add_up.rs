//! The first inventory and the differences that are found give the last inventory, whatever is done to devices,
//! interfaces and addresses.
//!
//! Each difference is applied to a copy of the first inventory. One that is told twice, or too early for its row,
//! does not fit the copy, and one that is missing is found by a reading at the end.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use uverbs::host::Host;
use uverbs::inventory::Inventory;
use uverbs::watch::{Options, Origin, Watch, What};
use uverbs_mlx5_function::description::Description;
use uverbs_vm::{sample, stretched};

use super::ethernet::Ethernet;
use super::infiniband::{Function, Switch};
use super::iwarp::Iwarp;
use crate::lab::{self, Exclusive};
use crate::scenarios::siw;
use crate::scenarios::worlds::Random;

/// How often each operation was done.
pub(super) type Counts = BTreeMap<&'static str, u32>;

/// What operations are done to.
pub(super) trait Bed {
    /// One operation that looks random, on what there is. What the kernel refuses is none.
    fn step(&mut self, random: &mut Random, counts: &mut Counts) -> Result<()>;
}

/// Counts an operation.
pub(super) fn count(counts: &mut Counts, what: &'static str, is_done: bool) {
    *counts.entry(if is_done { what } else { REFUSED }).or_default() += 1;
}

/// How many were done, without what the kernel refused, as an address that is there already.
fn performed(counts: &Counts) -> u32 {
    counts.iter().filter(|(what, _)| **what != REFUSED).map(|(_, count)| count).sum()
}

const REFUSED: &str = "refused";

/// Takes what is found, and does all of it to a copy of the first inventory.
struct Copy {
    now: Inventory,
    differences: BTreeMap<&'static str, u32>,
    origins: BTreeMap<&'static str, u32>,
    events: u32,
}

impl Copy {
    fn new(watch: &Watch) -> Self {
        let (differences, origins) = (BTreeMap::new(), BTreeMap::new());
        Self { now: watch.inventory().clone(), differences, origins, events: 0 }
    }

    fn take(&mut self, what: &What, origins: &[Origin]) -> Result<()> {
        let What::Difference(difference) = what else {
            println!("{what:?}");
            self.events += 1;
            return Ok(());
        };
        let before = self.now.clone();
        difference.apply(&mut self.now).with_context(|| format!("{difference:?}"))?;
        ensure!(self.now != before, "it says nothing: {difference:?}");
        *self.differences.entry(difference.name()).or_default() += 1;
        for origin in origins {
            *self.origins.entry(origin.name()).or_default() += 1;
        }
        Ok(())
    }
}

/// What the host is like, read by a watch that begins now.
fn fresh() -> Result<Inventory> {
    Ok(Host::new().watch(Options::default())?.inventory().clone())
}

/// Random operations while a watch listens, which is in another thread, as another program would be. Among what
/// is found has to be all of `wanted`.
fn add_up(reread: Option<Duration>, bed: &mut dyn Bed, wanted: &[&str]) -> Result<()> {
    let (seed, count) = match sample() {
        Some(seed) => (seed, 60),
        None => (1, 1000),
    };
    let (mut random, mut counts) = (Random::new(seed), Counts::new());
    let is_over = AtomicBool::new(false);
    let mut options = Options::default();
    options.reread = reread;
    let watch = Host::new().watch(options)?;
    for own in watch.unheard() {
        println!("not heard: {} {}", own.origin.name(), own.problem.text);
    }
    let copy = thread::scope(|scope| -> Result<Copy> {
        let watcher = scope.spawn(|| follow(watch, &is_over));
        let mut done = Ok(());
        while performed(&counts) < count {
            done = bed.step(&mut random, &mut counts);
            // Often at once, sometimes with a pause in which all is read.
            if random.once_in(4) {
                let pause = u64::try_from(random.below(30)).unwrap_or(0);
                thread::sleep(Duration::from_millis(pause));
            }
            if done.is_err() || watcher.is_finished() {
                break;
            }
        }
        println!("figure: {count} operations of seed {seed}: {counts:?}");
        is_over.store(true, Ordering::SeqCst);
        let copy = watcher.join().map_err(|_| anyhow::anyhow!("the watcher panicked"))??;
        done.map(|()| copy)
    })?;
    let all: u32 = copy.differences.values().sum();
    println!("figure: {all} differences, {} other events: {:?}", copy.events, copy.differences);
    println!("figure: causes: {:?}", copy.origins);
    for name in wanted {
        // Few operations may be none of a kind.
        let is_there = sample().is_some() || copy.differences.contains_key(name);
        ensure!(is_there, "no {name} among {:?}", copy.differences);
    }
    ensure!(all > 0, "nothing was found");
    Ok(())
}

/// Follows all changes until the operations are over and the copy is what there is.
fn follow(mut watch: Watch, is_over: &AtomicBool) -> Result<Copy> {
    let mut copy = Copy::new(&watch);
    let limit = stretched(Duration::from_mins(3));
    let mut over_since: Option<Instant> = None;
    loop {
        while let Some(change) = watch.wait(Some(Duration::from_millis(100)))? {
            copy.take(&change.what, &change.origins)?;
        }
        ensure!(copy.now == *watch.inventory(), "the copy differs from the watch's inventory");
        if !is_over.load(Ordering::SeqCst) {
            continue;
        }
        let since = *over_since.get_or_insert_with(Instant::now);
        let now = fresh()?;
        if now == copy.now {
            println!("{:?} after the last operation all is found", since.elapsed());
            return Ok(copy);
        }
        if since.elapsed() > limit {
            bail!("not found: {:#?}", uverbs::watch::differences(&copy.now, &now));
        }
    }
}

/// The default.
const USUAL: Option<Duration> = Some(Duration::from_secs(30));

const ROWS: [&str; 5] = ["gid_came", "gid_went", "gid_moved", "gid_changed", "port_state"];

/// Soft RoCE, with interfaces of other namespaces.
pub(crate) fn on_soft_roce() -> Result<()> {
    let mut bed = Ethernet::soft(None, true)?;
    let devices = ["device_came", "device_went", "device_renamed", "interface_renamed"];
    add_up(USUAL, &mut bed, &[&ROWS[..], &devices].concat())
}

/// Soft RoCE, and nothing is read from time to time: all that happens in this namespace is heard.
pub(crate) fn on_soft_roce_without_rereading() -> Result<()> {
    let is_open = lab::kernel()? >= (7, 3);
    add_up(None, &mut Ethernet::soft(None, is_open)?, &ROWS)
}

/// Devices belong to one namespace each, and are moved.
pub(crate) fn on_soft_roce_of_its_own_namespace() -> Result<()> {
    let mode = Exclusive::set()?;
    add_up(USUAL, &mut Ethernet::soft(Some(mode), true)?, &ROWS)
}

/// RoCE of mlx5, of which every event is heard on every kernel.
pub(crate) fn on_mlx5_roce() -> Result<()> {
    let mode = Exclusive::set()?;
    let mut bed = Ethernet::mlx5(mode)?;
    add_up(None, &mut bed, &[&ROWS[..2], &["device_came", "device_went"]].concat())
}

/// Two InfiniBand ports of mlx5.
pub(crate) fn on_mlx5_infiniband() -> Result<()> {
    let mode = Exclusive::set()?;
    let mut bed = Function::bind(&Description::infiniband(2), mode)?;
    let ports = ["port_lid", "port_sm", "port_pkeys", "port_state", "gid_came", "gid_went"];
    add_up(None, &mut bed, &[&ports[..], &["device_came", "device_renamed"]].concat())
}

/// The InfiniBand switch, which is kept open where soft RoCE is: by its driver's number it is that.
pub(crate) fn on_a_switch() -> Result<()> {
    let mut bed = Switch::load()?;
    let is_open = lab::kernel()? >= (7, 3);
    let reread = Some(Duration::from_secs(1)).filter(|_| !is_open);
    let ports = ["port_lid", "port_sm", "port_pkeys", "port_state", "gid_came", "gid_went"];
    add_up(reread, &mut bed, &[&ports[..], &["device_came", "device_renamed"]].concat())
}

/// Soft iWARP, which is never kept open: what only its events say is read from time to time.
pub(crate) fn on_soft_iwarp() -> Result<()> {
    let mut bed = Iwarp::new()?;
    let mut wanted = vec!["device_came", "device_went", "device_renamed", "port_state"];
    if siw::gid_follows_the_mac()? {
        wanted.push("gid_changed");
    }
    add_up(Some(Duration::from_secs(1)), &mut bed, &wanted)
}
