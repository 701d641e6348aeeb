//! Debian packages of any release, unpacked but not installed: apt with a configuration, lists
//! and a separate archive. It does not change the machine's and needs no root.
//!
//! A [`Tree`] holds the suites of one release only, so that a resolved set never mixes two, and
//! either its packages or its sources.

use crate::machines::Machine;
use crate::sources::Mirror;
use crate::status;
use anyhow::{Context, Result, bail, ensure};
use std::cmp::Ordering;
use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The keyring that every suite here is verified with; package debian-archive-keyring.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// A release of Debian's: its name and the suites to look into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Release(&'static str, &'static [&'static str]);

impl Release {
    /// Its name, which is also that of its first suite.
    pub(crate) fn name(self) -> &'static str {
        self.0
    }
}

pub(crate) const BULLSEYE: Release = Release("bullseye", &["bullseye", "bullseye-security"]);
pub(crate) const BOOKWORM: Release =
    Release("bookworm", &["bookworm", "bookworm-security", "bookworm-backports"]);
pub(crate) const TRIXIE: Release =
    Release("trixie", &["trixie", "trixie-security", "trixie-backports"]);
pub(crate) const FORKY: Release = Release("forky", &["forky"]);
pub(crate) const SID: Release = Release("sid", &["sid"]);

/// A package's name and one version of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
}

/// What a tree has the lists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lists {
    Packages,
    /// Not needed for most, and large.
    Sources,
}

impl Lists {
    /// The word of a sources file.
    fn word(self) -> &'static str {
        match self {
            Self::Packages => "deb",
            Self::Sources => "deb-src",
        }
    }

    /// The name of the index, with which apt's lines end.
    fn index(self) -> &'static str {
        match self {
            Self::Packages => "Packages",
            Self::Sources => "Sources",
        }
    }
}

/// A private apt tree for one release.
#[derive(Debug)]
struct Tree {
    release: Release,
    lists: Lists,
    directory: PathBuf,
    configuration: PathBuf,
}

/// The private apt trees, each made and updated when it is first asked for. They are deleted
/// at the end: what was unpacked stays, lists and archives do not.
#[derive(Debug)]
pub(crate) struct Apt {
    directory: PathBuf,
    /// Debian's name of the machines that the packages are for.
    architecture: &'static str,
    trees: Vec<Tree>,
    /// Those for other machines.
    others: Vec<Self>,
}

