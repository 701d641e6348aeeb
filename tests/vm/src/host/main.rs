//! Boots Debian's kernels in QEMU and runs tests and commands inside.
//!
//! The modules, from the packages up to the verdict: [`sources`] and [`apt`] fetch, [`cache`]
//! keeps, [`kernels`], [`packages`] and [`rdma_core`] say what; [`machines`] has the table of machines, [`boards`]
//! how QEMU is one; [`musl`], [`programs`], [`c_programs`] and [`modules`] build ours,
//! [`initramfs`] puts all into an archive ([`elf`] helps both), [`qemu`] boots it with
//! [`functions`] and [`console`] judges the kernel's log. [`words`] refuses names that do not exist, [`selection`] says
//! which scenarios run, [`test`](mod@test) runs them, [`times`] has the seconds, [`compared`] how much was compared
//! with rdma-core, [`table`] shows how it went.
//! [`trying`] runs one command or a shell ([`terminal`]), and [`phases`] shows what it does. What runs inside
//! is the program `guest`.
//! [`capi`] fetches for `tests/capi/run`, which boots nothing.

mod apt;
mod boards;
mod c_programs;
mod cache;
mod capi;
mod compared;
mod console;
mod elf;
mod functions;
mod initramfs;
mod kernels;
mod machines;
mod modules;
mod musl;
mod packages;
mod paths;
mod phases;
mod programs;
mod qemu;
mod rdma_core;
mod selection;
mod sources;
mod table;
mod terminal;
mod test;
mod times;
mod trying;
mod words;

use crate::apt::Apt;
use crate::c_programs::{Builder, Musl};
use crate::cache::Cache;
use crate::functions::Functions;
use crate::initramfs::{Initramfs, Tree};
use crate::kernels::{Kernel, Series};
use crate::machines::Machine;
use crate::selection::Sample;
use crate::terminal::Terminal;
use crate::test::Wanted;
use crate::times::timed;
use anyhow::{Context, Result, ensure};
use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};
use uverbs_vm::NO_NEWER;
use uverbs_vm::bed::Bed;
use uverbs_vm::job::{Devices, Job};
use uverbs_vm::report::Report;

/// Runs tests and commands in virtual machines with Debian's kernels.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Run scenarios on kernels, each on each, on the machine that it is made for.
    Test {
        /// Only this series (such as 6.12, or 6.12-arm64; tests/vm/words kernels has all); may be repeated.
        #[arg(long = "kernel", value_name = "SERIES")]
        kernels: Vec<String>,
        /// Only this scenario; may be repeated.
        #[arg(long = "scenario", value_name = "NAME")]
        scenarios: Vec<String>,
        /// How many machines may run at once. A guest waits often: two leave two processors idle.
        #[arg(long, default_value_t = 3)]
        jobs: usize,
        /// Take samples: all on the newest kernel, and what differs on the one older kernel that has its turn by
        /// this seed; of what is done thousands of times a part. Whole where it is left out.
        #[arg(long, value_name = "SEED")]
        sample: Option<u64>,
        /// On the older kernel also a third of what does not differ; and machines with two processors, by turns.
        #[arg(long, requires = "sample")]
        more: bool,
        /// After so many seconds, start nothing more; what should have run then fails.
        #[arg(long, value_name = "SECONDS")]
        limit: Option<u64>,
    },
    /// Run a command, or a shell, on a machine with two soft-RoCE devices, or with an mlx5 device. tests/vm/try
    /// builds what this needs.
    Try {
        /// The kernel's series; the newest where it is left out.
        #[arg(long, value_name = "SERIES", env = "UVERBS_VM_KERNEL")]
        kernel: Option<String>,
        /// An mlx5 device instead: ib1, ib2 (InfiniBand with one or two ports), roce, switchdev, ecpf.
        #[arg(
            long,
            value_name = "MODE",
            num_args = 0..=1,
            default_missing_value = "ib2",
            env = "UVERBS_VM_MLX5"
        )]
        mlx5: Option<Devices>,
        /// How many seconds building took.
        #[arg(long, value_name = "SECONDS")]
        built: Option<f32>,
        /// The command and its arguments; a shell without them.
        #[arg(last = true)]
        command: Vec<String>,
    },
    /// Fetch and build everything that a test needs.
    Fetch {
        /// Fetch existing files again.
        #[arg(long)]
        refresh: bool,
    },
    /// Print the environment (NAME=VALUE) in which tests compare with the newest kernel headers.
    Headers,
    /// Print the environment (NAME=VALUE) in which static files are built.
    MuslEnv {
        /// For which machine: a name of src/packaging/machines, or its static target.
        #[arg(default_value = "x86_64")]
        machine: String,
    },
    /// Print the environment (NAME=VALUE) of `tests/capi/run`.
    CEnv,
}

