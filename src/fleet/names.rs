//! Values that many hosts share, each kept once.

use std::collections::BTreeMap;
use std::rc::Rc;

/// Values by numbers.
#[derive(Clone, Debug)]
pub(super) struct Names<T> {
    known: BTreeMap<Rc<T>, u32>,
    list: Vec<Rc<T>>,
}

impl<T> Default for Names<T> {
    fn default() -> Self {
        Self { known: BTreeMap::new(), list: Vec::new() }
    }
}

impl<T: Ord> Names<T> {
    /// The number of a value.
    pub(super) fn number(&mut self, value: T) -> u32 {
        if let Some(number) = self.known.get(&value) {
            return *number;
        }
        // So many would not fit into memory.
        let number = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        let value = Rc::new(value);
        self.list.push(Rc::clone(&value));
        self.known.insert(value, number);
        number
    }

    /// How many values there are.
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// The value of a number.
    pub(super) fn get(&self, number: u32) -> Option<&T> {
        self.list.get(number as usize).map(AsRef::as_ref)
    }
}
