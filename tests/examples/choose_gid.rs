//! `choose_gid [ADDRESS]`: the GID index that a connection should use on each port.
//!
//! With an IPv4 or IPv6 address only GIDs in the address's network count: IPv4 /24, IPv6 /64.

use std::error::Error;
use std::net::IpAddr;

use uverbs::choose::{self, Network, Outcome, Wish};
use uverbs::host::Host;
use uverbs::inventory::{Parts, Wanted};

fn main() -> Result<(), Box<dyn Error>> {
    let mut wish = Wish::default();
    if let Some(text) = std::env::args().nth(1) {
        let address: IpAddr = text.parse()?;
        wish.networks.push(Network { address, bits: if address.is_ipv4() { 24 } else { 64 } });
    }
    let inventory = Host::new().inventory(&Wanted::new(Parts::CHOOSING));
    for port in choose::ports(&inventory) {
        let decision = choose::recommend(&port, &wish);
        match decision.outcome {
            Outcome::Taken(index) => println!("{}:{} {index}", port.device, port.number),
            outcome => println!("{}:{} none: {outcome}", port.device, port.number),
        }
        // Why each row of the table was taken or refused.
        for (index, reason) in decision.rows {
            println!("  {index}: {reason}");
        }
    }
    Ok(())
}