fn main() -> ExitCode {
    match act(Arguments::parse().command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("vm: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Says to the person at the terminal what is going on.
fn status(what: &str) {
    phases::end_line();
    eprintln!("vm: {what}");
}

fn act(action: Action) -> Result<ExitCode> {
    let refresh = matches!(action, Action::Fetch { refresh: true });
    // Wrong words are refused before anything is waited for, fetched or built.
    match &action {
        Action::Test { kernels, scenarios, .. } => {
            words::check("kernels", kernels)?;
            words::check("scenarios", scenarios)?;
        }
        Action::Try { kernel, command, .. } => {
            words::check("kernels", kernel.as_slice())?;
            if let Some(code) = trying::refusal(command) {
                return Ok(code);
            }
        }
        _ => {}
    }
    let cache = Cache::open(paths::cache(), refresh)?;
    let mut apt = Apt::new(cache.path("apt"));
    match action {
        Action::Test { kernels, scenarios, jobs, sample, more, limit } => {
            let start = Instant::now();
            let is_whole = sample.is_none() && scenarios.is_empty();
            let mut wanted = wanted_series(&kernels, is_whole)?;
            // What has no turn is not even fetched.
            if let (Some(seed), true) = (sample, kernels.is_empty()) {
                wanted.retain(|series| {
                    let is_wanted = selection::has_turn(seed, series.name);
                    if !is_wanted {
                        let why = "not its turn by the seed; `tests/run all` has it";
                        println!("SKIPPED: Linux {}: {why}", series.name);
                    }
                    is_wanted
                });
            }
            let (kernels, missing) =
                timed("kernels and our modules", || obtain(&wanted, &cache, &mut apt));
            let mut labs: Vec<Lab> = Vec::new();
            for kernel in &kernels {
                if !labs.iter().any(|lab| lab.machine == kernel.machine) {
                    labs.push(Lab::prepare(kernel.machine, &cache, &mut apt)?);
                }
            }
            drop((apt, cache));
            // The time is that of the whole command.
            let limit = limit.map(|seconds| start + Duration::from_secs(seconds));
            let sample = sample.map(|seed| Sample { seed, has_more: more });
            let wanted = Wanted { scenarios, jobs, sample, limit };
            test::run(&kernels, &missing, &wanted, &labs)
        }
        Action::Try { kernel, mlx5, built, command } => {
            let newest = kernels::ALL.last().context("no kernels")?;
            let series = kernel.as_deref().map_or(Ok(newest), kernels::series)?;
            ensure!(series.machine()? == Machine::guest()?, "{} is only for tests", series.name);
            let devices = mlx5.unwrap_or(Devices::SoftRoce);
            trying::run(trying::Wanted { series, devices, command, built }, cache, apt)
        }
        Action::Fetch { .. } => {
            let (kernels, missing) = obtain(&wanted_series(&[], false)?, &cache, &mut apt);
            packages::qemu(Machine::guest()?, &cache, &mut apt)?;
            packages::peers(Machine::guest()?, &cache, &mut apt)?;
            rdma_core::newer(Machine::guest()?, &cache, &mut apt)?;
            packages::headers(&cache, &mut apt)?;
            musl::sysroot(Machine::guest()?, &cache, &mut apt)?;
            let has_all = |it: &Kernel| it.own_modules.as_ref().is_ok_and(|own| own.siw.is_ok());
            let complete = missing.is_empty() && kernels.iter().all(has_all);
            Ok(ExitCode::from(u8::from(!complete)))
        }
        Action::Headers => {
            let packages::Headers { user, mlx5 } = packages::headers(&cache, &mut apt)?;
            println!("UVERBS_KERNEL_HEADERS={}", user.display());
            println!("UVERBS_MLX5_HEADERS={}", mlx5.display());
            Ok(ExitCode::SUCCESS)
        }
        Action::CEnv => {
            for line in capi::environment(&cache, &mut apt)? {
                println!("{line}");
            }
            Ok(ExitCode::SUCCESS)
        }
        Action::MuslEnv { machine } => {
            let machine = Machine::named(&machine)?;
            for (name, value) in musl::environment(machine, &cache, &mut apt)? {
                println!("{name}={}", value.display());
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// A series and why it could not be had.
type Missing = (&'static str, String);

/// The series of these names. Where none is named, those of the usual machine; a whole run has all.
fn wanted_series(names: &[String], is_whole: bool) -> Result<Vec<&'static Series>> {
    if names.is_empty() {
        return Ok(if is_whole { kernels::all().collect() } else { kernels::ALL.iter().collect() });
    }
    names.iter().map(|name| kernels::series(name)).collect()
}

/// The kernels of these series, and those that could not be had.
fn obtain(wanted: &[&'static Series], cache: &Cache, apt: &mut Apt) -> (Vec<Kernel>, Vec<Missing>) {
    let (mut kernels, mut missing) = (Vec::new(), Vec::new());
    for &series in wanted {
        let kernel = kernels::get(series, cache, apt);
        match kernel.and_then(|kernel| fetch_beside(kernel.machine, cache, apt).map(|()| kernel)) {
            Ok(kernel) => kernels.push(kernel),
            Err(error) => {
                status(&format!("NO KERNEL {}: {error:#}", series.name));
                missing.push((series.name, format!("{error:#}")));
            }
        }
    }
    (kernels, missing)
}

/// Fetches what kernels of another machine than the usual cannot do without: QEMU, rdma-core and musl. Without them
/// they are not there, and all others run.
fn fetch_beside(machine: Machine, cache: &Cache, apt: &mut Apt) -> Result<()> {
    if machine != Machine::guest()? {
        packages::qemu(machine, cache, apt)?;
        packages::peers(machine, cache, apt)?;
        if machine.musl.is_some() {
            musl::c_library(machine, cache, apt)?;
        }
    }
    Ok(())
}

/// The root, in the guest, of what runs with the newer release of rdma-core.
const NEWER: &str = "newer/";

/// What a machine has beside processors and memory.
#[derive(Debug, Clone, Copy)]
struct Hardware<'a> {
    bed: Bed,
    /// The terminal of a person who plays.
    terminal: Option<&'a Terminal>,
}

/// Everything that boots of a machine need except a kernel.
#[derive(Debug)]
struct Lab {
    machine: Machine,
    qemu: PathBuf,
    /// The guest program, which also runs here to name its scenarios.
    guest: PathBuf,
    initramfs: Initramfs,
}

impl Lab {
    fn prepare(machine: Machine, cache: &Cache, apt: &mut Apt) -> Result<Self> {
        if machine == Machine::guest()? {
            Self::usual(machine, cache, apt)
        } else {
            Self::elsewhere(machine, cache, apt)
        }
    }

    /// Of another machine than the usual: our programs, and rdma-core's of the same machine.
    fn elsewhere(machine: Machine, cache: &Cache, apt: &mut Apt) -> Result<Self> {
        let name = machine.name;
        let (qemu, older, newer) = timed(&format!("QEMU and the peers of {name}"), || {
            let qemu = packages::qemu(machine, cache, apt)?;
            let older = rdma_core::older(machine, cache, apt)?;
            anyhow::Ok((qemu, older, rdma_core::newer(machine, cache, apt)))
        })?;
        let ours = programs::build_static(machine, cache, apt)?;
        let tree = Tree { directory: &older.tree, root: "", machine };
        let mut initramfs = Initramfs::with(&ours.guest, initramfs::PROGRAMS, tree)?;
        initramfs.providers(tree)?;
        initramfs.ours(&ours)?;
        let builder = Builder::new(machine, &older.tree)?;
        for pair in builder.peers(&older)? {
            initramfs.pair(&pair, tree)?;
        }
        match newer {
            Ok(newer) => initramfs.newer(&newer, &builder)?,
            // A mirror may lack what it has for x86-64. Scenarios say so again.
            Err(error) => {
                let why = format!("no newer release of rdma-core for {name}: {error:#}");
                status(&why);
                initramfs.file(NO_NEWER.trim_start_matches('/'), why.into_bytes());
            }
        }
        initramfs.of_32_bits(&builder, machine)?;
        Ok(Self { machine, qemu, guest: ours.guest, initramfs })
    }

    fn usual(machine: Machine, cache: &Cache, apt: &mut Apt) -> Result<Self> {
        let (qemu, podman, slurm, node_exporter, older, newer) =
            timed("QEMU and the peers", || -> Result<_> {
                let qemu = packages::qemu(machine, cache, apt)?;
                let podman = packages::podman(cache, apt)?;
                let slurm = packages::slurm(cache, apt)?;
                let node_exporter = packages::node_exporter(cache, apt)?;
                let older = rdma_core::older(machine, cache, apt)?;
                let newer = rdma_core::newer(machine, cache, apt)?;
                Ok((qemu, podman, slurm, node_exporter, older, newer))
            })?;
        let ours = programs::build_static(machine, cache, apt)?;
        let tree = Tree { directory: &older.tree, root: "", machine };
        let mut initramfs = Initramfs::new(&ours.guest, tree)?;
        initramfs.ours(&ours)?;
        initramfs.valgrind(tree)?;
        initramfs.podman(Tree { directory: &podman, ..tree })?;
        let exporter = std::fs::read(&node_exporter)?;
        initramfs.dynamic("usr/bin/prometheus-node-exporter", &exporter, tree)?;
        let slurm = Tree { directory: &slurm, root: "", machine };
        initramfs.slurm(slurm, &paths::workspace().join("src/packaging/slurm"))?;

        let start = Instant::now();
        let builder = Builder::new(machine, &older.tree)?;
        for pair in builder.peers(&older)? {
            initramfs.pair(&pair, tree)?;
        }
        initramfs.newer(&newer, &builder)?;
        for (name, program) in builder.sanitized(&older)? {
            initramfs.dynamic(&format!("usr/sanitized/{name}"), &std::fs::read(&program)?, tree)?;
        }
        for program in builder.statics(&newer.rdma_core, &Musl::new(&ours.released, cache, apt)?)? {
            initramfs.program(&format!("static/{}", program.libc), &program.program)?;
        }
        initramfs.of_32_bits(&builder, machine)?;
        times::spent("building C programs", start.elapsed().as_secs_f32());
        status(&format!("the initramfs holds {} MB beside modules", initramfs.size() / 1_000_000));
        Ok(Self { machine, qemu, guest: ours.guest, initramfs })
    }

    /// The names of all scenarios, each with its machine.
    fn scenarios(&self) -> Result<Vec<(String, Bed)>> {
        let mut guest = match self.machine.cross().and(self.machine.emulator) {
            Some(emulator) => Command::new(emulator),
            None => Command::new("env"),
        };
        let list = apt::Checked::checked(guest.arg(&self.guest).arg("list"))?;
        let scenario = |line: &str| {
            let (name, bed) = line.split_once(' ').context("a scenario without a bed")?;
            Ok((name.to_owned(), bed.parse()?))
        };
        list.lines().map(scenario).collect()
    }

    /// Boots this kernel on a machine like this for this job, with these samples, gives every report
    /// to `on_report`, whose answers the guest hears, and returns what was wrong with the machine. The logs are kept under `name`.
    fn boot(
        &self,
        kernel: &Kernel,
        hardware: Hardware,
        name: &str,
        job: &Job,
        sample: Option<Sample>,
        on_report: impl FnMut(Report) -> Option<String>,
    ) -> Result<Vec<String>> {
        let logs = paths::logs(name);
        std::fs::create_dir_all(&logs)?;
        let initramfs = logs.join("initramfs");
        self.initramfs.write(kernel, job, &initramfs)?;
        let functions = match hardware.bed {
            Bed::Soft | Bed::Counted => None,
            Bed::Mlx5 => {
                qemu::has_device(&self.qemu, self.machine, functions::DEVICE)?;
                Some(Functions::start(name)?)
            }
        };
        let mut devices = functions.as_ref().map(Functions::qemu_arguments).unwrap_or_default();
        devices.extend(hardware.terminal.iter().flat_map(|it| it.qemu_arguments()));
        let is_played_with = hardware.terminal.is_some();
        let is_counted = hardware.bed == Bed::Counted;
        let qemu = &self.qemu;
        let boot = qemu::Boot {
            qemu,
            kernel,
            initramfs,
            devices,
            is_counted,
            processors: processors(kernel, hardware.bed, sample)?,
            logs,
            sample: sample.map(|own| own.seed),
            is_played_with,
        };
        let is_broken = || functions.as_ref().is_some_and(Functions::is_one_finished);
        let ran = boot.run(on_report, is_broken);
        // It is more than 200 MB, and some machines run.
        std::fs::remove_file(&boot.initramfs).context("removing the initramfs")?;
        let broken = functions.map(Functions::finish).unwrap_or_default();
        Ok(ran?.into_iter().chain(broken).collect())
    }
}

/// How many processors a machine has. QEMU emulates one with two thirds of the work that two take. So of a sample a
/// machine has all those of its board only in a run that has more, by one seed in five, which its kernel and its
/// devices choose.
fn processors(kernel: &Kernel, bed: Bed, sample: Option<Sample>) -> Result<u8> {
    let all = boards::of(kernel.machine)?.processors;
    let place: u64 = format!("{}{bed}", kernel.series).bytes().map(u64::from).sum();
    let has_all = |own: Sample| own.has_more && own.seed.wrapping_add(place).is_multiple_of(5);
    Ok(if sample.is_none_or(has_all) { all } else { 1 })
}
