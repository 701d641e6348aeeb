//! A host for unit tests: a sysfs tree with one device, whose node does not exist.

use std::fs;

use tempfile::TempDir;
use uverbs::host::Host;

/// Keep the folder as long as the host.
pub(crate) fn host() -> (TempDir, Host) {
    let folder = TempDir::new().unwrap();
    for (file, text) in [
        ("infiniband/rxe0/node_type", "1: CA"),
        ("infiniband/rxe0/node_guid", "0011:22ff:fe33:4455"),
        ("infiniband/rxe0/sys_image_guid", "0011:22ff:fe33:4455"),
        ("infiniband/rxe0/ports/1/link_layer", "Ethernet"),
        ("infiniband/rxe0/ports/1/gids/0", "fe80:0000:0000:0000:0011:22ff:fe33:4455"),
        ("infiniband/rxe0/ports/1/gid_attrs/types/0", "RoCE v2"),
        ("infiniband_verbs/uverbs0/ibdev", "rxe0"),
        ("infiniband_verbs/uverbs0/dev", "231:192"),
    ] {
        let path = folder.path().join("class").join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let host = Host::rooted(folder.path(), folder.path().join("dev"));
    (folder, host)
}
