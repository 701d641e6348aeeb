//! The table of machines, `src/packaging/machines`, which scripts read too.

use anyhow::{Context, Result};

const TABLE: &str = include_str!("../../../../src/packaging/machines");

/// A line of the table. The fields are the columns that the harness needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Machine {
    /// Our name.
    pub(crate) name: &'static str,
    /// Debian's name.
    pub(crate) debian: &'static str,
    /// The prefix of GCC's name. Debian's folders of libraries for the 64-bit machines have it too.
    pub(crate) tools: &'static str,
    /// The program that runs its programs on x86-64, if one is needed.
    pub(crate) emulator: Option<&'static str>,
    /// Rust's target for glibc.
    pub(crate) glibc: &'static str,
    /// Rust's target for static files.
    pub(crate) target: &'static str,
    /// The folder of Debian's musl, if static files are built for musl.
    pub(crate) musl: Option<&'static str>,
}

impl Machine {
    /// All machines.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        TABLE.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
            let mut words = line.split_whitespace();
            let [name, debian, tools] = [words.next()?, words.next()?, words.next()?];
            let (emulator, glibc) = (words.next()?, words.next()?);
            let [target, musl] = [words.next()?, words.next()?];
            let [emulator, musl] = [emulator, musl].map(|word| Some(word).filter(|it| *it != "-"));
            Some(Self { name, debian, tools, emulator, glibc, target, musl })
        })
    }

    /// The machine of this name, or of this static target.
    pub(crate) fn named(name: &str) -> Result<Self> {
        let machine = Self::all().find(|machine| [machine.name, machine.target].contains(&name));
        machine.with_context(|| {
            let names: Vec<_> = Self::all().map(|machine| machine.name).collect();
            format!("no machine {name}; there are {}", names.join(", "))
        })
    }

    /// The machine that most guests are.
    pub(crate) fn guest() -> Result<Self> {
        Self::named("x86_64")
    }

    /// Where a Debian tree has libraries that programs are linked with.
    pub(crate) fn libraries(self) -> String {
        format!("usr/lib/{}", self.tools)
    }

    /// The C compiler that makes its programs on this machine.
    pub(crate) fn compiler(self) -> String {
        self.cross().map_or_else(|| "cc".to_owned(), |tools| format!("{tools}-gcc"))
    }

    /// The prefix of the tools that make its programs on this machine; `None` for the machine's own.
    pub(crate) fn cross(self) -> Option<&'static str> {
        (self.name != std::env::consts::ARCH).then_some(self.tools)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_a_machine() {
        let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
        assert_eq!(Machine::all().count(), lines.clone().count());
        assert!(lines.clone().all(|line| line.split_whitespace().count() == 8), "{TABLE}");
        for machine in Machine::all() {
            assert_eq!(Machine::named(machine.target).unwrap(), machine);
            assert_eq!(machine.target.contains("musl"), machine.musl.is_some(), "{machine:?}");
        }
        assert_eq!(Machine::guest().unwrap().target, "x86_64-unknown-linux-musl");
        assert!(Machine::named("vax").unwrap_err().to_string().contains("s390x"));
    }
}
