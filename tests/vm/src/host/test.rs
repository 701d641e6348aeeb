//! The matrix: every scenario on every kernel. Scenarios that are made for the same machine share
//! a boot of each kernel; some boots run at once.

use crate::kernels::Kernel;
use crate::modules::Lack;
use crate::table::{Table, Verdict};
use crate::{Lab, Missing, paths, status};
use anyhow::{Result, ensure};
use std::fs::{self, File};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;
use uverbs_vm::bed::Bed;
use uverbs_vm::job::Job;
use uverbs_vm::report::{Outcome, Report};

/// How a scenario begins a line that is shown also if all is well: something it counted.
const FIGURE: &str = "figure: ";

/// The row of the table for the boots of a machine: they ended, and the kernel had no complaint.
fn boot_row(bed: Bed) -> String {
    format!("(the kernel stays well, {bed})")
}

/// The row of the table for our own kernel modules. Scenarios that want one skip where it is not.
const MODULES: &str = "(our modules are built)";

/// Runs the matrix, prints the table, and fails where anything did.
pub(crate) fn run(
    kernels: &[Kernel],
    missing: &[Missing],
    wanted: &[String],
    jobs: usize,
    lab: &Lab,
) -> Result<ExitCode> {
    let known = lab.scenarios()?;
    for name in wanted {
        let names: Vec<&str> = known.iter().map(|(name, _)| name.as_str()).collect();
        ensure!(
            names.contains(&name.as_str()),
            "no scenario {name:?}; there are {}",
            names.join(", ")
        );
    }
    let on_bed = |bed: Bed| {
        let chosen = known.iter().filter(|(name, its_bed)| {
            *its_bed == bed && (wanted.is_empty() || wanted.contains(name))
        });
        (bed, chosen.map(|(name, _)| name.clone()).collect::<Vec<_>>())
    };
    let beds: Vec<_> =
        Bed::ALL.into_iter().map(on_bed).filter(|(_, scenarios)| !scenarios.is_empty()).collect();

    let columns =
        kernels.iter().map(|kernel| kernel.series).chain(missing.iter().map(|(series, _)| *series));
    let rows = beds.iter().flat_map(|(bed, scenarios)| {
        std::iter::once(boot_row(*bed)).chain(scenarios.iter().cloned())
    });
    let rows = std::iter::once(MODULES.to_owned()).chain(rows);
    let mut table = Table::new(columns.map(str::to_owned).collect(), rows.collect());
    for (series, why) in missing {
        table.set(MODULES, series, Verdict::Skipped("no such kernel".into()));
        for (bed, scenarios) in &beds {
            table.set(&boot_row(*bed), series, absence(format!("no such kernel: {why}")));
            for scenario in scenarios {
                table.set(scenario, series, Verdict::Skipped("no such kernel".into()));
            }
        }
    }

    for kernel in kernels {
        let verdict = match kernel.own_modules.clone() {
            Ok(_) => Verdict::Ok,
            Err(Lack { why, is_broken: true }) => Verdict::Failed(why),
            Err(Lack { why, is_broken: false }) => absence(why),
        };
        table.set(MODULES, kernel.series, verdict);
    }

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

    let table = Mutex::new(table);
    let boots = kernels.iter().flat_map(|kernel| beds.iter().map(move |bed| (kernel, bed)));
    let queue = Mutex::new(boots);
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                while let Some((kernel, (bed, scenarios))) = next() {
                    one(kernel, *bed, scenarios, lab, &table);
                }
            });
        }
    });
    let table = table.into_inner().unwrap_or_else(PoisonError::into_inner);
    print!("{}", table.text());
    Ok(ExitCode::from(u8::from(!table.passed())))
}

/// The verdict on something that could not be had. A mirror may have dropped an old release: no
/// reason to fail on somebody's machine, but the project's own tests must not silently become fewer.
fn absence(why: String) -> Verdict {
    if std::env::var_os("CI").is_some() { Verdict::Failed(why) } else { Verdict::Skipped(why) }
}

/// Runs the scenarios of one machine on one kernel.
fn one(kernel: &Kernel, bed: Bed, scenarios: &[String], lab: &Lab, table: &Mutex<Table>) {
    let set = |scenario: &str, verdict| {
        table.lock().unwrap_or_else(PoisonError::into_inner).set(scenario, kernel.series, verdict);
    };
    let start = Instant::now();
    let mut running: Option<(String, Instant)> = None;
    let mut output = String::new();
    let mut trouble = Vec::new();
    let say = |what: &str| status(&format!("{:>5} {bed}  {what}", kernel.series));
    say(&format!("booting {}", kernel.version));

    let job = Job::Scenarios(scenarios.to_vec());
    let name = format!("test-{}-{bed}", kernel.series);
    let wrong = lab.boot(kernel, bed, &name, &job, |report| match report {
        Report::Begin(name) => {
            running = Some((name, Instant::now()));
            output.clear();
        }
        Report::Output(_, bytes) => output.push_str(&String::from_utf8_lossy(&bytes)),
        Report::Done(name, outcome) => {
            let (word, verdict) = match outcome {
                Outcome::Ok => ("ok".to_owned(), Verdict::Ok),
                Outcome::Skipped(why) => (format!("skipped: {why}"), Verdict::Skipped(why)),
                Outcome::Failed(why) => {
                    ("FAILED".to_owned(), Verdict::Failed(format!("{output}{why}")))
                }
            };
            let took = running.take().map_or(0.0, |(_, began)| began.elapsed().as_secs_f32());
            say(&format!("{name} {word} ({took:.1} s)"));
            for figure in output.lines().filter_map(|line| line.strip_prefix(FIGURE)) {
                say(&format!("    {figure}"));
            }
            set(&name, verdict);
        }
        Report::Trouble(what) => trouble.push(what),
        Report::Exit(_) | Report::End => {}
    });
    trouble.extend(wrong.unwrap_or_else(|error| vec![format!("{error:#}")]));
    if let Some((name, _)) = running {
        let why = format!("{output}the machine went down in the middle of it");
        set(&name, Verdict::Failed(why));
    }
    if trouble.is_empty() {
        say(&format!("off after {:.1} s", start.elapsed().as_secs_f32()));
        set(&boot_row(bed), Verdict::Ok);
    } else {
        say("FAILED");
        set(&boot_row(bed), Verdict::Failed(trouble.join("\n")));
    }
}
