//! `list_gids`: prints the GID tables of all RDMA devices of this host.
//!
//! Each table is read by one system call. A device that cannot be opened does not hide the others.

use std::error::Error;

use uverbs::context::Context;
use uverbs::host::Host;

fn main() -> Result<(), Box<dyn Error>> {
    for device in Host::new().devices()? {
        let table = Context::open(&device).and_then(|context| context.query_gid_table());
        match table {
            Ok(entries) => {
                for entry in entries {
                    let (port, index) = (entry.port(), entry.index());
                    println!("{}:{port} {index} {} {}", device.name, entry.gid(), entry.gid_type());
                }
            }
            // The error names the device.
            Err(error) => eprintln!("{error}"),
        }
    }
    Ok(())
}
