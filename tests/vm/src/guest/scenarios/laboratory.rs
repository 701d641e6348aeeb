//! The lab itself: what it makes exists, and disappears when its guards are dropped.

use crate::lab::{self, Namespace, Netdev};
use anyhow::{Result, ensure};

/// Devices, VLANs and namespaces come and go without a trace.
pub(crate) fn cleans_up() -> Result<()> {
    let both = lab::two_soft_roce_devices()?;
    let namespace = Namespace::new("blue")?;
    namespace.take(Netdev::dummy("d2", "02:00:00:00:00:02")?)?;
    let links = namespace.run(&["ip", "-brief", "link"])?;
    println!("{links}");
    ensure!(links.contains("d2"), "d2 is not in the namespace");

    drop((both, namespace));
    lab::sweep()
}
