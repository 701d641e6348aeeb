//! `uverbs metrics` on emulated functions: what a scrape costs beside `node_exporter`'s, and devices that fail.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use uverbs::host::Host;
use uverbs_mlx5_function::control::{Command, Fault};
use uverbs_mlx5_function::description::Description;

use crate::lab::mlx5::{Function, Mlx5};
use crate::lab::{self, run};
use crate::scenarios::metrics::{Exporter, Loopback, Serving, compare_samples};

const ACCESS_REG: u16 = 0x805;
/// The register of error counters.
const PPCNT: u16 = 0x5008;
/// 40GBASE-CR4 in the register of types and speeds.
const FORTY_GIGABITS: u32 = 1 << 6;

/// A function with RoCE whose port is up.
fn up(number: usize, description: &Description) -> Result<Mlx5> {
    let device = Mlx5::bind(number, description)?;
    // Its driver has commands of its own when the kernel joins groups and tries an address.
    lab::disable_ipv6(&device.netdev()?)?;
    run(&["ip", "link", "set", &device.netdev()?, "up"])?;
    let context = Host::new().open(device.name())?;
    let is_active = || context.query_port(1).is_ok_and(|it| it.state.name() == Some("active"));
    lab::wait_until("the port is up", is_active)?;
    Ok(device)
}

/// The register that a command reads, if it is one that does.
fn register(command: &Command) -> u16 {
    u16::from_be_bytes([command.arguments[2], command.arguments[3]])
}

fn counts(commands: &[Command]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for command in commands {
        let name = match command.opcode {
            ACCESS_REG => format!("{:x}.{:x}", command.opcode, register(command)),
            opcode => format!("{opcode:x}"),
        };
        *counts.entry(name).or_default() += 1;
    }
    counts
}

/// The commands of a scrape, when what it set in motion is over: the driver reads statistics later, on a busy machine much
/// later.
fn scraped(function: Function, serving: &Serving) -> Result<(String, Vec<Command>)> {
    when_quiet(function, function.next_command()?)?;
    let since = function.next_command()?;
    let text = serving.scrape()?;
    Ok((text, when_quiet(function, since)?))
}

/// The commands since one, when there are no more of them for half a second.
fn when_quiet(function: Function, since: u64) -> Result<Vec<Command>> {
    let mut before = None;
    loop {
        std::thread::sleep(std::time::Duration::from_millis(500));
        let commands = function.commands_since(since)?;
        if before == Some(commands.len()) {
            return Ok(commands);
        }
        before = Some(commands.len());
    }
}

/// What a whole scrape costs: a seventh of `node_exporter`'s.
pub(crate) fn cost_a_seventh() -> Result<()> {
    let _loopback = Loopback::new()?;
    let device = up(0, &Description::roce())?;
    let function = device.function();
    println!("figure: {} samples are those of node_exporter", compare_samples()?);
    let node = Exporter::Node.serve()?;
    node.scrape()?;
    let (_, theirs) = scraped(function, &node)?;
    drop(node);
    let (_, once) = function.commands_during(|| run(&["uverbs", "metrics"]))?;
    let ours = Exporter::Uverbs.serve()?;
    let (first, commands) = scraped(function, &ours)?;
    let (again, more) = scraped(function, &ours)?;
    for (what, commands) in
        [("once", &once), ("first", &commands), ("again", &more), ("node_exporter", &theirs)]
    {
        println!("figure: {what}: {} firmware commands {:?}", commands.len(), counts(commands));
    }
    // It is all there, and the same.
    let steady = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| !line.contains("uverbs_reading_"));
        lines.map(str::to_owned).collect()
    };
    ensure!(steady(&first) == steady(&again), "{first}\n{again}");
    ensure!(first.contains("state=\"active\"} 1\n") && first.contains("uverbs_port_rate_bytes"));
    // Older kernels update the statistics of each interface that route netlink lists, by four commands.
    let listing = if lab::is_newest_kernel()? { 0 } else { 4 };
    for commands in [&once, &commands, &more] {
        ensure!(commands.len() <= 12 + listing, "{} commands", commands.len());
    }
    if listing == 0 {
        ensure!(more.len() * 7 <= theirs.len(), "more than a seventh");
    }
    // What changed is seen.
    run(&["ip", "link", "set", &device.netdev()?, "down"])?;
    let down = ours.scrape()?;
    ensure!(down.contains("state=\"down\"} 1\n"), "{down}");
    run(&["ip", "link", "set", &device.netdev()?, "up"])?;
    let is_seen = || ours.scrape().is_ok_and(|text| text.contains("state=\"active\"} 1\n"));
    lab::wait_until("the port is seen up", is_seen)?;
    // So is a rate that changes while the interface keeps its carrier, as under a virtual function.
    let rate = |text: &str| {
        let line = text.lines().find(|line| line.starts_with("uverbs_port_rate_bytes_per_second{"));
        line.map(str::to_owned)
    };
    ensure!(rate(&first) == rate(&again));
    let mut slower = Description::roce();
    slower.ports[0].speed = FORTY_GIGABITS;
    function.become_(&slower)?;
    let text = ours.scrape()?;
    ensure!(rate(&text).is_some_and(|own| own.ends_with(" 5000000000")), "{text}");
    Ok(())
}

