//! Compares the crate with the kernel's own C headers: the size and alignment of each structure,
//! the offset and size of each field, the value of each constant, and the release that each item is said
//! to come with.
//!
//! The headers are those of the machine (Debian: `linux-libc-dev`). If the environment variable
//! `UVERBS_KERNEL_HEADERS` names a directory, its headers come first. A C compiler is needed: `cc`, or the
//! one that the environment variable `CC` names, which may be another machine's. `UVERBS_RUN` then names the
//! emulator that runs its programs, if one is needed.
//!
//! `table` lists what is compared. This file runs the compiler twice. The first program has each item on
//! its own line, so the lines with errors show which items the headers lack. The second program prints the
//! values of the remaining items.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod sources;
mod table;

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use table::{HEADERS, Item, Table};

/// A kernel release, major and minor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Release(u64, u64);

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

/// When the headers got an item, as far as known.
#[derive(Clone, Copy, Debug)]
struct Since {
    /// No headers before this release have it.
    earliest: Release,
    /// All headers from this release on have it.
    latest: Release,
}

impl Since {
    /// In every release that matters here.
    const ALWAYS: Self = Self::exactly(Release(0, 0));

    /// Came with `release`.
    const fn exactly(release: Release) -> Self {
        Self { earliest: release, latest: release }
    }

    /// Seen to be absent in one release and present in a later one.
    const fn between(absent: Release, present: Release) -> Self {
        Self { earliest: Release(absent.0, absent.1 + 1), latest: present }
    }
}

impl fmt::Display for Since {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.earliest, self.latest) {
            (_, Release(0, 0)) => write!(f, "always there"),
            (earliest, latest) if earliest == latest => write!(f, "since {latest}"),
            (earliest, latest) => write!(f, "not before {earliest}, and by {latest}"),
        }
    }
}

/// The values that an item may have in headers of `release`.
fn possible_values(item: &Item, release: Release) -> Vec<u64> {
    let mut values = Vec::new();
    for &(value, since) in &item.values {
        if since.latest <= release {
            values.clear();
        }
        if since.earliest <= release {
            values.push(value);
        }
    }
    values
}

/// Whether headers of `release` must have the item.
fn is_certain(item: &Item, release: Release) -> bool {
    item.values.iter().any(|(_, since)| since.latest <= release)
}

/// The requested directory of kernel headers, if any.
fn asked_for() -> Option<PathBuf> {
    let root = PathBuf::from(std::env::var_os("UVERBS_KERNEL_HEADERS")?);
    assert!(
        root.join("linux/version.h").is_file(),
        "UVERBS_KERNEL_HEADERS: no linux/version.h in {}",
        root.display()
    );
    Some(root)
}

/// The C compiler, with the requested headers.
fn compiler() -> Command {
    let mut command = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    command.env("LC_ALL", "C").args(["-std=gnu11", "-w"]);
    if let Some(root) = asked_for() {
        // Where Debian keeps the headers of one architecture.
        let machine = root.join(format!("{}-linux-gnu", std::env::consts::ARCH));
        command.arg("-isystem").arg(root);
        if machine.is_dir() {
            command.arg("-isystem").arg(machine);
        }
    }
    command
}

/// The head of both programs: all headers that these kernel headers have.
fn preamble() -> String {
    let root = asked_for();
    let mut c = String::from("#include <stddef.h>\n#include <stdio.h>\n");
    for header in HEADERS {
        // A header that the directory lacks must not come from the machine, whose headers may be newer.
        if root.as_ref().is_none_or(|root| root.join(header).is_file()) {
            writeln!(c, "#if __has_include(<{header}>)\n#include <{header}>\n#endif").unwrap();
        }
    }
    c.push_str("#ifndef LINUX_VERSION_CODE\n#error no linux/version.h\n#endif\n");
    c
}

fn write_program(name: &str, text: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernel_headers");
    std::fs::create_dir_all(&directory).unwrap();
    // Named after the process: two runs with different headers may share the directory.
    let path = directory.join(format!("{}-{name}", std::process::id()));
    std::fs::write(&path, text).unwrap();
    path
}

/// Which of the expressions do not compile with these headers.
fn missing_expressions(expressions: &[&str]) -> BTreeSet<usize> {
    let mut program = preamble();
    let first = program.lines().count() + 1;
    for (number, expression) in expressions.iter().enumerate() {
        // A function for each: a compiler reports an unknown name once for each function.
        writeln!(
            program,
            "unsigned long long item_{number}(void) {{ return (unsigned long long)({expression}); }}"
        )
        .unwrap();
    }
    let path = write_program("items.c", &program);
    let output = compiler()
        .args(["-fsyntax-only", "-fdiagnostics-color=never"])
        .arg(&path)
        .output()
        .expect("a C compiler is needed (cc, or what CC names)");
    let text = String::from_utf8_lossy(&output.stderr);

    let prefix = format!("{}:", path.display());
    let mut missing = BTreeSet::new();
    for line in text.lines().filter(|line| line.contains("error:")) {
        let number = line
            .strip_prefix(&prefix)
            .and_then(|rest| rest.split(':').next())
            .and_then(|number| number.parse::<usize>().ok())
            .and_then(|number| number.checked_sub(first))
            .filter(|number| *number < expressions.len());
        let Some(number) = number else {
            panic!("the compiler complains of something else than an item: {line}\n{text}");
        };
        missing.insert(number);
    }
    assert!(
        output.status.success() == missing.is_empty(),
        "the compiler failed without an error in a line: {text}"
    );
    std::fs::remove_file(path).unwrap();
    missing
}

