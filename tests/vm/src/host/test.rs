//! The matrix: every scenario on every kernel, or a sample of it. Scenarios that are made for the same
//! machine and kernel share a queue. Some machines run at once, and each takes the next scenario of
//! its queue when it is ready; a lane that has no queue of its own left helps with the longest.
//!
//! Machines boot, and are not restored from a saved one: all boots take about a minute of a run, and the saved
//! memory would hold the programs of the initramfs, worthless after each change of them.

use crate::compared::Compared;
use crate::kernels::{self, Kernel, Series};
use crate::modules::Lack;
use crate::selection::{self, Rank, Sample};
use crate::table::{Table, Verdict};
use crate::times::{self, Times};
use crate::{Hardware, Lab, Missing, boards, machines, paths, status, words};
use anyhow::{Context, Result, ensure};
use std::fs::{self, File};
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;
use uverbs_vm::WORLDS;
use uverbs_vm::bed::Bed;
use uverbs_vm::job::Job;
use uverbs_vm::report::{Outcome, Report};

/// How a scenario begins a line that is shown also if all is well: something it counted.
const FIGURE: &str = "figure: ";

/// The seconds of work that another machine has to take over to be worth its boot.
const WORTH_A_BOOT: f32 = 25.0;

/// What a run has.
#[derive(Debug)]
pub(crate) struct Wanted {
    /// Only these scenarios, where any are named.
    pub(crate) scenarios: Vec<String>,
    /// How many machines may run at once.
    pub(crate) jobs: usize,
    /// By what a run takes samples.
    pub(crate) sample: Option<Sample>,
    /// Until when scenarios may start.
    pub(crate) limit: Option<Instant>,
}

/// The row of the table for the boots of a machine: they ended, and the kernel had no complaint.
fn boot_row(bed: Bed) -> String {
    format!("(the kernel stays well, {bed})")
}

/// The row of the table for our own kernel modules. Scenarios that want one skip where it is not.
const MODULES: &str = "(our modules are built)";

/// The row of the table for soft iWARP.
const SIW: &str = "(siw is built)";

/// A scenario that waits.
#[derive(Debug)]
struct Waiting {
    name: String,
    seconds: f32,
}

/// What runs on one kind of machine with one kernel.
#[derive(Debug)]
struct Group<'a> {
    kernel: &'a Kernel,
    lab: &'a Lab,
    bed: Bed,
    /// The next one is the last.
    waiting: Vec<Waiting>,
    /// Machines that run now, and that ever ran.
    running: u16,
    boots: u16,
    trouble: Vec<String>,
}

impl Group<'_> {
    /// The seconds of work that are left.
    fn left(&self) -> f32 {
        self.waiting.iter().map(|it| it.seconds.max(0.1)).sum()
    }
}

/// What a run has left to do.
#[derive(Debug)]
struct Plan<'a> {
    groups: Vec<Group<'a>>,
    table: Table,
    compared: Compared,
    times: Times,
    limit: Option<Instant>,
}

impl Plan<'_> {
    fn is_over(&self) -> bool {
        self.limit.is_some_and(|limit| Instant::now() >= limit)
    }

    /// The group that gets the next machine, and the machine's number: of those that have none the
    /// longest, else the one with the most left for each.
    fn next_machine(&mut self) -> Option<(usize, u16)> {
        if self.is_over() {
            return None;
        }
        let worth = |group: &Group| {
            let left = group.left() / f32::from(group.running + 1);
            let enough = if group.running == 0 { 0.0 } else { WORTH_A_BOOT };
            (left > enough).then_some((group.running == 0, left))
        };
        let worth = self.groups.iter().enumerate().filter_map(|(at, it)| Some((at, worth(it)?)));
        let (at, _) = worth.max_by(|(_, a), (_, b)| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)))?;
        let group = self.groups.get_mut(at)?;
        group.running += 1;
        group.boots += 1;
        Some((at, group.boots))
    }

    /// The next scenario of a group.
    fn next_scenario(&mut self, group: usize) -> Option<String> {
        if self.is_over() {
            return None;
        }
        self.groups.get_mut(group)?.waiting.pop().map(|it| it.name)
    }

    fn set(&mut self, group: usize, scenario: &str, verdict: Verdict) {
        if let Some(group) = self.groups.get(group) {
            self.table.set(scenario, group.kernel.series, verdict);
        }
    }

    /// All is over: what has not run, and how the machines were.
    fn finish(&mut self) {
        for group in &self.groups {
            let series = group.kernel.series;
            if self.is_over() {
                // They should have run: nothing is known of what they test.
                for it in &group.waiting {
                    let verdict = Verdict::Failed("no time was left to begin it".into());
                    self.table.set(&it.name, series, verdict);
                }
            }
            let verdict = match (group.boots, group.trouble.is_empty()) {
                (_, false) => Verdict::Failed(group.trouble.join("\n")),
                (0, true) => Verdict::Skipped("no scenario ran on it".into()),
                (_, true) => Verdict::Ok,
            };
            self.table.set(&boot_row(group.bed), series, verdict);
        }
    }
}

