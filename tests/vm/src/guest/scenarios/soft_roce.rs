//! The kernel's own soft RoCE, as the other scenarios rely on it.

use crate::lab;
use anyhow::{Result, ensure};
use std::fs;
use std::os::unix::fs::FileTypeExt;

/// A device node and the GIDs of the network device below it appear.
pub(crate) fn comes_up() -> Result<()> {
    println!("kernel {:?}", lab::kernel()?);
    let lab = lab::vlan_lab()?;

    let node = "/dev/infiniband/uverbs0";
    ensure!(fs::metadata(node)?.file_type().is_char_device(), "{node} is no device node");

    let gids = lab.rxe.gids()?;
    println!("{gids:#?}");
    // Index 0 is the default GID, from the MAC address; the order of the others is the kernel's.
    ensure!(gids.first() == Some(&(0, "fe80:0000:0000:0000:0011:22ff:fe33:4455".into())));
    for gid in
        ["0000:0000:0000:0000:0000:ffff:c0a8:4d01", "0000:0000:0000:0000:0000:ffff:0a07:0001"]
    {
        ensure!(gids.iter().any(|(_, other)| other == gid), "{gid} is missing");
    }
    Ok(())
}
