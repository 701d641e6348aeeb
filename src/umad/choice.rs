//! The default device and port, by libibumad's rule. The caller decides which ports are read and in which
//! order the devices come.

use crate::port::{PhysState, PortState};

/// What the choice depends on for one port.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen<State = u8> {
    pub(super) number: u32,
    /// Whether its link layer is InfiniBand.
    pub(super) infiniband: bool,
    pub(super) state: State,
    pub(super) phys_state: State,
}

impl<State: Into<u32> + Copy> Seen<State> {
    fn is_active(&self) -> bool {
        self.state.into() == u32::from(PortState::ACTIVE.0)
    }

    fn is_link_up(&self) -> bool {
        self.phys_state.into() == u32::from(PhysState::LINK_UP.0)
    }

    fn is_disabled(&self) -> bool {
        self.phys_state.into() == u32::from(PhysState::DISABLED.0)
    }
}

/// A usable port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) number: u32,
    /// Whether the search can end here.
    pub(super) active: bool,
}

/// The best port of a device whose ports come in ascending order; with `wanted`, that port if it is
/// usable.
pub(super) fn port<State: Into<u32> + Copy>(
    switch: bool,
    ports: &[Seen<State>],
    wanted: Option<u32>,
) -> Option<Candidate> {
    let found = |port: &Seen<State>, active| Candidate { number: port.number, active };
    if switch {
        return Some(Candidate { number: 0, active: true });
    }
    let infiniband = || ports.iter().filter(|port| port.infiniband);
    if let Some(wanted) = wanted {
        let port = infiniband().find(|port| port.number == wanted)?;
        return match (port.is_active(), port.is_disabled()) {
            (true, _) => Some(found(port, true)),
            (false, false) => Some(found(port, false)),
            (false, true) => None,
        };
    }
    if let Some(port) = infiniband().find(|port| port.is_active()) {
        return Some(found(port, true));
    }
    infiniband()
        .find(|port| port.is_link_up())
        .or_else(|| ports.iter().find(|port| !port.is_disabled()))
        .map(|port| found(port, false))
}

/// The first device with an active port, otherwise the first device with a usable port. A device that fails before
/// an active port is found may be it: that is an error.
pub(super) fn device<Failure>(
    names: &[String],
    mut best_of: impl FnMut(&str) -> Result<Option<Candidate>, Failure>,
) -> Result<Option<(String, u32)>, Failure> {
    let mut remembered = None;
    for name in names {
        match best_of(name)? {
            Some(Candidate { number, active: true }) => return Ok(Some((name.clone(), number))),
            Some(Candidate { number, active: false }) if remembered.is_none() => {
                remembered = Some((name.clone(), number));
            }
            _ => {}
        }
    }
    Ok(remembered)
}