impl Drop for Apt {
    fn drop(&mut self) {
        // Left-overs cost space, nothing else; the next run writes over them.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

impl Apt {
    /// Trees below this directory, of packages for the machines that the guest runs on.
    pub(crate) fn new(directory: PathBuf) -> Self {
        Self::of("amd64", directory)
    }

    /// Trees below this directory, of packages for other machines.
    fn of(architecture: &'static str, directory: PathBuf) -> Self {
        Self { directory, architecture, trees: Vec::new(), others: Vec::new() }
    }

    /// These trees, or others beside them, of packages for this machine.
    pub(crate) fn on<T>(
        &mut self,
        machine: Machine,
        work: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        if machine.debian == self.architecture {
            return work(self);
        }
        let is_it = |other: &Self| other.architecture == machine.debian;
        if !self.others.iter().any(is_it) {
            let directory = self.directory.with_file_name(format!("apt-{}", machine.debian));
            self.others.push(Self::of(machine.debian, directory));
        }
        work(self.others.iter_mut().find(|other| is_it(other)).context("an apt got lost")?)
    }

    /// All versions of a package that a release offers, the newest first.
    pub(crate) fn versions(&mut self, release: Release, name: &str) -> Result<Vec<Package>> {
        self.offered(release, Lists::Packages, name)
    }

    /// All versions of a source that a release offers, the newest first.
    pub(crate) fn sources(&mut self, release: Release, name: &str) -> Result<Vec<Package>> {
        self.offered(release, Lists::Sources, name)
    }

    fn offered(&mut self, release: Release, lists: Lists, name: &str) -> Result<Vec<Package>> {
        let text = self.tree(release, lists)?.apt("apt-cache", &["madison", name])?;
        let mut versions = Vec::new();
        for version in madison(&text, lists) {
            versions.push(Package { name: name.to_owned(), version });
        }
        versions.sort_by(|one, other| newer_first(&one.version, &other.version));
        versions.dedup();
        Ok(versions)
    }

    /// The names of a package's direct dependencies.
    pub(crate) fn depends(&mut self, release: Release, package: &Package) -> Result<Vec<String>> {
        let Package { name, version } = package;
        let tree = self.tree(release, Lists::Packages)?;
        let text = tree.apt("apt-cache", &["show", &format!("{name}={version}")])?;
        Ok(depends(&text))
    }

    /// Unpacks only these packages into a directory.
    pub(crate) fn unpack(
        &mut self,
        release: Release,
        packages: &[Package],
        into: &Path,
    ) -> Result<()> {
        let tree = self.tree(release, Lists::Packages)?;
        let archives = tree.directory.join("download");
        fs::create_dir_all(&archives)?;
        let names: Vec<String> = packages
            .iter()
            .map(|package| format!("{}={}", package.name, package.version))
            .collect();
        let mut arguments = vec!["-q", "download"];
        arguments.extend(names.iter().map(String::as_str));
        tree.command("apt-get", &arguments).current_dir(&archives).checked()?;
        unpack_all(&archives, into)
    }

    /// Unpacks these packages with all that they depend on into a directory. `suite`: the one
    /// to prefer.
    pub(crate) fn unpack_closure(
        &mut self,
        release: Release,
        suite: &str,
        names: &[&str],
        into: &Path,
    ) -> Result<()> {
        let tree = self.tree(release, Lists::Packages)?;
        let mut arguments =
            vec!["-q", "--yes", "--download-only", "--target-release", suite, "install"];
        arguments.extend(names);
        tree.command("apt-get", &arguments).checked()?;
        unpack_all(&tree.directory.join("cache/archives"), into)
    }

    /// Unpacks what upstream released of a source, without Debian's changes. Its own folder does
    /// not show: `into` holds what is in it.
    ///
    /// apt checks the archive's hash, which is in the signed list. The `.dsc` is not asked for:
    /// mirrors that dropped it may still have the archive.
    pub(crate) fn unpack_upstream(
        &mut self,
        release: Release,
        source: &Package,
        into: &Path,
    ) -> Result<()> {
        let tree = self.tree(release, Lists::Sources)?;
        let archives = tree.directory.join("download");
        fs::create_dir_all(&archives)?;
        let wanted = format!("{}={}", source.name, source.version);
        let arguments = ["-q", "source", "--tar-only", "--download-only", &wanted];
        tree.command("apt-get", &arguments).current_dir(&archives).checked()?;
        fs::create_dir_all(into)?;
        let mut found = false;
        for entry in fs::read_dir(&archives)? {
            let file = entry?.path();
            if file.file_name().is_some_and(|name| name.to_string_lossy().contains(".orig.tar.")) {
                let mut tar = Command::new("tar");
                tar.arg("-xf").arg(&file).arg("-C").arg(into).arg("--strip-components=1");
                tar.checked()?;
                fs::remove_file(&file)?;
                found = true;
            }
        }
        ensure!(found, "apt left no source in {}", archives.display());
        Ok(())
    }

    fn tree(&mut self, release: Release, lists: Lists) -> Result<&Tree> {
        let is_it = |tree: &Tree| (tree.release, tree.lists) == (release, lists);
        let position = self.trees.iter().position(is_it);
        let position = if let Some(position) = position {
            position
        } else {
            let name = format!("{}-{}", release.0, lists.index());
            let directory = self.directory.join(name);
            self.trees.push(Tree::make(release, lists, self.architecture, directory)?);
            self.trees.len() - 1
        };
        self.trees.get(position).context("an apt tree got lost")
    }
}

impl Tree {
    /// Makes the tree and fetches the lists. A suite that the mirror does not have (any more)
    /// is no error here: what needs it will miss it, by name.
    fn make(
        release: Release,
        lists: Lists,
        architecture: &str,
        directory: PathBuf,
    ) -> Result<Self> {
        let mirror = Mirror::of_this_machine()?;
        if !Path::new(KEYRING).exists() {
            bail!("{KEYRING} does not exist; install debian-archive-keyring");
        }
        for path in ["etc/parts", "etc/sources", "state/lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(directory.join(path))?;
        }
        fs::write(directory.join("state/status"), "")?;
        fs::write(directory.join("etc/sources/debian.sources"), sources(release, lists, &mirror))?;
        let configuration = directory.join("apt.conf");
        // Readable by the owner only: a proxy's address may hold a password.
        let _ = fs::remove_file(&configuration);
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&configuration)?;
        std::io::Write::write_all(
            &mut file,
            configuration_text(architecture, &directory)?.as_bytes(),
        )?;

        let tree = Self { release, lists, directory, configuration };
        status(&format!("{}: fetching the lists of {}", release.0, lists.index()));
        if let Err(error) = tree.command("apt-get", &["-q", "update"]).checked() {
            status(&format!("{}: some lists could not be had\n{error:#}", release.0));
        }
        Ok(tree)
    }

    fn apt(&self, program: &str, arguments: &[&str]) -> Result<String> {
        self.command(program, arguments).checked()
    }

    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).env("APT_CONFIG", &self.configuration).env("LC_ALL", "C");
        command
    }
}

/// Running a program that has to succeed.
pub(crate) trait Checked {
    /// Runs it to its end and gives its standard output.
    ///
    /// # Errors
    /// Where it cannot be started or does not end with status 0; with all that it printed.
    fn checked(&mut self) -> Result<String>;
}

impl Checked for Command {
    fn checked(&mut self) -> Result<String> {
        let output = self
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("starting {}", self.get_program().display()))?;
        let stdout = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr);
            bail!("{self:?}: {}\n{stdout}{stderr}", output.status);
        }
        Ok(stdout.into_owned())
    }
}

