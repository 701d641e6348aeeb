//! Where answers are sought: this host, or a sysfs tree; and what to say if there is no device.

use std::path::Path;

use uverbs::device::{Absence, Device, Host, Listing};
use uverbs::selector::Selector;

use crate::report::Report;

/// Where the nodes are on any host; of another host they are named, never opened.
const NODES: &str = "/dev/infiniband";

/// A host to ask.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) host: Host,
    /// Whether it is this host, so that its devices can be opened.
    pub(crate) is_here: bool,
}

impl Place {
    pub(crate) fn new(sysfs: Option<&Path>) -> Self {
        match sysfs {
            Some(sysfs) => Self { host: Host::rooted(sysfs, NODES), is_here: false },
            None => Self { host: Host::new(), is_here: true },
        }
    }

    /// Lists the devices. If there is none, says why. A device that cannot be read is a problem if
    /// it is asked for.
    pub(crate) fn devices(&mut self, selectors: &[Selector], report: &mut Report) -> Vec<Device> {
        match self.host.list() {
            Ok(Listing { devices, problems }) => {
                if let Some(error) = self.host.netlink_error().filter(|_| !devices.is_empty()) {
                    report.note(format!(
                        "{error}; sysfs was read: drivers, protocols and interfaces are not known"
                    ));
                }
                if devices.is_empty() && problems.is_empty() {
                    self.explain_absence(report);
                }
                for error in &problems {
                    let name = error.subject();
                    if selectors.is_empty() || selectors.iter().any(|own| own.device == name) {
                        report.problem(name, error);
                    }
                }
                devices
            }
            Err(error) => {
                report.host_problem(&error);
                Vec::new()
            }
        }
    }

    fn explain_absence(&mut self, report: &mut Report) {
        let mut reasons = self.host.absence();
        if !self.is_here {
            reasons.retain(|reason| !matches!(reason, Absence::NoNodes { .. }));
        }
        if reasons.is_empty() {
            report.note("no RDMA device");
        }
        for reason in reasons {
            report.note(format!("no RDMA device: {reason}"));
        }
        if self.host.shares_namespaces() == Some(false) {
            report.note(
                "each RDMA device belongs to one network namespace (rdma system: netns exclusive): \
                 there may be devices in others",
            );
        }
    }
}