/// Runs what is wanted of the matrix, prints the table, and fails where anything did.
pub(crate) fn run(
    kernels: &[Kernel],
    missing: &[Missing],
    wanted: &Wanted,
    labs: &[Lab],
) -> Result<ExitCode> {
    let known = labs.first().context("no kernel can be had")?.scenarios()?;
    let names: Vec<&str> = known.iter().map(|(name, _)| name.as_str()).collect();
    let only = &wanted.scenarios;
    let told = words::of("scenarios")?;
    ensure!(
        told == names,
        "tests/vm/words does not name the scenarios that the guest has: {told:?}"
    );
    let unknown = selection::unknown(&names);
    ensure!(unknown.is_empty(), "selection.rs names scenarios that there are not: {unknown:?}");
    let on_bed = |bed: Bed| {
        let chosen = known
            .iter()
            .filter(|(name, its_bed)| *its_bed == bed && (only.is_empty() || only.contains(name)));
        (bed, chosen.map(|(name, _)| name.clone()).collect::<Vec<_>>())
    };
    let beds: Vec<_> =
        Bed::ALL.into_iter().map(on_bed).filter(|(_, scenarios)| !scenarios.is_empty()).collect();

    // The logs have fixed names, so that they are found: one matrix at a time.
    let lock = paths::logs("lock");
    if let Some(directory) = lock.parent() {
        fs::create_dir_all(directory)?;
    }
    let lock = File::create(lock)?;
    if lock.try_lock().is_err() {
        status("waiting for another run");
        lock.lock()?;
    }
    let failures = paths::logs("failed");
    if failures.exists() {
        fs::remove_dir_all(&failures)?;
    }

    let times = Times::read();
    let mut table = empty_table(kernels, missing, &beds, only)?;
    let mut groups = Vec::new();
    for kernel in kernels {
        let lab = labs.iter().find(|lab| lab.machine == kernel.machine).context("no lab")?;
        for (bed, scenarios) in &beds {
            let is_for = |name: &&String| is_for(kernel.machine, name, only);
            let scenarios: Vec<_> = scenarios.iter().filter(is_for).collect();
            if scenarios.is_empty() || lacking(kernel, *bed)?.is_some() {
                continue;
            }
            // What is named is wanted now.
            let sample = wanted.sample.filter(|_| only.is_empty());
            let mut waiting = Vec::new();
            for name in scenarios {
                let why = match selection::rank(sample, kernel.series, name) {
                    Rank::Now => {
                        let seconds = times.estimate(kernel.series, name);
                        waiting.push(Waiting { name: name.clone(), seconds });
                        continue;
                    }
                    Rank::Later => "not its turn by the seed; `tests/run all` has it",
                    Rank::More => "`tests/run --more` has a part of these, `tests/run all` has all",
                };
                table.set(name, kernel.series, Verdict::Skipped(why.into()));
            }
            waiting.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
            let (running, boots, trouble) = (0, 0, Vec::new());
            groups.push(Group { kernel, lab, bed: *bed, waiting, running, boots, trouble });
        }
    }
    let limit = wanted.limit;
    let plan = Mutex::new(Plan { groups, table, compared: Compared::default(), times, limit });
    let next = || locked(&plan).next_machine();
    thread::scope(|scope| {
        for _ in 0..wanted.jobs.max(1) {
            scope.spawn(|| {
                while let Some((group, number)) = next() {
                    Machine { plan: &plan, group, number, sample: wanted.sample }.run();
                }
            });
        }
    });
    let mut plan = plan.into_inner().unwrap_or_else(PoisonError::into_inner);
    plan.finish();
    // A whole run has all on all kernels.
    let has = |series: &Series| kernels.iter().any(|kernel| kernel.series == series.name);
    if wanted.sample.is_none() && missing.is_empty() && kernels::ALL.iter().all(has) {
        let all = beds.iter().flat_map(|(_, scenarios)| scenarios.iter().map(String::as_str));
        for name in plan.table.nowhere(all) {
            let newest = kernels::ALL.last().map_or("", |series| series.name);
            let why = "it was skipped on every kernel: nothing tests what it does";
            plan.table.set(name, newest, Verdict::Failed(why.into()));
        }
    }
    plan.times.keep();
    print!("\n{}{}", plan.compared.text(), plan.table.text());
    Ok(ExitCode::from(u8::from(!plan.table.passed())))
}