/// One device refuses the register of error counters, which is also that of the port, then vanishes: the other is
/// answered in each scrape, and the register of counters is not asked again for what it refused.
pub(crate) fn through_faults() -> Result<()> {
    let _loopback = Loopback::new()?;
    let faulty = up(0, &Description::roce())?;
    let well = up(1, &Description::roce().sibling())?;
    let (name, other) = (faulty.name().to_owned(), well.name().to_owned());
    let ours = Exporter::Uverbs.serve()?;
    let is_well = |text: &str| {
        let state =
            format!("uverbs_port_state{{device=\"{other}\",port=\"1\",state=\"active\"}} 1");
        let counter = format!("uverbs_port_symbol_error_total{{device=\"{other}\",port=\"1\"}} 7");
        text.contains(&state) && text.contains(&counter)
    };
    let text = ours.scrape()?;
    ensure!(is_well(&text) && text.contains(&format!("device=\"{name}\"")), "{text}");

    let function = faulty.function();
    function.inject(ACCESS_REG, Fault::Status { status: 2, syndrome: 0x009a_6171 })?;
    for expected in [1, 0, 0] {
        let (text, commands) = scraped(function, &ours)?;
        let asked = commands.iter().filter(|it| it.opcode == ACCESS_REG && register(it) == PPCNT);
        let asked = asked.count();
        // Older kernels ask for the statistics of the interface, by one, when route netlink lists it.
        let own = usize::from(!lab::is_newest_kernel()?);
        ensure!(asked == expected + own, "{asked} times: {:?}", counts(&commands));
        ensure!(is_well(&text), "{text}");
        let problems = format!("uverbs_reading_problems{{device=\"{name}\"}} ");
        ensure!(text.contains(&problems), "{text}");
        // The driver's counters come by another command.
        let counter = format!("uverbs_port_hw_out_of_buffer_total{{device=\"{name}\",port=\"1\"}}");
        ensure!(text.contains(&counter), "{text}");
    }
    function.clear()?;

    // It vanishes while it is scraped.
    let mut with = 0;
    std::thread::scope(|scope| -> Result<()> {
        let removal = scope.spawn(|| function.remove());
        while !removal.is_finished() {
            let text = ours.scrape()?;
            ensure!(is_well(&text), "{text}");
            with += 1;
        }
        removal.join().map_err(|_| anyhow::anyhow!("the removal panicked"))?
    })?;
    println!("figure: {with} scrapes while the device was removed");
    let text = ours.scrape()?;
    ensure!(is_well(&text) && !text.contains(&format!("device=\"{name}\"")), "{text}");
    function.rescan()?;
    drop(Mlx5::bind_as_it_is(function)?);
    drop(faulty);
    Ok(())
}
