//! Where this machine gets its packages from: the mirror's base addresses, read from apt's own
//! sources, so that no address is written down here.

use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

/// The addresses of a Debian mirror.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mirror {
    /// Where the ordinary suites are.
    pub(crate) main: String,
    /// Where the `…-security` suites are.
    pub(crate) security: String,
}

/// One address of apt's sources and the suites that it is used for.
#[derive(Debug, PartialEq, Eq)]
struct Source {
    base: String,
    suites: Vec<String>,
}

impl Mirror {
    /// The mirror that this machine uses.
    ///
    /// # Errors
    /// Where apt's sources name no mirror of Debian.
    pub(crate) fn of_this_machine() -> Result<Self> {
        let mut sources = Vec::new();
        let mut files = vec![Path::new("/etc/apt/sources.list").to_owned()];
        if let Ok(entries) = fs::read_dir("/etc/apt/sources.list.d") {
            files.extend(entries.filter_map(|entry| Some(entry.ok()?.path())));
        }
        files.sort();
        for file in files {
            let Ok(text) = fs::read_to_string(&file) else {
                continue;
            };
            match file.extension().and_then(|extension| extension.to_str()) {
                Some("list") => sources.extend(one_line(&text)),
                Some("sources") => sources.extend(deb822(&text)),
                _ => {}
            }
        }
        choose(&sources).context("apt's sources on this machine name no mirror of Debian")
    }
}

/// The first address that serves a suite of Debian's, and the first that serves a security suite. Where
/// the machine has none, as after debootstrap, it is beside the other, as on Debian's own hosts.
fn choose(sources: &[Source]) -> Option<Mirror> {
    const RELEASES: [&str; 10] = [
        "bullseye",
        "bookworm",
        "trixie",
        "forky",
        "duke",
        "sid",
        "oldstable",
        "stable",
        "testing",
        "unstable",
    ];
    let serves = |source: &Source, security: bool| {
        source.suites.iter().any(|suite| {
            let (release, pocket) = suite.split_once(['-', '/']).unwrap_or((suite, ""));
            RELEASES.contains(&release) && (pocket == "security") == security
        })
    };
    let main = sources.iter().find(|source| serves(source, false))?;
    let security = sources.iter().find(|source| serves(source, true));
    let security = security.map_or_else(|| beside(&main.base), |source| source.base.clone());
    Some(Mirror { main: main.base.clone(), security })
}

/// The folder of security suites beside that of the others.
fn beside(main: &str) -> String {
    let parent = main.trim_end_matches('/').strip_suffix("/debian");
    parent.map_or_else(|| main.to_owned(), |parent| format!("{parent}/debian-security"))
}

/// Reads the format `deb [options] BASE SUITE COMPONENT…`.
fn one_line(text: &str) -> Vec<Source> {
    let source = |line: &str| {
        let mut rest = line.trim().strip_prefix("deb")?.trim_start();
        if rest.starts_with('[') {
            rest = rest.split_once(']')?.1;
        }
        let mut words = rest.split_whitespace();
        let base = words.next()?;
        let suite = words.next()?;
        base.contains(':').then(|| Source { base: base.to_owned(), suites: vec![suite.to_owned()] })
    };
    text.lines().filter_map(source).collect()
}

/// Reads the format of paragraphs with fields.
fn deb822(text: &str) -> Vec<Source> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    lines.split(|line| line.trim().is_empty()).filter_map(stanza).collect()
}

fn stanza(lines: &[&str]) -> Option<Source> {
    let field = |name: &str| {
        let mut words = Vec::new();
        let mut inside = false;
        for line in lines {
            let continues = line.starts_with([' ', '\t']);
            let value = match line.split_once(':') {
                _ if continues => line,
                Some((key, value)) => {
                    inside = key.eq_ignore_ascii_case(name);
                    value
                }
                None => continue,
            };
            if inside {
                words.extend(value.split_whitespace().map(str::to_owned));
            }
        }
        words
    };
    let enabled = field("Enabled").first().is_none_or(|word| word != "no");
    let binary = field("Types").iter().any(|word| word == "deb");
    let base = field("URIs").into_iter().next()?;
    (enabled && binary).then(|| Source { base, suites: field("Suites") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mirror(main: &str, security: &str) -> Mirror {
        Mirror { main: main.into(), security: security.into() }
    }

    #[test]
    fn deb822_with_a_security_stanza() {
        let text = "Types: deb\n# a note\nURIs: http://a.example/debian\nSuites: bookworm\n bookworm-updates\n\n\
                    Types: deb-src\nURIs: http://src.example/\nSuites: bookworm\n\n\
                    Types: deb\nEnabled: no\nURIs: http://off.example/\nSuites: bookworm\n\n\
                    types: deb deb-src\nuris: http://b.example/sec\nsuites: bookworm-security\n";
        let sources = deb822(text);
        assert_eq!(sources.len(), 2);
        assert_eq!(
            choose(&sources),
            Some(mirror("http://a.example/debian", "http://b.example/sec"))
        );
    }

    #[test]
    fn one_line_with_options_and_strangers() {
        let text = "# deb http://no.example/ trixie main\ndeb-src http://src.example/ trixie main\n\
                    deb [arch=amd64 signed-by=/x] http://tool.example/apt nodistro main\n\
                    deb [trusted=no] http://a.example/debian trixie main contrib\n";
        assert_eq!(
            choose(&one_line(text)),
            Some(mirror("http://a.example/debian", "http://a.example/debian-security"))
        );
    }

    #[test]
    fn the_old_name_of_a_security_suite() {
        let sources = one_line(
            "deb http://s.example/ buster/updates main\ndeb http://m.example bullseye main\n",
        );
        assert_eq!(choose(&sources), Some(mirror("http://m.example", "http://m.example")));
        assert_eq!(choose(&[]), None);
    }
}
