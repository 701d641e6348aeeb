//! The decoder and all queries on a kernel that answers anything: an answer or an error, no panic, and
//! nothing written but the caller's memory. Then the same from C.

use arbitrary::{Arbitrary, Unstructured};
use uverbs::context::Context;
use uverbs::driver::DriverId;
use uverbs::gid::GidEntry;
use uverbs::mlx5::devx::{self, CapabilityMode, DevxContext, Vport, VportSide};
use uverbs::mlx5::{self, port::VportNumber};
use zerocopy::FromBytes;

use crate::c;
use crate::guarded::Guarded;
use crate::hostile::{Answer, Hostile};

#[derive(Arbitrary, Debug)]
struct Input {
    answers: Vec<Answer>,
    is_closed: bool,
    driver: u8,
    is_devx: bool,
    /// Far ports too: those above 255 have a way of their own.
    ports: u16,
    what: What,
}

#[derive(Arbitrary, Debug)]
enum What {
    Rust(Vec<Query>),
    C(Vec<c::Call>),
}

#[derive(Arbitrary, Debug)]
enum Query {
    Gid {
        port: u32,
        index: u32,
    },
    Table,
    TableInto {
        room: u16,
    },
    Port(u32),
    PortSpeed(u32),
    Device,
    Events,
    Mlx5Port {
        port: u32,
    },
    Mlx5PortInto {
        port: u32,
        room: u16,
    },
    Command {
        input: Vec<u8>,
        room: u16,
    },
    Capabilities {
        is_maximum: bool,
        vport: Option<u16>,
    },
    Adapter,
    EswFunctions,
    Lag,
    Nop,
    VportState {
        side: u8,
        vport: Option<u16>,
    },
    Nic(Option<u16>),
    Hca {
        port: u8,
        vport: Option<u16>,
    },
    Esw(Option<u16>),
    RoceAddress {
        index: u16,
        port: u8,
    },
    Counter {
        port: u8,
        vport: Option<u16>,
    },
    /// More room than one call may have.
    LongTable {
        room: u16,
    },
}

/// Runs the target.
///
/// # Panics
/// If a promise is broken.
pub fn run(data: &[u8]) {
    let mut data = Unstructured::new(data);
    let Ok(input) = Input::arbitrary(&mut data) else { return };
    let kernel = Box::new(Hostile::new(input.answers, !input.is_closed));
    let last = u32::from(input.ports) % 300;
    let context = if input.is_devx {
        DevxContext::simulated("sim0", 1..=last, kernel).map(Opened::Devx)
    } else {
        let driver = if input.driver > 127 { 5 } else { u32::from(input.driver) };
        Context::simulated("sim0", 1..=last, DriverId(driver), kernel).map(Opened::Plain)
    };
    let context = match context {
        Ok(context) => context,
        Err(error) => return tell(&error),
    };
    match input.what {
        What::Rust(queries) => {
            for query in queries.iter().take(8) {
                match &context {
                    Opened::Plain(context) => ask(context, query),
                    Opened::Devx(context) => ask_devx(context, query),
                }
            }
        }
        What::C(calls) => {
            let context = match context {
                Opened::Plain(context) => context,
                Opened::Devx(context) => context.into_context(),
            };
            c::run(context, calls.get(..8.min(calls.len())).unwrap_or_default(), false);
        }
    }
}

/// Errors say something.
fn tell(error: &uverbs::Error) {
    assert!(!error.to_string().is_empty());
    let _ = (format!("{error:?}"), error.subject().len());
    // The kernel's own number is the error's, unless a fact is known by it.
    assert!(error.errno() > 0);
}

fn told<T: core::fmt::Debug>(answer: uverbs::Result<T>) {
    match answer {
        Ok(answer) => drop(format!("{answer:?}")),
        Err(error) => tell(&error),
    }
}

fn vport(number: Option<u16>) -> Vport {
    number.map_or(Vport::Own, |number| Vport::Other(VportNumber(number)))
}

enum Opened {
    Plain(Context),
    Devx(DevxContext),
}

