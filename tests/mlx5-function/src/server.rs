//! The function's side of vfio-user: regions, interrupts and memory, as long as one machine runs.

use crate::bar::Rung;
use crate::device::{Device, Later};
use crate::{bar, config_space, interrupts};
use anyhow::Result;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use vfio_bindings::bindings::vfio;
use vfio_user::{DmaMapFlags, DmaUnmapFlags, IrqInfo, Server, ServerBackend, ServerRegion};

/// A device, shared by the machine's connection and those who give orders.
#[derive(Debug, Clone)]
pub(crate) struct Shared(Arc<Mutex<Device>>);

impl Shared {
    pub(crate) fn new(device: Device) -> Self {
        Self(Arc::new(Mutex::new(device)))
    }

    /// The device, even if a thread that held it panicked: `Function::finish` reports that.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Device> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers a command later, on a thread of its own: the machine waits while its doorbell is
    /// written.
    fn answer_later(&self, Later { number, delay }: Later) {
        let device = Arc::downgrade(&self.0);
        thread::spawn(move || {
            thread::sleep(delay);
            if let Some(device) = device.upgrade() {
                Self(device).lock().release(number);
            }
        });
    }
}

/// Binds the socket.
pub(crate) fn bind(socket: &Path) -> Result<Server> {
    let irqs = (0..vfio::VFIO_PCI_NUM_IRQS).map(|index| {
        let (count, flags) = if index == vfio::VFIO_PCI_MSIX_IRQ_INDEX {
            (VECTORS, vfio::VFIO_IRQ_INFO_EVENTFD | vfio::VFIO_IRQ_INFO_NORESIZE)
        } else {
            (0, 0)
        };
        IrqInfo { index, flags, count }
    });
    let regions = (0..vfio::VFIO_PCI_NUM_REGIONS).map(|index| {
        let size = region_size(index);
        // Not mapped by the machine: every access comes as a message, so doorbells are seen.
        let flags = match size {
            0 => 0,
            _ => vfio::VFIO_REGION_INFO_FLAG_READ | vfio::VFIO_REGION_INFO_FLAG_WRITE,
        };
        let argsz = REGION_INFO_SIZE;
        let region_info =
            vfio::vfio_region_info { argsz, index, size, flags, ..Default::default() };
        ServerRegion { region_info, sparse_areas: Vec::new(), mmap_fd: None }
    });
    Ok(Server::new(socket, true, irqs.collect(), regions.collect())?)
}

#[expect(clippy::cast_possible_truncation, reason = "8 and 32")]
const VECTORS: u32 = interrupts::VECTORS as u32;
#[expect(clippy::cast_possible_truncation, reason = "8 and 32")]
const REGION_INFO_SIZE: u32 = size_of::<vfio::vfio_region_info>() as u32;

fn region_size(index: u32) -> u64 {
    match index {
        vfio::VFIO_PCI_BAR0_REGION_INDEX => bar::SIZE,
        vfio::VFIO_PCI_CONFIG_REGION_INDEX => config_space::SIZE,
        _ => 0,
    }
}

/// Serves one connection until the machine ends it.
pub(crate) fn run(server: &Server, device: Shared) -> Result<()> {
    use vfio_user::Error::{ReceiveWithFd, StreamRead, StreamWrite};
    match server.run(&mut Backend(device)) {
        Err(StreamRead(error) | StreamWrite(error)) if is_end(&error) => Ok(()),
        Err(ReceiveWithFd(error)) if is_end(&error.into()) => Ok(()),
        ended => Ok(ended?),
    }
}

/// Whether an error is what is left of a machine that was killed.
fn is_end(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
}

struct Backend(Shared);

/// Refuses accesses that are not within a region.
fn check(region: u32, offset: u64, length: usize) -> io::Result<()> {
    let end = offset.checked_add(length as u64);
    if end.is_some_and(|end| end <= region_size(region)) {
        return Ok(());
    }
    let what = format!("{length} bytes at {offset:#x} are not in region {region}");
    Err(io::Error::new(io::ErrorKind::InvalidInput, what))
}

