//! What a reading costs.

use crate::counter::OptionalCounter;
use crate::driver::DriverId;

/// What a reading of a port's counters cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cost {
    /// Requests of RDMA netlink. Those of 16 go out and come back in two system calls.
    pub netlink_requests: u32,
    /// Files of sysfs.
    pub files: u32,
    /// Commands to the device's firmware, where that is known: none for devices in software, and for mlx5
    /// those that its driver sends. Of a port that is a bond it is what one member costs. `None` for other
    /// drivers, if something failed, and if queue pairs have counters of their own (`rdma statistic qp`).
    pub firmware_commands: Option<u32>,
}

/// What devices in software cost.
pub(super) fn software(driver: Option<DriverId>) -> Option<u32> {
    driver.is_some_and(DriverId::is_software).then_some(0)
}

/// The commands by which the driver answered: one for all Q counters, one for all of congestion control, one
/// for the register of `rx_icrc_encapsulated`, and one for each optional counter that is on.
pub(super) fn mlx5_commands(counters: &[(String, u64)], optional: &[OptionalCounter]) -> u32 {
    let has = |wanted: &str| counters.iter().any(|(name, _)| name == wanted);
    let groups = [has("out_of_buffer"), has("rp_cnp_ignored"), has("rx_icrc_encapsulated")];
    let on = optional.iter().filter(|own| own.is_on);
    groups.into_iter().map(u32::from).sum::<u32>() + on.map(|_| 1).sum::<u32>()
}
