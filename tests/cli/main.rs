//! The command line, run as users run it, on sysfs trees that the tests make.

#[cfg(test)]
mod cdi;
#[cfg(test)]
mod check;
#[cfg(test)]
mod choose;
#[cfg(test)]
mod colour;
#[cfg(test)]
mod completions;
#[cfg(test)]
#[path = "../schemas/conforms.rs"]
mod conforms;
#[cfg(test)]
mod counters;
#[cfg(test)]
mod devices;
#[cfg(test)]
mod documents;
#[cfg(test)]
mod doubts;
#[cfg(test)]
mod expect;
#[cfg(test)]
mod fleet;
#[cfg(test)]
mod forms;
#[cfg(test)]
mod gids;
#[cfg(test)]
mod guids;
#[cfg(test)]
mod metrics;
#[cfg(test)]
mod metrics_faults;
#[cfg(test)]
mod nfd;
#[cfg(test)]
mod other_tools;
#[cfg(test)]
mod pages;
#[cfg(test)]
mod partial;
#[cfg(test)]
mod ports;
#[cfg(test)]
mod problems;
#[cfg(test)]
mod record;
#[cfg(test)]
mod run;
#[cfg(test)]
mod screens;
#[cfg(test)]
mod slurm;
#[cfg(test)]
mod snapshots;
#[cfg(test)]
mod terminal;
#[cfg(test)]
mod tree;
#[cfg(test)]
mod usage;
#[cfg(test)]
mod watch;
