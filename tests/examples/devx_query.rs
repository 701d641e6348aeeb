//! `devx_query DEVICE`: asks the firmware of an mlx5 device who it is, through DEVX.

use std::error::Error;

use uverbs::host::Host;
use uverbs::mlx5::devx;

fn main() -> Result<(), Box<dyn Error>> {
    let name = std::env::args().nth(1).ok_or("usage: devx_query DEVICE")?;
    let device = Host::new().device(&name)?;
    // A context of another device, or without DEVX, would be refused.
    let context = devx::open(&device)?;
    println!("PSID {}", devx::query_adapter(&context)?.psid);
    Ok(())
}