/// The table with what is known before anything ran.
fn empty_table(
    kernels: &[Kernel],
    missing: &[Missing],
    beds: &[(Bed, Vec<String>)],
    only: &[String],
) -> Result<Table> {
    let usual = machines::Machine::guest()?;
    let columns =
        kernels.iter().map(|kernel| kernel.series).chain(missing.iter().map(|(series, _)| *series));
    let rows = beds.iter().flat_map(|(bed, scenarios)| {
        std::iter::once(boot_row(*bed)).chain(scenarios.iter().cloned())
    });
    let rows = [MODULES, SIW].map(str::to_owned).into_iter().chain(rows);
    let mut table = Table::new(columns.map(str::to_owned).collect(), rows.collect());
    for (series, why) in missing {
        let machine = kernels::series(series)?.machine()?;
        let verdict = |is_for: bool| {
            if is_for { Verdict::Skipped("no such kernel".into()) } else { Verdict::Elsewhere }
        };
        for row in [MODULES, SIW] {
            table.set(row, series, verdict(machine == usual));
        }
        for (bed, scenarios) in beds {
            table.set(&boot_row(*bed), series, absence(format!("no such kernel: {why}")));
            for scenario in scenarios {
                table.set(scenario, series, verdict(is_for(machine, scenario, only)));
            }
        }
    }
    for kernel in kernels {
        for (bed, scenarios) in beds {
            let lacking = lacking(kernel, *bed)?;
            let verdict = |is_for: bool| match lacking {
                Some(why) if is_for => Some(Verdict::Skipped(why.to_owned())),
                None if is_for => None,
                _ => Some(Verdict::Elsewhere),
            };
            let is_for = |name: &String| is_for(kernel.machine, name, only);
            for scenario in scenarios {
                if let Some(verdict) = verdict(is_for(scenario)) {
                    table.set(scenario, kernel.series, verdict);
                }
            }
            if let Some(verdict) = verdict(scenarios.iter().any(is_for)) {
                table.set(&boot_row(*bed), kernel.series, verdict);
            }
        }
        // What is built for the usual machine only.
        if kernel.machine != usual {
            for row in [MODULES, SIW] {
                table.set(row, kernel.series, Verdict::Elsewhere);
            }
            continue;
        }
        let siw = kernel.own_modules.clone().and_then(|modules| modules.siw);
        for (row, built) in [(MODULES, kernel.own_modules.clone().map(drop)), (SIW, siw)] {
            let verdict = match built {
                Ok(()) => Verdict::Ok,
                Err(Lack { why, is_broken: true }) => Verdict::Failed(why),
                Err(Lack { why, is_broken: false }) => absence(why),
            };
            table.set(row, kernel.series, verdict);
        }
    }
    Ok(table)
}

/// Whether a scenario is for kernels of a machine: if it is named, in any case.
fn is_for(machine: machines::Machine, scenario: &String, only: &[String]) -> bool {
    only.contains(scenario) || selection::is_for(machine, scenario)
}

/// Why a kernel's machine lacks the devices of a bed, if so.
fn lacking(kernel: &Kernel, bed: Bed) -> Result<Option<&'static str>> {
    Ok(boards::of(kernel.machine)?.no_mlx5.filter(|_| bed == Bed::Mlx5))
}

/// The verdict on something that could not be had. A mirror may have dropped an old release: no
/// reason to fail on somebody's machine, but the project's own tests must not silently become fewer.
fn absence(why: String) -> Verdict {
    if std::env::var_os("CI").is_some() { Verdict::Failed(why) } else { Verdict::Skipped(why) }
}

