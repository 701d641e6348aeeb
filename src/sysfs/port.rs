//! Ports by sysfs: the files of `ports/P`, which know less than the ioctl. What is missing is `None`.

use nix::libc;

use super::folder::Unread;
use super::gid::gid_slots;
use super::pkey::{may_have_none, pkey_slots};
use super::{Folder, Sysfs, of_file};
use crate::error::{Cause, Error, Request, Result};
use crate::kernel::release;
use crate::port::{LinkLayer, PhysState, PortAttributes, PortState, Speed, Width};

impl Sysfs {
    /// Reads a port's attributes from `ports/P`.
    ///
    /// On another link layer than Ethernet, sysfs says SDR also of a speed that the kernel does not know, as Linux
    /// 6.1 does of XDR. The speed is then `None`, and so is the rate. If it says a speed there that this version does
    /// not know, the width is `None`, too.
    ///
    /// ```no_run
    /// println!("{}", uverbs::Sysfs::host().query_port("mlx5_0", 1)?.state);
    /// # Ok::<(), uverbs::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errno of a file that cannot be read. Also `ENODEV` or `ENAMETOOLONG`: no device can have the name;
    /// `ENOENT`: no such device, here or any more, or a part of its files is missing; `EINVAL`: no such port; `EPROTO`: a
    /// file that does not read as it should, a table with a gap, or a port that comes or goes.
    #[doc(alias = "ibv_query_port")]
    pub fn query_port(&self, device: &str, port: u32) -> Result<PortAttributes> {
        let request = || Request::Port { port };
        self.steadily(device, request, |sysfs| {
            let folder =
                sysfs.port(device, port).map_err(|cause| Error::new(device, request(), cause))?;
            read_port(&folder)
                .map_err(|unread| sysfs.missing_or(device, &folder, &folder, request(), unread))
        })
    }
}

/// What is wrong with a table that is empty.
pub(super) const NO_SLOTS: &str = "a table without slots";

/// The text of a port's rate; empty if the kernel does not know the width, or the file.
pub(crate) fn read_rate(folder: &Folder) -> Result<String, Cause> {
    match folder.read("rate") {
        Err(Cause::Os(libc::EINVAL | libc::ENOENT)) => Ok(String::new()),
        Ok(text) if !text.is_empty() && !is_rate(&text) => {
            Err(folder.malformed("rate", "a port's rate"))
        }
        read => read,
    }
}

impl Sysfs {
    /// The speed of a port with these attributes, if it is NDR or more and the kernel knows it.
    pub(crate) fn speed_beyond_hdr(
        &self,
        device: &str,
        port: u32,
        known: &PortAttributes,
    ) -> Result<Option<Speed>> {
        let request = || Request::Port { port };
        let folder =
            self.port(device, port).map_err(|cause| Error::new(device, request(), cause))?;
        let text = read_rate(&folder)
            .map_err(folder.unread("rate"))
            .map_err(|unread| of_file(device, request(), unread))?;
        let (width, speed) = parse_rate(&text, known.link_layer);
        // With another width it is of another moment.
        Ok(speed.filter(|own| own.0 >= Speed::NDR.0 && width == known.active_width))
    }
}

/// Whether a text is as the kernel writes a rate: `2.5 Gb/sec (1X SDR)`.
fn is_rate(text: &str) -> bool {
    let Some((number, rest)) = text.split_once(" Gb/sec (") else { return false };
    let (whole, tenth) = number.split_once('.').unwrap_or((number, "0"));
    whole.parse::<u16>().is_ok() && tenth.parse::<u8>().is_ok() && rest.ends_with(')')
}

