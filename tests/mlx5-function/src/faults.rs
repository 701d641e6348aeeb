//! Which commands are to fail, and how.

use crate::control::Fault;
use std::collections::BTreeMap;

/// The faults in force, by the opcodes of their commands.
#[derive(Debug, Default)]
pub(crate) struct Faults(BTreeMap<u16, Fault>);

impl Faults {
    /// Adds one, in the place of an older one for this opcode; or says why it makes no sense.
    pub(crate) fn add(&mut self, opcode: u16, fault: Fault) -> Result<(), String> {
        match fault {
            Fault::Status { status: 0, .. } => return Err("status 0 is success".to_owned()),
            Fault::Delivery(status) if !(1..=0x7f).contains(&status) => {
                return Err(format!("{status} is no delivery status: it is 1 to 127"));
            }
            _ => {}
        }
        self.0.insert(opcode, fault);
        Ok(())
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// What is to happen to a command.
    pub(crate) fn of(&self, opcode: u16) -> Option<Fault> {
        self.0.get(&opcode).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_fault_of_an_opcode() {
        let mut faults = Faults::default();
        faults.add(1, Fault::Delivery(10)).unwrap();
        faults.add(2, Fault::Delivery(20)).unwrap();
        assert_eq!([1, 2].map(|opcode| faults.of(opcode)), [10, 20].map(Fault::Delivery).map(Some));
        assert_eq!(faults.of(3), None);
        faults.add(1, Fault::Silence).unwrap();
        assert_eq!(faults.of(1), Some(Fault::Silence));
        faults.clear();
        assert_eq!(faults.of(1), None);
    }

    #[test]
    fn nonsense_is_refused() {
        let mut faults = Faults::default();
        faults.add(1, Fault::Delivery(0x7f)).unwrap();
        for fault in
            [Fault::Status { status: 0, syndrome: 1 }, Fault::Delivery(0), Fault::Delivery(0x80)]
        {
            assert!(faults.add(1, fault).is_err(), "{fault:?}");
        }
        assert_eq!(faults.of(1), Some(Fault::Delivery(0x7f)));
    }
}
