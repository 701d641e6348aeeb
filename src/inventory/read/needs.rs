//! What RDMA programs need of a host beside devices: kernel modules, and memory that they may lock.

use std::path::Path;

use crate::inventory::LockedMemory;
use crate::kernel::{self, NamespaceKind};
use crate::sysfs::{CLASS, CM, Sysfs, UMAD_CLASS, VERBS_CLASS, is_absent};

/// Modules that RDMA needs, or that people look for. One that is built in and has no parameters has no folder, but
/// its class, or its device, has.
const MODULES: [(&str, Option<&str>); 6] = [
    ("ib_core", Some(CLASS)),
    ("ib_uverbs", Some(VERBS_CLASS)),
    ("ib_umad", Some(UMAD_CLASS)),
    ("ib_ipoib", None),
    ("rdma_cm", None),
    ("rdma_ucm", Some(CM)),
];

/// NVIDIA's driver, and the modules by which RDMA devices reach its GPUs' memory: today's, and that of before 2021.
const GPUS: [(&str, Option<&str>); 3] =
    [("nvidia", None), ("nvidia_peermem", None), ("nv_peer_mem", None)];

/// The modules that are there; none if they cannot be looked at, or are not in the tree. The kernel's own folder of
/// modules is never empty: one that is hides what is there.
pub(super) fn modules(sysfs: &Sysfs, has_gpus: bool) -> Vec<String> {
    let folder = sysfs.folder("module");
    if folder.names().is_ok_and(|names| names.is_empty()) {
        return Vec::new();
    }
    let mut modules = Vec::new();
    for (name, class) in MODULES.iter().chain(has_gpus.then_some(&GPUS).into_iter().flatten()) {
        let mut looked = folder.join(name).look();
        if let (Err(errno), Some(class)) = (looked, class) {
            if is_absent(errno) {
                looked = sysfs.folder(class).look();
            }
        }
        match looked {
            Ok(()) => modules.push((*name).to_owned()),
            Err(errno) if is_absent(errno) => {}
            Err(_) => return Vec::new(),
        }
    }
    // Without the folder nothing is seen in it.
    if folder.look().is_ok() { modules } else { Vec::new() }
}

/// Those of NVIDIA's modules that taint the kernel as proprietary; `None` if that cannot be read of all, or if the
/// modules are not known.
pub(super) fn proprietary(sysfs: &Sysfs, modules: &[String]) -> Option<Vec<String>> {
    if modules.is_empty() {
        return None;
    }
    let is_nvidia_s = |name: &&String| GPUS.iter().any(|(own, _)| own == name);
    let mut found = Vec::new();
    for name in modules.iter().filter(is_nvidia_s) {
        let taint = sysfs.folder("module").join(name).read_bytes("taint").ok()?;
        if taint.contains(&b'P') {
            found.push(name.clone());
        }
    }
    Some(found)
}

/// How much memory this process may lock; `None` if `/proc` does not say what it is permitted.
pub(super) fn locked_memory() -> Option<LockedMemory> {
    let own = Path::new("/proc/self");
    let status = std::fs::read_to_string(own.join("status")).ok()?;
    let is_exempt = has_ipc_lock(&status)? && is_initial(own)?;
    // A filter of system calls may refuse to ask for it.
    let limits = std::fs::read_to_string(own.join("limits")).ok()?;
    memlock(&limits, is_exempt)
}

/// How many bytes may be locked, by the soft limit in `/proc/PID/limits`; `None` if that is not there.
fn memlock(limits: &str, is_exempt: bool) -> Option<LockedMemory> {
    let limit = limits.lines().find_map(|line| line.strip_prefix("Max locked memory"))?;
    let limit = match limit.split_ascii_whitespace().next()? {
        "unlimited" => None,
        number => Some(number.parse().ok()?),
    };
    Some(LockedMemory { limit, is_exempt })
}

/// Whether `CAP_IPC_LOCK` is effective, by `/proc/PID/status`.
fn has_ipc_lock(status: &str) -> Option<bool> {
    const CAP_IPC_LOCK: u32 = 14;
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    let effective = u64::from_str_radix(effective.trim(), 16).ok()?;
    Some(effective >> CAP_IPC_LOCK & 1 == 1)
}