fn read_port(folder: &Folder) -> Result<PortAttributes, Unread> {
    const RANGE: &str = "a number beyond its range";
    let beyond = |name: &str| folder.unread(name)(folder.malformed(name, RANGE));
    let number = |name| folder.read_number(name).map_err(folder.unread(name));
    let byte = |name| u8::try_from(number(name)?).map_err(|_| beyond(name));
    let long = |name| u32::try_from(number(name)?).map_err(|_| beyond(name));
    let count = |slots: Vec<u32>, name| u32::try_from(slots.len()).map_err(|_| beyond(name));
    let rate = read_rate(folder).map_err(folder.unread("rate"))?;
    let link_layer = LinkLayer::of_sysfs(folder).map_err(folder.unread("link_layer"))?;
    let (active_width, active_speed) = parse_rate(&rate, link_layer);
    Ok(PortAttributes {
        state: PortState(byte("state")?),
        phys_state: PhysState(byte("phys_state")?),
        link_layer,
        lid: long("lid")?,
        sm_lid: long("sm_lid")?,
        sm_sl: byte("sm_sl")?,
        lmc: byte("lid_mask_count")?,
        gid_tbl_len: count(gid_slots(folder)?, "gids")?,
        pkey_tbl_len: count(pkey_slots(folder)?, "pkeys")?,
        active_width,
        active_speed,
        port_cap_flags: long("cap_mask")?,
        ..PortAttributes::default()
    })
}

/// What `read` finds in a port's tables of GIDs and P_Keys. The kernel makes the files of a port one after the other, and
/// removes them one after the other. The tables are whole while what it makes after them, and removes before them, is there.
pub(super) fn while_whole<T>(
    port: &Folder,
    read: impl FnOnce() -> Result<T, Unread>,
) -> Result<T, Unread> {
    whole(port)?;
    let found = read()?;
    whole(port)?;
    Ok(found)
}

/// Makes sure that a port of the kernel's own sysfs has its types, or before Linux 5.14 its P_Keys, if it may not be
/// without.
pub(crate) fn whole(port: &Folder) -> Result<(), Unread> {
    let is_old = release().is_some_and(|own| own < (5, 14));
    let last = if is_old { "pkeys" } else { "gid_attrs" };
    let is_part = port.join(last).is_missing() && !port.is_missing() && port.is_of_kernel();
    if is_part && !(is_old && may_have_none(port)?) {
        return Err(port.unread(last)(port.malformed(last, "a port that comes or goes")));
    }
    Ok(())
}

/// Width and speed of a sysfs `rate`: `100 Gb/sec (4X EDR)`. On another link layer than Ethernet, sysfs says SDR of
/// a width without a speed.
fn parse_rate(text: &str, link_layer: LinkLayer) -> (Option<Width>, Option<Speed>) {
    let lanes = words_of_rate(text).next().and_then(|word| word.strip_suffix('X')?.parse().ok());
    let width = lanes.and_then(Width::from_lanes);
    match name_of_speed(text, link_layer).map(Speed::from_name) {
        Some(None) if link_layer != LinkLayer::ETHERNET => (None, None),
        speed => (width, width.and(speed.flatten())),
    }
}

/// The speed that a sysfs `rate` names. For each code that the kernel does not know it says SDR (old kernels say
/// nothing), as Linux 6.1 does for XDR. The codes of InfiniBand come from the firmware; drivers of Ethernet choose
/// among those that the kernel knows, so that SDR is meant.
pub(crate) fn name_of_speed(rate: &str, link_layer: LinkLayer) -> Option<&str> {
    let name = words_of_rate(rate).nth(1).unwrap_or("SDR");
    (name != "SDR" || link_layer == LinkLayer::ETHERNET).then_some(name)
}

/// The words in the brackets of a sysfs `rate`.
fn words_of_rate(text: &str) -> impl Iterator<Item = &str> {
    let inside = text.split_once('(').and_then(|(_, rest)| rest.split_once(')'));
    inside.map_or("", |(inside, _)| inside).split_whitespace()
}