/// The release of the headers, and the values of the expressions.
fn values(expressions: &[&str]) -> (Release, Vec<u64>) {
    let mut program = preamble();
    program.push_str("int main(void) {\n");
    for expression in ["LINUX_VERSION_CODE"].iter().chain(expressions) {
        writeln!(program, "    printf(\"%llu\\n\", (unsigned long long)({expression}));").unwrap();
    }
    program.push_str("    return 0;\n}\n");
    let source = write_program("values.c", &program);
    let binary = source.with_extension("bin");
    let mut link = compiler();
    if std::env::var_os("CC").is_some() {
        // Another machine's C library is in a place of its own.
        link.arg("-static");
    }
    let output = link.arg("-o").arg(&binary).arg(&source).output().unwrap();
    assert!(
        output.status.success(),
        "the items that compile one by one do not compile together: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let mut program = Command::new(&binary);
    if let Some(emulator) = std::env::var_os("UVERBS_RUN").filter(|name| !name.is_empty()) {
        program = Command::new(emulator);
        program.arg(&binary);
    }
    let output = program.output().unwrap();
    assert!(output.status.success());
    std::fs::remove_file(source).unwrap();
    std::fs::remove_file(binary).unwrap();

    let mut numbers = std::str::from_utf8(&output.stdout)
        .unwrap()
        .lines()
        .map(|line| line.parse::<u64>().unwrap());
    let code = numbers.next().unwrap();
    let release = Release(code >> 16, (code >> 8) & 0xFF);
    (release, numbers.collect())
}

/// Compares one item with C's value; `None` if the headers lack it.
fn compare(item: &Item, found: Option<u64>, release: Release) -> Result<(), String> {
    let possible = possible_values(item, release);
    let since = item.values.first().unwrap().1;
    match found {
        None if is_certain(item, release) => Err(format!(
            "{}: the headers of Linux {release} have no {}, though the table says: {since}",
            item.name,
            item.expressions.join(" or ")
        )),
        Some(value) if possible.is_empty() => Err(format!(
            "{}: the headers of Linux {release} have it (as {value}), though the table says: {since}",
            item.name
        )),
        Some(value) if !possible.contains(&value) => Err(format!(
            "{}: {} in the headers of Linux {release}, {} here",
            item.name,
            value,
            possible.iter().map(u64::to_string).collect::<Vec<_>>().join(" or ")
        )),
        None | Some(_) => Ok(()),
    }
}

/// One line for each structure, field or constant, but none for the fields of a missing structure.
fn summary<'a>(missing: &[&'a Item]) -> Vec<(&'a str, Since)> {
    let mut lines: Vec<(&str, Since)> = Vec::new();
    for item in missing {
        let name = item.name.split(" (").next().unwrap();
        let listed = lines.iter().any(|(line, _)| *line == name || *line == item.of);
        if !listed {
            lines.push((name, item.values.first().unwrap().1));
        }
    }
    lines
}

#[test]
fn crate_and_kernel_headers_agree() {
    let Table { items, .. } = table::table();

    // An item may have another name in older headers: the first name that exists counts.
    let candidates: Vec<(usize, &str)> = items
        .iter()
        .enumerate()
        .flat_map(|(number, item)| item.expressions.iter().map(move |e| (number, e.as_str())))
        .collect();
    let expressions: Vec<&str> = candidates.iter().map(|(_, expression)| *expression).collect();
    let missing = missing_expressions(&expressions);
    let mut chosen: Vec<(usize, &str)> = candidates
        .iter()
        .enumerate()
        .filter(|(number, _)| !missing.contains(number))
        .map(|(_, candidate)| *candidate)
        .collect();
    chosen.dedup_by_key(|(number, _)| *number);

    let expressions: Vec<&str> = chosen.iter().map(|(_, expression)| *expression).collect();
    let (release, numbers) = values(&expressions);
    let mut found = vec![None; items.len()];
    for ((item, _), value) in chosen.iter().zip(numbers) {
        found[*item] = Some(value);
    }

    let faults: Vec<String> = items
        .iter()
        .zip(&found)
        .filter_map(|(item, value)| compare(item, *value, release).err())
        .collect();
    let too_new: Vec<&Item> = items
        .iter()
        .zip(&found)
        .filter(|(_, value)| value.is_none())
        .map(|(item, _)| item)
        .collect();

    let compared = items.len() - too_new.len();
    let mut report = format!("\nLinux {release}: {compared} of {} items compared\n", items.len());
    if !too_new.is_empty() {
        report.push_str("these headers are too old for:\n");
        for (name, since) in summary(&too_new) {
            writeln!(report, "    {name} ({since})").unwrap();
        }
    }
    // Bypasses the test runner, which hides the output of passed tests.
    std::io::stdout().write_all(report.as_bytes()).unwrap();
    assert!(faults.is_empty(), "{} differences:\n{}", faults.len(), faults.join("\n"));
}

/// The table leaves out no constant and no structure of the crate.
#[test]
fn table_is_complete() {
    let table = table::table();
    let listed: BTreeSet<&str> = table
        .items
        .iter()
        .map(|item| item.of.as_str())
        .chain(table.not_in_headers.iter().map(|(name, _)| name.as_str()))
        .collect();
    let missing: Vec<String> = sources::public_items()
        .into_iter()
        .filter(|name| !listed.contains(name.as_str()))
        .collect();
    assert!(missing.is_empty(), "not in the table: {missing:#?}");
}

/// Prints what no header can confirm, and why.
#[test]
fn unconfirmed_items_have_a_reason() {
    for (name, reason) in &table::table().not_in_headers {
        assert!(!reason.is_empty(), "{name}");
        println!("{name}: {reason}");
    }
}
