//! Which commands are to fail, and how.

use crate::control::Fault;

/// A rule for some commands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule {
    pub(crate) opcode: u16,
    /// Every `op_mod` if `None`.
    pub(crate) op_mod: Option<u16>,
    /// How often it is used; for ever if `None`.
    pub(crate) times: Option<u32>,
    pub(crate) fault: Fault,
}

/// The rules in force.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    /// The oldest first.
    rules: Vec<Rule>,
}

impl Faults {
    /// Adds a rule; or says why it makes no sense.
    pub(crate) fn add(&mut self, rule: Rule) -> Result<(), String> {
        match rule.fault {
            Fault::Status { status: 0, .. } => return Err("status 0 is success".to_owned()),
            Fault::Delivery(status) if !(1..=0x7f).contains(&status) => {
                return Err(format!("{status} is no delivery status: it is 1 to 127"));
            }
            _ => {}
        }
        if rule.times == Some(0) {
            return Err("a rule that is used 0 times is none".to_owned());
        }
        self.rules.push(rule);
        Ok(())
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.rules.clear();
    }

    /// What is to happen to this command: the newest rule that fits says it, and is used up once.
    pub(crate) fn take(&mut self, opcode: u16, op_mod: u16) -> Option<Fault> {
        let fits = |rule: &Rule| {
            rule.opcode == opcode && rule.op_mod.is_none_or(|wanted| wanted == op_mod)
        };
        let index = self.rules.iter().rposition(fits)?;
        let rule = self.rules.get_mut(index)?;
        let fault = rule.fault;
        match rule.times {
            Some(1) => drop(self.rules.remove(index)),
            Some(times) => rule.times = Some(times - 1),
            None => {}
        }
        Some(fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(opcode: u16, op_mod: Option<u16>, times: Option<u32>, delay: u32) -> Rule {
        Rule { opcode, op_mod, times, fault: Fault::Delay(delay) }
    }

    #[test]
    fn the_newest_rule_that_fits() {
        let mut faults = Faults::default();
        faults.add(rule(1, None, None, 10)).unwrap();
        faults.add(rule(1, Some(5), None, 20)).unwrap();
        faults.add(rule(2, None, None, 30)).unwrap();
        assert_eq!(faults.take(1, 0), Some(Fault::Delay(10)));
        assert_eq!(faults.take(1, 5), Some(Fault::Delay(20)));
        assert_eq!(faults.take(2, 5), Some(Fault::Delay(30)));
        assert_eq!(faults.take(3, 5), None);
        faults.add(rule(1, None, None, 40)).unwrap();
        assert_eq!(faults.take(1, 5), Some(Fault::Delay(40)));
        faults.clear();
        assert_eq!(faults.take(1, 5), None);
    }

    #[test]
    fn a_rule_is_used_up_and_the_one_below_is_back() {
        let mut faults = Faults::default();
        faults.add(rule(1, None, None, 10)).unwrap();
        faults.add(rule(1, None, Some(2), 20)).unwrap();
        let delays: Vec<_> = (0..4).map(|_| faults.take(1, 0)).collect();
        assert_eq!(delays, [20, 20, 10, 10].map(|delay| Some(Fault::Delay(delay))));
    }

    #[test]
    fn nonsense_is_refused() {
        let mut faults = Faults::default();
        let mut add =
            |fault, times| faults.add(Rule { opcode: 1, op_mod: None, times, fault }).is_ok();
        assert!(!add(Fault::Status { status: 0, syndrome: 1 }, None));
        assert!(!add(Fault::Delivery(0), None));
        assert!(!add(Fault::Delivery(0x80), None));
        assert!(!add(Fault::Silence, Some(0)));
        assert!(add(Fault::Delivery(0x7f), Some(1)));
        assert_eq!(faults.take(1, 0), Some(Fault::Delivery(0x7f)));
        assert_eq!(faults.take(1, 0), None);
    }
}