impl LinkLayer {
    /// Reads a port folder's `link_layer`.
    pub(crate) fn of_sysfs(port_folder: &Folder) -> Result<Self, Cause> {
        Ok(match port_folder.read("link_layer")?.as_str() {
            "InfiniBand" => Self::INFINIBAND,
            "Ethernet" => Self::ETHERNET,
            "Unknown" => Self::UNSPECIFIED,
            _ => return Err(port_folder.malformed("link_layer", "a link layer")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::Rate;

    #[test]
    fn rates_of_sysfs() {
        let of = |link_layer, text| {
            let (active_width, active_speed) = parse_rate(text, link_layer);
            PortAttributes { active_width, active_speed, ..Default::default() }.rate()
        };
        let parsed = |text| of(LinkLayer::ETHERNET, text);
        assert_eq!(parsed("100 Gb/sec (4X EDR)"), Some(Rate(1000)));
        assert_eq!(parsed("2.5 Gb/sec (1X SDR)"), Some(Rate(25)));
        assert_eq!(parsed("2.5 Gb/sec (1X)"), Some(Rate(25)));
        assert_eq!(parsed("800 Gb/sec (4X XDR)"), Some(Rate(8000)));
        for odd in ["", "(", ")", "100 Gb/sec", "(3X EDR)", "(4X NEW)", "(X SDR)"] {
            assert_eq!(parsed(odd), None, "{odd:?}");
        }
        // Linux 6.1 says this of XDR.
        for link_layer in [LinkLayer::INFINIBAND, LinkLayer::UNSPECIFIED] {
            assert_eq!(of(link_layer, "10 Gb/sec (4X SDR)"), None);
            assert_eq!(of(link_layer, "10 Gb/sec (4X)"), None);
            assert_eq!(of(link_layer, "20 Gb/sec (4X DDR)"), Some(Rate(200)));
        }
        let sdr = parse_rate("10 Gb/sec (4X SDR)", LinkLayer::INFINIBAND);
        assert_eq!(sdr, (Width::from_lanes(4), None));
        assert_eq!(parse_rate("10 Gb/sec (4X NEW)", LinkLayer::INFINIBAND), (None, None));
        assert_eq!(parse_rate("10 Gb/sec (4X NEW)", LinkLayer::ETHERNET), sdr);
    }

    #[cfg(not(miri))]
    #[test]
    fn a_speed_beyond_hdr_is_of_the_port_as_it_is_known() {
        let root = tempfile::tempdir().unwrap();
        let port = root.path().join("class/infiniband/x/ports/1");
        std::fs::create_dir_all(&port).unwrap();
        let known = PortAttributes {
            link_layer: LinkLayer::INFINIBAND,
            active_width: Width::from_lanes(4),
            ..PortAttributes::default()
        };
        let speed = || Sysfs::at(root.path()).speed_beyond_hdr("x", 1, &known);
        assert_eq!(speed().unwrap(), None);
        for (text, expected) in [
            ("400 Gb/sec (4X NDR)", Some(Speed::NDR)),
            ("200 Gb/sec (4X HDR)", None),
            ("10 Gb/sec (4X SDR)", None),
            // Of another moment.
            ("200 Gb/sec (2X NDR)", None),
            ("", None),
        ] {
            std::fs::write(port.join("rate"), text).unwrap();
            assert_eq!(speed().unwrap(), expected, "{text}");
        }
        std::fs::write(port.join("rate"), "odd").unwrap();
        let error = speed().unwrap_err();
        assert!(error.errno() == libc::EPROTO && error.to_string().contains("rate"), "{error}");
    }

    /// By those that are left, the table would be shorter than it is.
    #[cfg(not(miri))]
    #[test]
    fn a_table_with_a_gap_is_no_table() {
        let root = tempfile::tempdir().unwrap();
        let device = root.path().join("class/infiniband/x");
        let port = device.join("ports/1");
        for folder in ["gids", "pkeys"] {
            std::fs::create_dir_all(port.join(folder)).unwrap();
        }
        for (file, text) in [
            ("../../node_type", "1: CA"),
            ("state", "4: ACTIVE"),
            ("phys_state", "5: LinkUp"),
            ("link_layer", "InfiniBand"),
            ("lid", "0x1"),
            ("sm_lid", "0x1"),
            ("sm_sl", "0"),
            ("lid_mask_count", "0"),
            ("cap_mask", "0x0"),
        ] {
            std::fs::write(port.join(file), text).unwrap();
        }
        let empty = "0000:0000:0000:0000:0000:0000:0000:0000";
        for slot in 0..4 {
            std::fs::write(port.join(format!("gids/{slot}")), empty).unwrap();
            std::fs::write(port.join(format!("pkeys/{slot}")), "0xffff").unwrap();
        }
        let sysfs = Sysfs::at(root.path());
        let attributes = sysfs.query_port("x", 1).unwrap();
        assert_eq!((attributes.gid_tbl_len, attributes.pkey_tbl_len), (4, 4));
        assert_eq!(sysfs.gid_slots("x").unwrap().1.len(), 4);

        // The kernel makes the folder of GIDs of each port, but that of P_Keys only where there are some. Old kernels
        // make an empty one.
        std::fs::rename(port.join("pkeys"), port.join("away")).unwrap();
        for errno in [libc::ENOENT, libc::EPROTO] {
            for (node_type, link_layer) in [
                ("1: CA", "InfiniBand"),
                ("1: CA", "Ethernet"),
                ("2: switch", "InfiniBand"),
                ("7: unspecified", "Unknown"),
            ] {
                std::fs::write(device.join("node_type"), node_type).unwrap();
                std::fs::write(port.join("link_layer"), link_layer).unwrap();
                assert_eq!(sysfs.query_port("x", 1).unwrap_err().errno(), errno);
                assert_eq!(sysfs.query_pkeys("x", 1).unwrap_err().errno(), errno);
                assert_eq!(sysfs.query_pkey("x", 1, 0).unwrap_err().errno(), libc::ENOENT);
            }
            for node_type in ["4: RNIC", "5: usNIC", "6: usNIC UDP"] {
                std::fs::write(device.join("node_type"), node_type).unwrap();
                std::fs::write(port.join("link_layer"), "Ethernet").unwrap();
                assert_eq!(sysfs.query_port("x", 1).unwrap().pkey_tbl_len, 0);
                assert_eq!(sysfs.query_pkeys("x", 1).unwrap(), []);
                assert_eq!(sysfs.query_pkey("x", 1, 0).unwrap_err().errno(), libc::EINVAL);
            }
            let _ = std::fs::create_dir(port.join("pkeys"));
        }
        // It is another file that does not say whether the port has some.
        std::fs::write(device.join("node_type"), "4: RNIC").unwrap();
        std::fs::rename(device.join("node_type"), device.join("aside")).unwrap();
        for error in [
            sysfs.query_port("x", 1).map(drop).unwrap_err(),
            sysfs.query_pkeys("x", 1).map(drop).unwrap_err(),
            sysfs.query_pkey("x", 1, 0).map(drop).unwrap_err(),
        ] {
            assert!(error.to_string().contains("node_type: ENOENT"), "{error}");
        }
        std::fs::rename(device.join("aside"), device.join("node_type")).unwrap();
        std::fs::remove_dir(port.join("pkeys")).unwrap();
        std::fs::rename(port.join("away"), port.join("pkeys")).unwrap();
        assert_eq!(sysfs.query_pkey("x", 1, 4).unwrap_err().errno(), libc::EINVAL);
        std::fs::rename(port.join("gids"), port.join("away")).unwrap();
        assert_eq!(sysfs.query_port("x", 1).unwrap_err().errno(), libc::ENOENT);
        assert_eq!(sysfs.query_gid_table("x").unwrap_err().errno(), libc::ENOENT);
        assert_eq!(sysfs.query_gid_ex("x", 1, 0).unwrap_err().errno(), libc::ENOENT);
        std::fs::rename(port.join("away"), port.join("gids")).unwrap();

        std::fs::remove_file(port.join("pkeys/1")).unwrap();
        assert_eq!(sysfs.query_pkeys("x", 1).unwrap_err().errno(), libc::EPROTO);
        assert_eq!(sysfs.query_port("x", 1).unwrap_err().errno(), libc::EPROTO);
        std::fs::write(port.join("pkeys/1"), "0xffff").unwrap();
        std::fs::remove_file(port.join("gids/2")).unwrap();
        assert_eq!(sysfs.query_gid_table("x").unwrap_err().errno(), libc::EPROTO);
        assert_eq!(sysfs.query_port("x", 1).unwrap_err().errno(), libc::EPROTO);
    }
}
