//! The settings of this process: its variables, and NCCL's files.

use std::ffi::OsString;
use std::io::{BufRead, Read as _};
use std::ops::RangeInclusive;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

#[cfg(doc)]
use crate::inventory::Inventory;
use crate::inventory::settings::{self, NAMES, Setting, SettingsReading};
use crate::inventory::{Answer, Problem};

/// The most that is read of a file of settings.
const FILE_LIMIT: u64 = 64 * 1024;

/// The variables of this process, then those of the files that NCCL would read in it; and what keeps files from being
/// read. Whether `$HOME` was taken for the home of the password entry says [`Inventory::home_is_assumed`].
#[must_use]
pub fn read_settings() -> (Vec<Setting>, Vec<Problem>, bool) {
    let variable =
        |name: &str| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
    let of_process = |name: &&str| Some(Setting::new(*name, variable(name)?, None));
    let mut found: Vec<Setting> = NAMES.iter().filter_map(of_process).collect();
    let (files, problem, home_is_assumed) = files();
    let mut problems: Vec<Problem> = problem.into_iter().collect();
    for (path, readings) in files {
        match read_file(&path) {
            Ok(bytes) => {
                found.extend(settings::parse(&bytes, &path.to_string_lossy(), &readings));
            }
            Err(problem) => problems.push(problem),
        }
    }
    (found, problems, home_is_assumed)
}

/// The files that NCCL reads, in the order in which they count, with the releases that read them.
type Files = Vec<(PathBuf, RangeInclusive<SettingsReading>)>;

/// These files, and why it is not known where the home of this user is, or whether it was assumed.
fn files() -> (Files, Option<Problem>, bool) {
    let own = std::env::var_os("NCCL_CONF_FILE").filter(|path| !path.is_empty());
    let own = own.map(cut);
    let home = std::env::var_os("HOME");
    let of_home = |home: OsString| {
        let mut path = home;
        path.push("/.nccl.conf");
        cut(path)
    };
    let (entry, problem, is_assumed) = match password_home(home.clone()) {
        Ok((own, is_assumed)) => (own.map(of_home), None, is_assumed),
        Err(problem) => (None, Some(problem), false),
    };
    let user = |reading| match reading {
        SettingsReading::V2_4 => entry.clone(),
        SettingsReading::V2_23 => own.clone().or_else(|| entry.clone()),
        SettingsReading::V2_30 => own.clone().or_else(|| home.clone().map(of_home)),
    };
    let mut files = Files::new();
    for reading in SettingsReading::ALL {
        let Some(path) = user(reading) else { continue };
        match files.last_mut() {
            Some((known, readings)) if *known == path => *readings = *readings.start()..=reading,
            _ => files.push((path, reading..=reading)),
        }
    }
    // What the newest release reads comes first.
    files.reverse();
    files.push((PathBuf::from("/etc/nccl.conf"), Setting::everywhere()));
    (files, problem, is_assumed)
}

/// As much of a path as NCCL has room for.
fn cut(path: OsString) -> PathBuf {
    const LONGEST: usize = 1023;
    let mut bytes = path.into_vec();
    bytes.truncate(LONGEST);
    PathBuf::from(OsString::from_vec(bytes))
}

/// The home of this user's password entry, of `/etc/passwd`. Where the entry is a directory service's (LDAP, SSSD),
/// which cannot be asked from here, it is taken to be `$HOME`, and that is said. A user without an entry has none.
fn password_home(home: Option<OsString>) -> Answer<(Option<OsString>, bool)> {
    let read = |path: &str| match std::fs::read(path) {
        Err(error) if !Errno::from_io_error(&error).is_some_and(is_nothing) => Err(Problem {
            text: format!("host: this user's home is not known: {path} was not read: {error}"),
            errno: error.raw_os_error().unwrap_or_default(),
        }),
        read => Ok(read.unwrap_or_default()),
    };
    let uid = rustix::process::getuid().as_raw();
    match home_of(&*read("/etc/passwd")?, uid) {
        Some(own) => Ok((Some(own), false)),
        None if asks_others(&*read("/etc/nsswitch.conf")?) => Ok((home, true)),
        None => Ok((None, false)),
    }
}

/// Whether a file that gives this is as if it were empty, for NCCL as for this process. With any other errno it is this
/// process that has no room or no luck.
fn is_nothing(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::NOENT
            | Errno::NOTDIR
            | Errno::ISDIR
            | Errno::ACCESS
            | Errno::PERM
            | Errno::LOOP
            | Errno::NAMETOOLONG
    )
}

/// A user's home, of a file of password entries.
fn home_of(passwd: impl BufRead, uid: u32) -> Option<OsString> {
    let mut lines = passwd.split(b'\n').map_while(Result::ok);
    lines.find_map(|line| {
        let fields: Vec<&[u8]> = line.split(|byte| *byte == b':').collect();
        // As the C library reads it, an entry may lack what comes after the group, as the home.
        let [_, _, own, _, rest @ ..] = fields.as_slice() else { return None };
        let home = rest.get(1).copied().unwrap_or_default();
        let own: u32 = std::str::from_utf8(own).ok()?.parse().ok()?;
        (own == uid).then(|| OsString::from_vec(home.to_vec()))
    })
}

