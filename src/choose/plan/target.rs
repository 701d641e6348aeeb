//! Ports with the rows that they should use.

use crate::choose::decision::Outcome;
use crate::choose::port::Port;

/// A port, and the row it should use; `None` if it should not be used.
#[derive(Clone, Copy, Debug)]
pub struct Target<'p, 'i> {
    /// The host: a number that the caller chooses. The targets of one host come together.
    pub host: usize,
    /// The port.
    pub port: &'p Port<'i>,
    /// The index.
    pub index: Option<u32>,
}

impl Target<'_, '_> {
    /// Whether an outcome is the right one.
    #[must_use]
    pub fn is_met_by(&self, outcome: &Outcome) -> bool {
        match (outcome, self.index) {
            // The GID of a port that is not wanted or not active does not matter.
            (Outcome::Ignored(_), None) => true,
            // Only Ethernet has rows to choose from.
            (Outcome::Taken(_) | Outcome::ByLid, Some(_)) if !self.port.is_ethernet() => true,
            (outcome, index) => index.is_some() && outcome.index() == index,
        }
    }
}

/// Targets by their hosts.
pub(super) trait Hosts {
    /// Whether something holds of the targets of every host. It is asked host by host, to the first of
    /// which it does not hold.
    fn all(&self, holds: &mut dyn FnMut(&[Target<'_, '_>]) -> bool) -> bool;
}

impl Hosts for [Target<'_, '_>] {
    fn all(&self, holds: &mut dyn FnMut(&[Target<'_, '_>]) -> bool) -> bool {
        self.chunk_by(|one, other| one.host == other.host).all(holds)
    }
}