/// A sources file for one release.
fn sources(release: Release, lists: Lists, mirror: &Mirror) -> String {
    let kind = lists.word();
    let stanza = |suite: &&str| {
        let base = if suite.ends_with("-security") { &mirror.security } else { &mirror.main };
        format!(
            "Types: {kind}\nURIs: {base}\nSuites: {suite}\nComponents: main\nSigned-By: {KEYRING}\n\n"
        )
    };
    release.1.iter().map(stanza).collect()
}

/// A configuration that keeps apt inside a directory. How packages are acquired (proxies and
/// the like) stays as on this machine; its hooks do not run.
fn configuration_text(architecture: &str, directory: &Path) -> Result<String> {
    let acquire = Command::new("apt-config").args(["dump", "Acquire"]).checked()?;
    let root = directory.display();
    Ok(format!(
        "{acquire}\n\
         Dir::Etc::main \"/dev/null\";\n\
         Dir::Etc::parts \"{root}/etc/parts\";\n\
         Dir::Etc::sourcelist \"/dev/null\";\n\
         Dir::Etc::sourceparts \"{root}/etc/sources\";\n\
         Dir::Etc::preferences \"/dev/null\";\n\
         Dir::Etc::preferencesparts \"{root}/etc/parts\";\n\
         Dir::State \"{root}/state\";\n\
         Dir::State::status \"{root}/state/status\";\n\
         Dir::Cache \"{root}/cache\";\n\
         APT::Architecture \"{architecture}\";\n\
         APT::Architectures {{ \"{architecture}\"; }};\n\
         APT::Install-Recommends \"false\";\n\
         APT::Sandbox::User \"root\";\n\
         Acquire::Languages \"none\";\n"
    ))
}

/// The versions in the lines `name | version | where` of apt-cache madison.
fn madison(text: &str, lists: Lists) -> Vec<String> {
    let version = |line: &str| {
        let mut columns = line.split('|').map(str::trim);
        let version = columns.nth(1)?;
        columns.next()?.ends_with(lists.index()).then(|| version.to_owned())
    };
    text.lines().filter_map(version).collect()
}

/// The names in the Depends field of a package's record; of alternatives the first.
fn depends(record: &str) -> Vec<String> {
    let field = record.lines().find_map(|line| line.strip_prefix("Depends:")).unwrap_or_default();
    field.split(',').filter_map(|one| Some(one.split_whitespace().next()?.to_owned())).collect()
}

/// Orders Debian's version numbers, by dpkg's own rule.
fn newer_first(one: &str, other: &str) -> Ordering {
    let holds = |relation: &str| {
        let arguments = ["--compare-versions", one, relation, other];
        Command::new("dpkg").args(arguments).status().is_ok_and(|status| status.success())
    };
    if holds("gt") {
        Ordering::Less
    } else if holds("lt") {
        Ordering::Greater
    } else {
        Ordering::Equal
    }
}

/// Unpacks and deletes every package file in a directory.
fn unpack_all(archives: &Path, into: &Path) -> Result<()> {
    let mut found = false;
    for entry in fs::read_dir(archives)? {
        let file = entry?.path();
        if file.extension().is_some_and(|extension| extension == "deb") {
            Command::new("dpkg-deb").arg("-x").arg(&file).arg(into).checked()?;
            fs::remove_file(&file)?;
            found = true;
        }
    }
    if !found {
        bail!("apt left no packages in {}", archives.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn madison_lines() {
        let text = "  linux-image-amd64 |  6.1.192-2 | http://a.example bookworm-security/main amd64 Packages\n\
                    linux-image-amd64 | 6.1.1-1 | http://a.example bookworm/main Sources\nN: a note\n";
        assert_eq!(madison(text, Lists::Packages), ["6.1.192-2"]);
        assert_eq!(madison(text, Lists::Sources), ["6.1.1-1"]);
    }

    #[test]
    fn the_names_of_dependencies() {
        let record =
            "Package: x\nPre-Depends: no\nDepends: a (= 1), b | c, d:any\nDepends-not: e\n";
        assert_eq!(depends(record), ["a", "b", "d:any"]);
        assert!(depends("Package: x\n").is_empty());
    }

    #[test]
    fn security_suites_have_their_own_base() {
        let mirror = Mirror { main: "http://m".into(), security: "http://s".into() };
        let text = sources(BULLSEYE, Lists::Sources, &mirror);
        assert!(text.contains("Types: deb-src\nURIs: http://m\nSuites: bullseye\n"));
        assert!(text.contains("URIs: http://s\nSuites: bullseye-security\n"));
    }

    #[test]
    fn versions_are_ordered_as_dpkg_does() {
        let mut versions = ["7.3.4-1~bpo13+1", "7.10.1-1", "7.3.4-1"];
        versions.sort_by(|one, other| newer_first(one, other));
        assert_eq!(versions, ["7.10.1-1", "7.3.4-1", "7.3.4-1~bpo13+1"]);
    }
}