/// Whether something else than `/etc/passwd` has password entries too.
fn asks_others(nsswitch: impl BufRead) -> bool {
    let mut lines = nsswitch.lines().map_while(Result::ok);
    let line = lines.find_map(|line| Some(line.trim_start().strip_prefix("passwd:")?.to_owned()));
    line.is_some_and(|line| {
        let sources = line.split('#').next().unwrap_or_default().split_whitespace();
        sources.into_iter().any(|source| !source.starts_with('[') && source != "files")
    })
}

/// A file of settings; what is not there, or may not be read, is empty, as it is for NCCL. What could
/// make the reader wait is not read.
fn read_file(path: &Path) -> Answer<Vec<u8>> {
    let refused = |what: &str, errno: Errno| Problem {
        text: format!("host: NCCL's settings in {} were not read: {what}", path.display()),
        errno: errno.raw_os_error(),
    };
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let nothing = |errno: Errno| {
        if is_nothing(errno) { Ok(Vec::new()) } else { Err(refused(&errno.to_string(), errno)) }
    };
    let status = match rustix::fs::stat(path) {
        Ok(status) => status,
        Err(errno) => return nothing(errno),
    };
    match FileType::from_raw_mode(status.st_mode) {
        FileType::RegularFile => {}
        FileType::Directory => return Ok(Vec::new()),
        // NCCL_CONF_FILE=/dev/null is a way to have no file.
        FileType::CharacterDevice if status.st_rdev == rustix::fs::makedev(1, 3) => {
            return Ok(Vec::new());
        }
        _ => return Err(refused("it is no regular file", Errno::INVAL)),
    }
    let file = match retry_on_intr(|| rustix::fs::open(path, flags, Mode::empty())) {
        Ok(file) => std::fs::File::from(file),
        Err(errno) => return nothing(errno),
    };
    let mut bytes = Vec::new();
    let read = file.take(FILE_LIMIT + 1).read_to_end(&mut bytes);
    read.map_err(|error| {
        refused(&error.to_string(), Errno::from_io_error(&error).unwrap_or(Errno::IO))
    })?;
    if bytes.len() as u64 > FILE_LIMIT {
        return Err(refused("it is longer than 64 KiB", Errno::FBIG));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn homes_of_users() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\n# none\nodd:x:1000\nx:x:1000:1000:a:/home/x:\n\
                      y:x:1000:1000:a:/home/y:\nz:x:1001:1:::/bin/sh\nw:x:1003:1::/home/w\n\
                      v:x:1004:1\n";
        let home = |uid| home_of(passwd.as_bytes(), uid).map(|home| home.into_string().unwrap());
        assert_eq!(home(0).as_deref(), Some("/root"));
        assert_eq!(home(1000).as_deref(), Some("/home/x"));
        assert_eq!(home(1001).as_deref(), Some(""));
        assert_eq!(home(1002), None);
        assert_eq!(home(1003).as_deref(), Some("/home/w"));
        assert_eq!(home(1004).as_deref(), Some(""));
    }

    /// What this process cannot read may hold anything: NCCL may be able to.
    #[test]
    #[cfg_attr(miri, ignore = "reads files of /proc")]
    fn a_file_that_fails_is_not_empty() {
        let errno = |path: &str| read_file(path.as_ref()).map_err(|problem| problem.errno);
        for path in ["/nowhere/nccl.conf", "/proc/self/stat/x", "/proc", "/dev/null"] {
            assert_eq!(errno(path), Ok(Vec::new()), "{path}");
        }
        // There is no memory at address 0.
        assert_eq!(errno("/proc/self/mem"), Err(Errno::IO.raw_os_error()));
    }

    #[test]
    fn sources_of_users() {
        for (text, expected) in [
            ("", false),
            ("hosts: files dns\n", false),
            ("passwd: files # ldap\n", false),
            ("# passwd: ldap\npasswd:files\n", false),
            ("passwd: files [NOTFOUND=return] sss\n", true),
            (" passwd:\tfiles systemd\n", true),
            ("passwd: files systemd ldap\n", true),
        ] {
            assert_eq!(asks_others(text.as_bytes()), expected, "{text:?}");
        }
    }

    #[test]
    fn files_that_are_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name| folder.path().join(name);
        assert_eq!(read_file(&path("absent")), Ok(Vec::new()));
        assert_eq!(read_file(folder.path()), Ok(Vec::new()));
        assert_eq!(read_file(Path::new("/dev/null")), Ok(Vec::new()));
        std::fs::write(path("file"), "NCCL_IB_HCA=a\n").unwrap();
        assert_eq!(read_file(&path("file")).unwrap(), b"NCCL_IB_HCA=a\n");
        std::fs::write(path("long"), vec![b'#'; 65537]).unwrap();
        assert_eq!(read_file(&path("long")).unwrap_err().errno, 27);
        // Nobody writes to it, so that a reader would wait for ever.
        let fifo = path("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, FileType::Fifo, Mode::RUSR, 0).unwrap();
        let problem = read_file(&fifo).unwrap_err();
        assert!(
            problem.text.ends_with("/fifo were not read: it is no regular file"),
            "{}",
            problem.text
        );
    }
}
