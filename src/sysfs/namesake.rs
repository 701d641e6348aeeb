//! Whose a device's folder is, where another network namespace may have a device of the same name: for programs that may
//! not ask the kernel. Nodes are those of all namespaces, and each says of what name its device is.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use super::{CLASS, Folder, Sysfs, VERBS_CLASS};
use crate::device::{FolderId, Node};

/// How long it is not read again for a folder that was there before.
const KEPT: Duration = Duration::from_secs(1);

/// The devices that are shown here.
#[derive(Debug)]
pub(super) struct Shown {
    read: Instant,
    /// `None` if not all could be read.
    devices: Option<Vec<Named>>,
}

/// What is known by one name.
#[derive(Debug)]
struct Named {
    name: String,
    /// The device's folder.
    folder: FolderId,
    /// A node of a device of this name, and how many there are.
    node: String,
    count: usize,
}

impl Shown {
    fn named(&self, name: &str) -> Option<&Named> {
        self.devices.as_ref()?.iter().find(|own| own.name == name)
    }

    /// Whether it says something of a folder that was opened by this name. What was read before a folder has the name says
    /// nothing of it.
    fn is_about(&self, name: &str, folder: &FolderId) -> bool {
        self.devices.is_none() || self.named(name).is_some_and(|own| own.folder.is(folder))
    }
}

impl Sysfs {
    /// Whether the only node of devices of this name, of all network namespaces, is this one, and the open folder had the
    /// name before and after that was read.
    ///
    /// A device elsewhere that the kernel is making or removing may have no node, and then it is not seen.
    pub(super) fn is_only_node_of(&self, folder: &Folder, name: &str, node: &Node) -> bool {
        let Ok(folder) = folder.id() else { return false };
        let mut kept = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let shown = match kept.take() {
            Some(own) if own.read.elapsed() < KEPT && own.is_about(name, &folder) => own,
            _ => Shown { read: Instant::now(), devices: self.read_shown() },
        };
        let own = kept.insert(shown).named(name).filter(|own| own.folder.is(&folder));
        let is_only = own.is_some_and(|own| own.count == 1 && own.node == node.name);
        is_only && folder.still_exists().is_ok()
    }

    fn read_shown(&self) -> Option<Vec<Named>> {
        let [class, verbs] = [CLASS, VERBS_CLASS].map(|class| self.folder(class));
        // The kernel has about a thousand nodes at most: names are looked for one by one.
        let mut all = Vec::new();
        for name in class.names().ok()? {
            if let Ok(folder) = class.join(&name).id() {
                all.push(Named { name, folder, node: String::new(), count: 0 });
            }
        }
        for own in verbs.steady_names().ok()? {
            let node = verbs.join(&own);
            let Some(device) = node.read_name("ibdev").ok().filter(|own| !own.is_empty()) else {
                // A file about the class is there, too, and nodes go.
                if node.join("ibdev").is_missing() {
                    continue;
                }
                return None;
            };
            if let Some(named) = all.iter_mut().find(|own| own.name == device) {
                (named.node, named.count) = (own, named.count + 1);
            }
        }
        Some(all)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn another_node_with_the_name_is_seen() {
        let root = tempfile::tempdir().unwrap();
        let write = |node: &str, device: &str| {
            let class = root.path().join(VERBS_CLASS);
            fs::create_dir_all(class.join(node)).unwrap();
            fs::write(class.join("abi_version"), "6\n").unwrap();
            fs::write(class.join(node).join("ibdev"), device).unwrap();
        };
        let path = |device: &str| root.path().join(CLASS).join(device);
        for own in ["rxe0", "rxe1"] {
            fs::create_dir_all(path(own)).unwrap();
        }
        let node = |name: &str| Node {
            path: Path::new("/dev/infiniband").join(name),
            name: name.to_owned(),
            number: 0,
        };
        let own = node("uverbs0");
        let is_only = |tree: &Sysfs, device: &str, node: &Node| {
            let folder = tree.folder(CLASS).join(device).held().unwrap();
            tree.is_only_node_of(&folder, "rxe0", node)
        };
        let tree = Sysfs::at(root.path());
        assert!(!is_only(&tree, "rxe0", &own), "nothing could be read");
        write("uverbs0", "rxe0\n");
        write("uverbs1", "rxe1\n");
        let tree = tree.anew();
        assert!(is_only(&tree, "rxe0", &own));
        assert!(!is_only(&tree, "rxe1", &own), "the folder of another device");
        assert!(!is_only(&tree, "rxe0", &node("uverbs1")), "another device's");
        assert!(!is_only(&tree, "rxe0", &node("uverbs2")), "nobody's");

        // A folder that comes later is another one, whatever was read before.
        write("uverbs1", "rxe0\n");
        fs::rename(path("rxe0"), path("before")).unwrap();
        fs::rename(path("rxe1"), path("rxe0")).unwrap();
        assert!(!is_only(&tree, "rxe0", &own), "there are two");
        write("uverbs1", "");
        assert!(!is_only(&tree.anew(), "rxe0", &own), "one has no name");
    }
}