impl ServerBackend for Backend {
    fn region_read(&mut self, region: u32, offset: u64, data: &mut [u8]) -> io::Result<()> {
        check(region, offset, data.len())?;
        let mut device = self.0.lock();
        let Device { bar, config, description, unplugged, .. } = &mut *device;
        if *unplugged {
            data.fill(0xff);
        } else if region == vfio::VFIO_PCI_CONFIG_REGION_INDEX {
            config.read(description, offset, data);
        } else {
            bar.read(description, offset, data);
        }
        Ok(())
    }

    fn region_write(&mut self, region: u32, offset: u64, data: &[u8]) -> io::Result<()> {
        check(region, offset, data.len())?;
        let mut device = self.0.lock();
        if device.unplugged {
            return Ok(());
        }
        if region == vfio::VFIO_PCI_CONFIG_REGION_INDEX {
            device.config.write(offset, data);
            return Ok(());
        }
        match device.bar.write(offset, data) {
            Some(Rung::Commands(slots)) => {
                for later in device.doorbell(slots) {
                    self.0.answer_later(later);
                }
            }
            Some(Rung::Send(request)) => device.send(request),
            None => {}
        }
        Ok(())
    }

    fn dma_map(
        &mut self,
        _flags: DmaMapFlags,
        offset: u64,
        address: u64,
        size: u64,
        fd: Option<File>,
    ) -> io::Result<()> {
        // Without a file it is no memory but ROM, which no driver gives to a device.
        let Some(file) = fd else { return Ok(()) };
        let mut device = self.0.lock();
        device.memory.map(address, size, file, offset).map_err(|error| {
            device.remarks.add(format!("{error:#}"));
            io::Error::other(error)
        })
    }

    fn dma_unmap(&mut self, flags: DmaUnmapFlags, address: u64, size: u64) -> io::Result<()> {
        let mut device = self.0.lock();
        if flags.contains(DmaUnmapFlags::UNMAP_ALL) {
            device.memory.unmap_all();
        } else {
            device.memory.unmap(address, size);
        }
        Ok(())
    }

    fn reset(&mut self) -> io::Result<()> {
        self.0.lock().reset();
        Ok(())
    }

    fn set_irqs(
        &mut self,
        index: u32,
        flags: u32,
        start: u32,
        count: u32,
        fds: Vec<File>,
    ) -> io::Result<()> {
        if index == vfio::VFIO_PCI_MSIX_IRQ_INDEX {
            let mut device = self.0.lock();
            if flags & vfio::VFIO_IRQ_SET_DATA_EVENTFD == 0 && count == 0 {
                device.interrupts.off();
            } else {
                device.interrupts.set(start, count, fds);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::{Order, Reply};
    use crate::description::Description;

    fn read(backend: &mut Backend, region: u32) -> [u8; 4] {
        let mut bytes = [0; 4];
        backend.region_read(region, 0, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn pulled_out_it_reads_as_ones() {
        let device = Shared::new(Device::new(Description::roce()));
        let mut backend = Backend(device.clone());
        let regions = [vfio::VFIO_PCI_CONFIG_REGION_INDEX, vfio::VFIO_PCI_BAR0_REGION_INDEX];
        let before = regions.map(|region| read(&mut backend, region));
        assert!(!before.contains(&[0xff; 4]));
        assert_eq!(device.lock().handle(Order::Unplug), Reply::Done);
        assert_eq!(regions.map(|region| read(&mut backend, region)), [[0xff; 4]; 2]);
        // Lost, also where it would be remarked on.
        backend.region_write(vfio::VFIO_PCI_BAR0_REGION_INDEX, 0x18, &[0xff; 4]).unwrap();
        assert!(device.lock().remarks.all().is_empty());
        let event = Order::PortEvent { port: 1, subtype: 1 };
        assert!(matches!(device.lock().handle(event), Reply::Error(_)));
        assert_eq!(device.lock().handle(Order::Plug), Reply::Done);
        assert_eq!(device.lock().handle(Order::Plug), Reply::Unchanged);
        assert_eq!(regions.map(|region| read(&mut backend, region)), before);
    }
}