/// What only a context with DEVX can be asked, and all the rest.
fn ask_devx(context: &DevxContext, query: &Query) {
    match query {
        Query::Adapter => told(devx::query_adapter(context)),
        Query::Lag => told(devx::query_lag(context)),
        Query::Nop => told(devx::nop(context)),
        Query::VportState { side, vport: number } => {
            let sides = [VportSide::Function, VportSide::Eswitch, VportSide::Uplink];
            let side = sides[usize::from(*side) % sides.len()];
            told(devx::query_vport_state(context, side, vport(*number)));
        }
        Query::Nic(number) => told(devx::query_nic_vport_context(context, vport(*number))),
        Query::RoceAddress { index, port } => {
            told(devx::query_roce_address(context, *index, *port));
        }
        Query::Counter { port, vport: number } => {
            let answer = devx::query_vport_counter(context, *port, vport(*number));
            assert!(answer.iter().all(|counters| counters.named().len() == 12));
            told(answer);
        }
        query => ask(context, query),
    }
}

fn ask(context: &Context, query: &Query) {
    match query {
        Query::Gid { port, index } => {
            let answer = context.query_gid_ex(*port, *index);
            if let Ok(Some(entry)) = &answer {
                assert_eq!((entry.port(), entry.index()), (*port, *index));
                show(entry);
            }
            told(answer);
        }
        Query::Table => {
            let answer = context.query_gid_table();
            answer.iter().flatten().for_each(show);
            told(answer);
        }
        Query::TableInto { room } => table_into(context, usize::from(*room) % 2200),
        Query::LongTable { room } => table_into(context, 2048 + usize::from(*room) % 200),
        Query::Port(port) => {
            let answer = context.query_port(*port);
            if let Ok(port) = &answer {
                let _ = (port.rate().map(|r| (r.to_string(), r.gbps())), port.state.to_string());
                let _ = (port.phys_state.to_string(), port.link_layer.to_string());
                let _ = port.active_mtu.map(|mtu| (mtu.bytes(), mtu));
                let _ = (port.active_speed.map(|s| format!("{s:?}")), port.active_width);
            }
            told(answer);
        }
        Query::PortSpeed(port) => {
            let answer = context.query_port_speed(*port);
            let _ = answer.as_ref().map(|rate| (rate.to_string(), rate.gbps()));
            told(answer);
        }
        Query::Device => {
            let answer = context.query_device();
            if let Ok(device) = &answer {
                let _ = (device.node_guid().to_string(), device.sys_image_guid(), device.raw());
            }
            told(answer);
        }
        Query::Events => told(context.async_events()),
        Query::Mlx5Port { port } => {
            let answer = mlx5::query_port(context, *port);
            if let Ok(port) = &answer {
                let _ = (port.vport(), port.reg_c0(), port.vport_steering_icm_tx());
            }
            told(answer);
        }
        Query::Mlx5PortInto { port, room } => {
            let mut memory = Guarded::new(usize::from(*room));
            told(mlx5::query_port_into(context, *port, memory.inside_mut()));
            memory.check();
        }
        Query::Command { input, room } => {
            let mut memory = Guarded::new(usize::from(*room));
            told(devx::general_cmd(context, input, memory.inside_mut()));
            memory.check();
        }
        Query::Capabilities { is_maximum, vport: number } => {
            let mode = if *is_maximum { CapabilityMode::Maximum } else { CapabilityMode::Current };
            told(devx::query_hca_cap(context, mode, vport(*number)));
            told(devx::query_roce_cap(context, mode, vport(*number)));
        }
        Query::EswFunctions => told(devx::query_esw_functions(context)),
        Query::Hca { port, vport: number } => {
            told(devx::query_hca_vport_context(context, *port, vport(*number)));
        }
        Query::Esw(number) => told(devx::query_esw_vport_context(context, vport(*number))),
        // The kernel lets none of these through without DEVX.
        Query::Adapter
        | Query::Lag
        | Query::Nop
        | Query::VportState { .. }
        | Query::Nic(_)
        | Query::RoceAddress { .. }
        | Query::Counter { .. } => {}
    }
}

fn table_into(context: &Context, room: usize) {
    let mut memory = Guarded::new(room * size_of::<GidEntry>());
    let entries = <[GidEntry]>::mut_from_bytes(memory.inside_mut()).expect("aligned");
    match context.query_gid_table_into(entries) {
        Ok(count) => assert!(count <= room),
        Err(error) => tell(&error),
    }
    memory.check();
}

fn show(entry: &GidEntry) {
    let gid = entry.gid();
    let text = gid.full();
    assert_eq!(text.len(), 39);
    assert_eq!(gid.to_string().parse::<std::net::Ipv6Addr>().ok(), Some(gid.ipv6()));
    assert_eq!(text.parse::<std::net::Ipv6Addr>().ok(), Some(gid.ipv6()));
    let _ = (entry.gid_type().to_string(), entry.netdev_ifindex(), gid.ipv4());
}