fn locked<'a, 'b>(plan: &'a Mutex<Plan<'b>>) -> MutexGuard<'a, Plan<'b>> {
    plan.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One machine: it is booted once, and takes scenarios of its group as long as there are some.
struct Machine<'a, 'b> {
    plan: &'a Mutex<Plan<'b>>,
    group: usize,
    /// Counts the machines of the group.
    number: u16,
    sample: Option<Sample>,
}

impl Machine<'_, '_> {
    fn run(&self) {
        let group = locked(self.plan).groups.get(self.group).map(|it| (it.kernel, it.lab, it.bed));
        let Some((kernel, lab, bed)) = group else {
            return;
        };
        let number = if self.number == 1 { String::new() } else { format!("-{}", self.number) };
        let log = format!("test-{}-{bed}{number}", kernel.series);
        let start = Instant::now();
        let mut is_up = false;
        let mut running: Option<(String, Instant)> = None;
        let mut output = String::new();
        let mut trouble = Vec::new();
        let say = |what: &str| status(&format!("{:>5} {bed}{number}  {what}", kernel.series));
        say(&format!("booting {}", kernel.version));

        let hardware = Hardware { bed, terminal: None };
        let job = Job::Scenarios;
        let wrong = lab.boot(kernel, hardware, &log, &job, self.sample, |report| {
            match report {
                Report::Ready => {
                    if !is_up {
                        is_up = true;
                        times::spent("booting", start.elapsed().as_secs_f32());
                    }
                    return Some(locked(self.plan).next_scenario(self.group).unwrap_or_default());
                }
                Report::Begin(name) => {
                    running = Some((name, Instant::now()));
                    output.clear();
                }
                Report::Output(_, bytes) => output.push_str(&String::from_utf8_lossy(&bytes)),
                Report::Done(name, outcome) => {
                    let took =
                        running.take().map_or(0.0, |(_, since)| since.elapsed().as_secs_f32());
                    let (word, verdict) = match outcome {
                        Outcome::Ok => ("ok".to_owned(), Verdict::Ok),
                        Outcome::Skipped(why) => (format!("skipped: {why}"), Verdict::Skipped(why)),
                        Outcome::Failed(why) => {
                            let why = self.failed(kernel, &name, &log, &format!("{output}{why}"));
                            ("FAILED".to_owned(), Verdict::Failed(why))
                        }
                    };
                    say(&format!("{name} {word} ({took:.1} s)"));
                    for figure in output.lines().filter_map(|line| line.strip_prefix(FIGURE)) {
                        say(&format!("    {figure}"));
                    }
                    times::spent(&format!("{name} on {}", kernel.series), took);
                    let mut plan = locked(self.plan);
                    plan.times.note(kernel.series, &name, took);
                    if verdict == Verdict::Ok {
                        plan.compared.note(kernel.series, &output);
                    }
                    plan.set(self.group, &name, verdict);
                }
                Report::Trouble(what) => trouble.push(what),
                Report::Exit(_) | Report::End => {}
            }
            None
        });
        trouble.extend(wrong.unwrap_or_else(|error| vec![format!("{error:#}")]));
        if let Some((name, _)) = running {
            let why = format!("{output}the machine went down in the middle of it");
            let why = self.failed(kernel, &name, &log, &why);
            locked(self.plan).set(self.group, &name, Verdict::Failed(why));
        }
        let seconds = start.elapsed().as_secs_f32();
        match trouble.first() {
            None => say(&format!("off after {seconds:.1} s")),
            Some(what) => say(&format!("FAILED after {seconds:.1} s: {what}")),
        }
        let mut plan = locked(self.plan);
        if let Some(group) = plan.groups.get_mut(self.group) {
            group.running -= 1;
            group.trouble.extend(trouble);
            // What does not come up does not the next time. What went down may have done so by one
            // scenario, and the others get another machine.
            if !is_up {
                group.waiting.clear();
            }
        }
    }

    /// Keeps all there is about a failure in one folder, and says how to see it again.
    fn failed(&self, kernel: &Kernel, scenario: &str, log: &str, why: &str) -> String {
        let more = if self.sample.is_some_and(|own| own.has_more) { " --more" } else { "" };
        let sample = self.sample.map(|own| format!(" --sample {}{more}", own.seed));
        let sample = sample.unwrap_or_default();
        let series = kernel.series;
        // Random worlds are those of this run.
        let worlds = std::env::var(WORLDS).map(|worlds| format!("{WORLDS}={worlds} "));
        let worlds = worlds.unwrap_or_default();
        let again = format!("{worlds}tests/run vm --kernel {series} --scenario {scenario}{sample}");
        let folder = paths::logs(&format!("failed/{series}-{scenario}"));
        let kept = match keep_failure(&folder, kernel, log, &again, why) {
            Ok(()) => format!("kept in {}", folder.display()),
            Err(error) => format!("not kept: {error:#}"),
        };
        format!("{why}\n{kept}\nagain: {again}")
    }
}

fn keep_failure(folder: &Path, kernel: &Kernel, log: &str, again: &str, why: &str) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    fs::write(folder.join("output.log"), why)?;
    for name in ["console.log", "report.log"] {
        fs::copy(paths::logs(log).join(name), folder.join(name)).context(name)?;
    }
    fs::write(folder.join("again"), format!("# Linux {}\n{again}\n", kernel.version))?;
    Ok(())
}
