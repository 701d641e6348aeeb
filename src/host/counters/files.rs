//! Files of sysfs, one for each counter.

use crate::counter::{Counter, CounterSource, Group};
use crate::device::Device;
use crate::error::{Error, Request};
use crate::sysfs::{Folder, counter_names, read_counter};

/// What came of a folder.
#[derive(Debug, Default)]
pub(super) struct FolderRead {
    pub(super) counters: Vec<Counter>,
    pub(super) left_out: Vec<String>,
    pub(super) problems: Vec<Error>,
    pub(super) files: u32,
}

impl FolderRead {
    pub(super) fn names(
        &mut self,
        device: &Device,
        port: Option<u32>,
        folder: &Folder,
    ) -> Vec<String> {
        counter_names(folder).unwrap_or_else(|cause| {
            let request = Request::Counters { port };
            self.problems.push(Error::new(&*device.name, request, cause));
            Vec::new()
        })
    }

    pub(super) fn file(
        &mut self,
        device: &Device,
        group: Group,
        folder: &Folder,
        name: &str,
    ) -> Result<(), Error> {
        self.files += 1;
        let number = read_counter(folder, name).map_err(|cause| {
            let path = folder.path().join(name);
            Error::new(&*device.name, Request::Sysfs { path }, cause)
        })?;
        let source = CounterSource::Sysfs;
        self.counters.push(Counter::new(name, group, source, device.driver, number));
        Ok(())
    }
}
