//! Whose a device's folder is, where another network namespace may have a device of the same name: for programs that may
//! not ask the kernel. Nodes are those of all namespaces, and each says of what name its device is.

use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use super::{CLASS, Folder, Sysfs, VERBS_CLASS};
use crate::device::{FolderId, Node};
use crate::error::Cause;
use crate::text::is_device_name;

/// How long it is not read again for a folder that was there before.
const KEPT: Duration = Duration::from_secs(1);

/// The devices that are shown here.
#[derive(Debug)]
pub(super) struct Shown {
    read: Instant,
    /// By name: the device's folder, and the nodes of all devices of that name. `None` if not all could be read.
    by_name: Option<BTreeMap<String, (FolderId, Vec<String>)>>,
}

impl Shown {
    /// Whether it says something of a folder that was opened by this name. What was read before a folder has the name says
    /// nothing of it.
    fn is_about(&self, name: &str, folder: &FolderId) -> bool {
        let is_it = |(own, _): &(FolderId, _)| own.is(folder);
        self.by_name.as_ref().is_none_or(|all| all.get(name).is_some_and(is_it))
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
            _ => Shown { read: Instant::now(), by_name: self.read_shown().ok() },
        };
        let all = kept.insert(shown).by_name.as_ref();
        let known = all.and_then(|all| all.get(name));
        known.is_some_and(|(own, nodes)| own.is(&folder) && *nodes == [&*node.name])
    }

    fn read_shown(&self) -> Result<BTreeMap<String, (FolderId, Vec<String>)>, Cause> {
        let [class, verbs] = [CLASS, VERBS_CLASS].map(|class| self.folder(class));
        let mut shown = BTreeMap::new();
        for name in class.names()? {
            if let Ok(id) = class.join(&name).id() {
                shown.insert(name, (id, Vec::new()));
            }
        }
        for own in verbs.steady_names()? {
            let node = verbs.join(&own);
            // A file about the class is there, too.
            if node.join("ibdev").is_missing() {
                continue;
            }
            let device = node.read_name("ibdev")?;
            if !is_device_name(&device) {
                return Err(node.malformed("ibdev", "a device's name"));
            }
            if let Some((_, nodes)) = shown.get_mut(&device) {
                nodes.push(own);
            }
        }
        shown.retain(|name, (id, _)| class.join(name).id().is_ok_and(|now| now.is(id)));
        Ok(shown)
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
