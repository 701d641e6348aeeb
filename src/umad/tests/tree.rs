//! A temporary sysfs tree for one test.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{CWD, FileType, Mode};

use crate::sysfs::Sysfs;

/// A port as the kernel shows one on InfiniBand, active. The last group of the GID is the port's
/// number.
const PORT: [(&str, &str); 9] = [
    ("lid_mask_count", "2"),
    ("sm_lid", "0x11"),
    ("sm_sl", "3"),
    ("lid", "0x2a"),
    ("state", "4: ACTIVE"),
    ("phys_state", "5: LinkUp"),
    ("rate", "2.5 Gb/sec (1X SDR)"),
    ("cap_mask", "0x00010000"),
    ("link_layer", "InfiniBand"),
];

pub(crate) struct Tree {
    root: PathBuf,
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

impl Tree {
    /// RDMA is there, but no device.
    pub(crate) fn new() -> Self {
        let tree = Self::without_rdma();
        fs::create_dir_all(tree.class()).unwrap();
        tree
    }

    pub(crate) fn without_rdma() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name =
            format!("uverbs-umad-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let root = std::env::temp_dir().join(name);
        fs::create_dir_all(&root).unwrap();
        Self { root }
    }

    pub(crate) fn sysfs(&self) -> Sysfs {
        Sysfs::at(&self.root)
    }

    pub(crate) fn class(&self) -> PathBuf {
        self.root.join("class/infiniband")
    }

    fn path(&self, path: &str) -> PathBuf {
        if path.is_empty() { self.class() } else { self.class().join(path) }
    }

    /// A device without ports.
    pub(crate) fn device(&self, name: &str, node_type: &str) -> &Self {
        self.file(&format!("{name}/node_type"), node_type)
            .file(&format!("{name}/node_guid"), "0011:22ff:fe33:4400")
            .file(&format!("{name}/sys_image_guid"), "0011:22ff:fe33:4401")
            .file(&format!("{name}/fw_ver"), "20.31.1014")
            .folder(&format!("{name}/ports"))
    }

    /// An active InfiniBand port, with one P_Key and one GID.
    pub(crate) fn port(&self, device: &str, number: u32) -> &Self {
        let folder = format!("{device}/ports/{number}");
        for (file, text) in PORT {
            self.file(&format!("{folder}/{file}"), text);
        }
        let gid = format!("fe80:0000:0000:0000:0011:22ff:fe33:{number:04x}");
        self.file(&format!("{folder}/gids/0"), &gid).file(&format!("{folder}/pkeys/0"), "0xffff")
    }

    /// Another text in a port's file.
    pub(crate) fn set(&self, device: &str, number: u32, file: &str, text: &str) -> &Self {
        self.file(&format!("{device}/ports/{number}/{file}"), text)
    }

    /// State and physical state of a port.
    pub(crate) fn is(&self, device: &str, number: u32, state: u8, phys_state: u8) -> &Self {
        self.set(device, number, "state", &format!("{state}: ?")).set(
            device,
            number,
            "phys_state",
            &format!("{phys_state}: ?"),
        )
    }

    /// A file that ends with a newline, as the kernel's do.
    pub(crate) fn file(&self, path: &str, text: &str) -> &Self {
        self.bytes(path, format!("{text}\n").as_bytes())
    }

    /// A file; nothing if there is something else in the way.
    pub(crate) fn bytes(&self, path: &str, bytes: &[u8]) -> &Self {
        let path = self.path(path);
        if path.parent().is_some_and(|folder| fs::create_dir_all(folder).is_ok()) {
            let _ = fs::write(path, bytes);
        }
        self
    }

    pub(crate) fn folder(&self, path: &str) -> &Self {
        let _ = fs::create_dir_all(self.path(path));
        self
    }

    pub(crate) fn link(&self, path: &str, target: impl AsRef<Path>) -> &Self {
        let _ = std::os::unix::fs::symlink(target, self.path(path));
        self
    }

    /// A link to itself, which nobody can read, not even root (`ELOOP`).
    pub(crate) fn unreadable(&self, path: &str) -> &Self {
        let name = self.path(path).file_name().unwrap().to_owned();
        self.remove(path).link(path, name)
    }

    pub(crate) fn fifo(&self, path: &str) -> &Self {
        let _ = rustix::fs::mknodat(CWD, self.path(path), FileType::Fifo, Mode::RUSR, 0);
        self
    }

    /// Removes a file or folder.
    pub(crate) fn remove(&self, path: &str) -> &Self {
        let path = self.path(path);
        let _ = fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path));
        self
    }
}
