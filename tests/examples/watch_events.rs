//! `watch_events DEVICE [COUNT]`: prints what happens to a device: ports that go up or down, tables
//! that change.
//!
//! It ends after COUNT events, or with the device. Make something happen in another terminal:
//! `ip address add 10.1.2.3/24 dev NETDEV` changes the GID table of a RoCE port.

use std::error::Error;

use uverbs::context::EventType;
use uverbs::host::Host;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let device = arguments.next().ok_or("usage: watch_events DEVICE [COUNT]")?;
    let mut left: u64 = arguments.next().map_or(Ok(u64::MAX), |count| count.parse())?;

    // The context stays open: events end with it.
    let context = Host::new().open(&device)?;
    let events = context.async_events()?;
    eprintln!("watching {device}");
    while left > 0 {
        let event = events.next_event()?;
        println!("{} {}", event.event_type, event.element);
        if event.event_type == EventType::DEVICE_FATAL && event.element == 0 {
            // The device is gone, and no other event follows. (Some drivers say this also of one that failed and is
            // still there: a program that must know lists the devices again.)
            break;
        }
        left -= 1;
    }
    Ok(())
}
