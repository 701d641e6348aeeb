//! The README's commands print what the README says. A line of `…` ends what is only a beginning.

use anyhow::{Context as _, Result, ensure};
use uverbs_mlx5_function::description::Description;

use crate::lab::mlx5::Mlx5;
use crate::lab::{self, output};

const README: &str = include_str!("../../../../../README.md");

/// The commands of the README's console blocks that read this host, each with the lines below it.
fn sessions() -> Vec<(String, String)> {
    let mut sessions: Vec<(String, String)> = Vec::new();
    let mut is_console = false;
    for line in README.lines() {
        if line.starts_with("```") {
            is_console = line == "```console";
            sessions.push((String::new(), String::new()));
        } else if !is_console {
        } else if let Some(command) = line.strip_prefix("$ ") {
            let command = command.replace("cargo run --release --", "uverbs");
            sessions.push((command, String::new()));
        } else if let Some((_, printed)) = sessions.last_mut() {
            printed.push_str(line);
            printed.push('\n');
        }
    }
    let is_here = |command: &String| command.starts_with("uverbs ") && !command.contains("--from");
    sessions.retain(|(command, printed)| is_here(command) && !printed.is_empty());
    sessions
}

/// Compares those of the commands that ask only mlx5, or all others.
fn compare(is_mlx5: bool) -> Result<()> {
    let mut differing = 0;
    let sessions = sessions();
    let own: Vec<_> =
        sessions.iter().filter(|(command, _)| command.contains(" mlx5 ") == is_mlx5).collect();
    for (command, said) in &own {
        let words: Vec<&str> = command.split(' ').collect();
        let printed = String::from_utf8(output(&words)?.stdout).context("a text")?;
        println!("$ {command}\n{printed}");
        let is_said = match said.trim_end_matches('\n').strip_suffix('…') {
            Some(beginning) => printed.starts_with(beginning),
            None => printed.trim_end() == said.trim_end(),
        };
        if !is_said {
            println!("The README says\n{said}");
            differing += 1;
        }
    }
    println!("figure: {} of the README's outputs compared", own.len());
    ensure!(differing == 0, "{differing} of the README's outputs are others here");
    ensure!(!own.is_empty(), "the README shows none");
    Ok(())
}

/// Those on the machine of `tests/vm/try`.
pub(crate) fn on_soft_roce() -> Result<()> {
    lab::on_the_newest_kernel("the README shows its answers")?;
    let _lab = lab::two_soft_roce_devices()?;
    compare(false)
}

/// Those on a smart NIC's own CPU.
pub(crate) fn on_mlx5() -> Result<()> {
    lab::on_the_newest_kernel("the README shows its answers")?;
    let mut device = Mlx5::bind(0, &Description::embedded_cpu(2))?;
    device.switchdev()?;
    compare(true)
}
