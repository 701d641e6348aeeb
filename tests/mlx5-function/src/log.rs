//! The log: the driver's commands, and remarks about unexpected events.

use crate::control::Command;
use std::collections::VecDeque;

/// How many commands are kept.
const COMMANDS: usize = 100_000;
/// How many remarks are kept.
const REMARKS: usize = 1000;

/// The commands, numbered from 0.
#[derive(Debug, Default)]
pub(crate) struct Commands {
    kept: VecDeque<Command>,
    next: u64,
}

impl Commands {
    /// Adds one and gives it its number.
    pub(crate) fn push(&mut self, mut command: Command) -> u64 {
        if self.kept.len() == COMMANDS {
            self.kept.pop_front();
        }
        let number = self.next;
        command.number = number;
        self.kept.push_back(command);
        self.next += 1;
        number
    }

    /// Notes how a command was answered.
    pub(crate) fn answered(&mut self, number: u64, status: u8) {
        let index = number.checked_sub(self.first()).and_then(|index| usize::try_from(index).ok());
        if let Some(command) = index.and_then(|index| self.kept.get_mut(index)) {
            command.status = Some(status);
        }
    }

    /// Those with at least this number, and the next command's; or the number of the oldest
    /// that is kept, where some are not any more.
    pub(crate) fn since(&self, number: u64) -> Result<(Vec<Command>, u64), u64> {
        let first = self.first();
        let skip = number.checked_sub(first).ok_or(first)?;
        let skip = usize::try_from(skip).unwrap_or(usize::MAX);
        Ok((self.kept.iter().skip(skip).cloned().collect(), self.next))
    }

    fn first(&self) -> u64 {
        self.next - self.kept.len() as u64
    }
}

/// Remarks, each text once.
#[derive(Debug, Default)]
pub(crate) struct Remarks {
    kept: Vec<String>,
}

impl Remarks {
    /// Adds one, if it is new and there are not too many.
    pub(crate) fn add(&mut self, remark: String) {
        if self.kept.len() < REMARKS && !self.kept.contains(&remark) {
            self.kept.push(remark);
        }
    }

    /// All, the oldest first.
    pub(crate) fn all(&self) -> &[String] {
        &self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(opcode: u16) -> Command {
        Command { number: 0, opcode, uid: 0, op_mod: 0, arguments: [0; 8], status: None }
    }

    #[test]
    fn commands_are_numbered_and_answered() {
        let mut log = Commands::default();
        assert_eq!([log.push(command(7)), log.push(command(8))], [0, 1]);
        log.answered(1, 3);
        log.answered(2, 4);
        let (commands, next) = log.since(1).unwrap();
        assert_eq!((commands.len(), next), (1, 2));
        assert_eq!((commands[0].number, commands[0].opcode, commands[0].status), (1, 8, Some(3)));
        assert_eq!(log.since(0).unwrap().0[0].status, None);
        assert_eq!(log.since(99).unwrap(), (Vec::new(), 2));
    }

    #[test]
    fn the_oldest_go() {
        let mut log = Commands::default();
        for _ in 0..COMMANDS + 3 {
            log.push(command(1));
        }
        assert_eq!(log.since(2), Err(3));
        let (commands, next) = log.since(3).unwrap();
        assert_eq!((commands.len(), commands[0].number), (COMMANDS, 3));
        assert_eq!(next, COMMANDS as u64 + 3);
        log.answered(0, 1);
        log.answered(3, 1);
        assert_eq!(log.since(3).unwrap().0[0].status, Some(1));
    }

    #[test]
    fn a_remark_is_made_once() {
        let mut remarks = Remarks::default();
        for number in 0..2 * REMARKS {
            remarks.add(format!("remark {}", number / 2 * 2));
            remarks.add("again".to_owned());
        }
        assert_eq!(remarks.all().len(), REMARKS);
        assert_eq!(remarks.all()[..2], ["remark 0", "again"]);
    }
}
