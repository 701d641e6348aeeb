//! MSI-X vectors, each an eventfd of the machine.

use std::fs::File;
use std::io::{self, Write};

/// How many vectors there are.
pub(crate) const VECTORS: usize = 8;

/// The vectors that can be raised now.
#[derive(Debug, Default)]
pub(crate) struct Interrupts {
    vectors: [Option<File>; VECTORS],
}

impl Interrupts {
    /// Sets `count` vectors from `start` on. Where there is no eventfd the vector is off.
    pub(crate) fn set(&mut self, start: u32, count: u32, eventfds: Vec<File>) {
        let mut eventfds = eventfds.into_iter();
        let vectors = self.vectors.iter_mut().zip(0_u32..);
        for (vector, number) in vectors {
            if number >= start && number - start < count {
                *vector = eventfds.next();
            }
        }
    }

    /// Switches all off.
    pub(crate) fn off(&mut self) {
        self.vectors = Default::default();
    }

    /// Raises one, if it is on. Returns whether it is.
    pub(crate) fn raise(&self, vector: usize) -> io::Result<bool> {
        let Some(Some(eventfd)) = self.vectors.get(vector) else { return Ok(false) };
        (&*eventfd).write_all(&1_u64.to_ne_bytes())?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn vectors_go_on_and_off() {
        let (reader, writer) = io::pipe().unwrap();
        let mut interrupts = Interrupts::default();
        let eventfd = std::os::fd::OwnedFd::from(writer).into();
        interrupts.set(2, 1, vec![eventfd]);
        assert!(!interrupts.raise(1).unwrap());
        assert!(interrupts.raise(2).unwrap());
        assert!(!interrupts.raise(3).unwrap());
        assert!(!interrupts.raise(99).unwrap());
        interrupts.set(2, 1, Vec::new());
        assert!(!interrupts.raise(2).unwrap());
        let mut raised = Vec::new();
        { reader }.read_to_end(&mut raised).unwrap();
        assert_eq!(raised, 1_u64.to_ne_bytes());
    }
}