/// Whether a process, by its folder in `/proc`, is in the initial user namespace. Its users do not show it: another may
/// have them all.
fn is_initial(process: &Path) -> Option<bool> {
    kernel::is_initial(process, NamespaceKind::User)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::{Read as _, Write as _};
    use std::path::PathBuf;
    use std::process::{Command, Stdio};

    #[test]
    fn a_capability_counts_only_in_the_initial_namespace() {
        let status = |set: &str| format!("Name:\tx\nCapPrm:\t0\nCapEff:\t{set}\nCapBnd:\t0\n");
        assert_eq!(has_ipc_lock(&status("000001ffffffffff")), Some(true));
        assert_eq!(has_ipc_lock(&status("0000000000004000")), Some(true));
        assert_eq!(has_ipc_lock(&status("000001ffffffbfff")), Some(false));
        assert_eq!(has_ipc_lock(&status("no number")), None);
        assert_eq!(has_ipc_lock("Name:\tx\n"), None);
        assert!(locked_memory().is_some());
        let limit =
            |text: &str| memlock(&format!("Max cpu 1\nMax locked memory  {text} 9\n"), true);
        assert_eq!(limit("65536"), Some(LockedMemory { limit: Some(65536), is_exempt: true }));
        assert_eq!(limit("unlimited"), Some(LockedMemory { limit: None, is_exempt: true }));
        assert_eq!((limit("some"), memlock("", true)), (None, None));
        assert_eq!(is_initial(Path::new("/nowhere")), None);
    }

    #[test]
    #[cfg_attr(miri, ignore = "runs a program")]
    fn a_namespace_that_has_all_users_is_not_the_initial_one() {
        // It is there when it has said so.
        let mut there = Command::new("unshare")
            .args(["--user", "sh", "-c", "echo; read _"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = there.stdout.as_mut().unwrap().read(&mut [0]).unwrap();
        let process = PathBuf::from(format!("/proc/{}", there.id()));
        let map = fs::write(process.join("uid_map"), "0 0 4294967295");
        let found = is_initial(&process);
        drop(there.stdin.take());
        let _ = there.wait();
        if said == 0 {
            // Not by the macro, whose output is shown of what fails only.
            let why = "SKIPPED TEST: a user namespace of all users: none can be made";
            writeln!(std::io::stdout().lock(), "\n{why}").unwrap();
            return;
        }
        assert_eq!(found, Some(false), "{map:?}");
    }

    #[test]
    fn modules_that_are_built_in_have_a_class_or_a_device() {
        let root = tempfile::tempdir().unwrap();
        let sysfs = Sysfs::at(root.path());
        let make = |folder: &str| fs::create_dir_all(root.path().join(folder)).unwrap();
        make("class/misc/rdma_cm");
        assert_eq!(
            modules(&sysfs, true),
            [""; 0],
            "without the folder of modules nothing is known"
        );
        make("module");
        assert_eq!(modules(&sysfs, true), [""; 0], "the kernel's folder is never empty");
        make("module/nvidia");
        make("class/infiniband_mad");
        assert_eq!(modules(&sysfs, true), ["ib_umad", "rdma_ucm", "nvidia"]);
        assert_eq!(modules(&sysfs, false), ["ib_umad", "rdma_ucm"]);
        make("class/infiniband_verbs");
        make("module/ib_core");
        assert_eq!(modules(&sysfs, false), ["ib_core", "ib_uverbs", "ib_umad", "rdma_ucm"]);
        let circle = root.path().join("module/ib_ipoib");
        std::os::unix::fs::symlink(&circle, &circle).unwrap();
        assert_eq!(modules(&sysfs, false), [""; 0], "it is not known of each");
    }

    #[test]
    fn what_is_proprietary_is_known_of_all_or_not_at_all() {
        let root = tempfile::tempdir().unwrap();
        let sysfs = Sysfs::at(root.path());
        let known = ["ib_core", "nvidia", "nvidia_peermem"].map(str::to_owned);
        assert_eq!(proprietary(&sysfs, &[]), None);
        assert_eq!(proprietary(&sysfs, &known[..1]), Some(Vec::new()));
        assert_eq!(proprietary(&sysfs, &known), None);
        for (name, taint) in [("nvidia", "POE\n"), ("nvidia_peermem", "OE\n")] {
            let folder = root.path().join("module").join(name);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("taint"), taint).unwrap();
        }
        assert_eq!(proprietary(&sysfs, &known), Some(vec!["nvidia".to_owned()]));
    }
}
