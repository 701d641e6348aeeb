//! Values that many hosts share, each kept once.

use std::collections::BTreeMap;

/// Values by numbers. Equal values have equal keys, and others have other ones.
#[derive(Clone, Debug)]
pub(super) struct Names<T> {
    keys: Keys,
    list: Vec<T>,
}

impl<T> Default for Names<T> {
    fn default() -> Self {
        Self { keys: Keys::default(), list: Vec::new() }
    }
}

/// One type for all values, as each type of map is code of its own.
#[derive(Clone, Debug, Default)]
struct Keys(BTreeMap<Box<[u8]>, u32>);

impl Keys {
    /// The number of a key, and whether it is new: then it is this one.
    fn number(&mut self, key: &[u8], next: usize) -> (u32, bool) {
        if let Some(number) = self.0.get(key) {
            return (*number, false);
        }
        // So many would not fit into memory.
        let number = u32::try_from(next).unwrap_or(u32::MAX);
        self.0.insert(key.into(), number);
        (number, true)
    }
}

impl<T> Names<T> {
    /// The number of the value that has this key.
    pub(super) fn number(&mut self, key: &[u8], value: impl FnOnce() -> T) -> u32 {
        let (number, is_new) = self.keys.number(key, self.list.len());
        if is_new {
            self.list.push(value());
        }
        number
    }

    /// How many values there are.
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// The value of a number.
    pub(super) fn get(&self, number: u32) -> Option<&T> {
        self.list.get(number as usize)
    }
}
