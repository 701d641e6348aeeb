//! `GET_CONTEXT` for every driver: each driver's rules (facts of kernels 6.1 to 7.3), and the error after a
//! refusal.

use nix::libc;
use rustix::io::Errno;
use uverbs::context::Context;
use uverbs::driver::DriverId;
use uverbs::error::Cause;
use uverbs::mlx5::devx::DevxContext;
use uverbs::simulated::{SimulatedKernel, UserMemory};
use uverbs::uapi::driver::driver_id;

use crate::kernel::attributes;

/// A driver's rule: what it says to a request and to the room for its answer.
type Rule = fn(&[u8], usize) -> Result<(), Errno>;

#[derive(Debug)]
struct Driver(u32, Rule);

impl SimulatedKernel for Driver {
    fn ioctl(&self, request: &mut [u8], memory: &UserMemory<'_>) -> Result<(), Errno> {
        assert_eq!(request[16..20], self.0.to_ne_bytes(), "driver id");
        let (_, list) = attributes(request);
        let input = list.iter().find(|attribute| attribute.id == 0x1000).unwrap();
        let bytes = if input.len > 8 {
            memory.read(input.data, input.len)?
        } else {
            input.data.to_ne_bytes()[..input.len].to_vec()
        };
        let output = list.iter().find(|attribute| attribute.id == 0x1001).unwrap();
        memory.write(output.data, &vec![0xee; output.len])?;
        (self.1)(&bytes, output.len)
    }
}

fn refuse_unless(condition: bool, errno: Errno) -> Result<(), Errno> {
    if condition { Ok(()) } else { Err(errno) }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// The rules, the strictest of all releases for each driver.
const RULES: &[(u32, Rule)] = &[
    (driver_id::MLX5, |request, _| {
        // All 32 bytes, as 7.x reads its own stack for what is not sent.
        refuse_unless(request.len() == 32, Errno::INVAL)?;
        refuse_unless(word(request, 0) > word(request, 4), Errno::INVAL)?;
        refuse_unless(word(request, 8) == 0 && word(request, 12) == 0, Errno::OPNOTSUPP)?;
        refuse_unless(request[16..24] == [0; 8], Errno::OPNOTSUPP)?;
        refuse_unless(long(request, 24) == 2, Errno::NOMEM)
    }),
    (driver_id::MLX4, |_, room| refuse_unless(room >= 16, Errno::FAULT)),
    (driver_id::CXGB4, |_, room| refuse_unless(room >= 12, Errno::FAULT)),
    (driver_id::MTHCA, |_, room| refuse_unless(room >= 8, Errno::FAULT)),
    (driver_id::BNXT_RE, |request, _| {
        refuse_unless(request.len() >= 8 && request.iter().all(|b| *b == 0), Errno::OPNOTSUPP)
    }),
    (driver_id::OCRDMA, |_, room| refuse_unless(room >= 80, Errno::FAULT)),
    (driver_id::IRDMA, |request, room| {
        refuse_unless(matches!(request[4], 4 | 5), Errno::INVAL)?;
        refuse_unless(request[8..16] == 8u64.to_ne_bytes(), Errno::OPNOTSUPP)?;
        refuse_unless(room > 16, Errno::OPNOTSUPP)
    }),
    (driver_id::VMW_PVRDMA, |_, room| refuse_unless(room >= 8, Errno::FAULT)),
    (driver_id::QEDR, |request, _| {
        refuse_unless(request.len() >= 8 && request.iter().all(|b| *b == 0), Errno::INVAL)
    }),
    (driver_id::HNS, |request, _| {
        refuse_unless(request.len() >= 8 && request.iter().all(|b| *b == 0), Errno::INVAL)
    }),
    (driver_id::USNIC, |_, _| Ok(())),
    (driver_id::RXE, |_, _| Ok(())),
    (driver_id::HFI1, |_, _| Ok(())),
    (driver_id::QIB, |_, _| Ok(())),
    (driver_id::EFA, |request, _| refuse_unless(word(request, 0) == 3, Errno::OPNOTSUPP)),
    (driver_id::SIW, |_, room| refuse_unless(room >= 8, Errno::INVAL)),
    (driver_id::ERDMA, |_, room| refuse_unless(room >= 40, Errno::INVAL)),
    (driver_id::MANA, |request, _| {
        refuse_unless(request.iter().all(|b| *b == 0), Errno::OPNOTSUPP)
    }),
    (driver_id::IONIC, |request, _| {
        refuse_unless(request.len() >= 8 && request.iter().all(|b| *b == 0), Errno::INVAL)
    }),
    // A driver of a newer kernel.
    (40, |request, room| refuse_unless(request.len() == 16 && room == 256, Errno::INVAL)),
];

#[test]
fn every_driver_gets_what_it_wants() {
    for &(id, rule) in RULES {
        let driver = Box::new(Driver(id, rule));
        let context = Context::simulated("sim0", 1..=1, DriverId(id), driver);
        assert!(context.is_ok(), "{}: {:?}", DriverId(id), context.err());
        assert_eq!(DriverId(id).name().is_some(), id < 40, "driver {id}");
    }
    // These have left the kernel, and nothing is known of what they read.
    let gone = [driver_id::CXGB3, driver_id::NES];
    for id in (1..40).filter(|id| DriverId(*id).name().is_some() && !gone.contains(id)) {
        assert!(RULES.iter().any(|(own, _)| *own == id), "{} has no rule", DriverId(id));
    }
}

#[test]
fn devx_is_one_bit_more_than_mlx5_wants_otherwise() {
    let rule: Rule = |request, _| {
        refuse_unless(request.len() == 32 && long(request, 24) == 2, Errno::NOMEM)?;
        refuse_unless(word(request, 8) == 1, Errno::INVAL)
    };
    let context =
        |rule| DevxContext::simulated("sim0", 1..=1, Box::new(Driver(driver_id::MLX5, rule)));
    assert!(context(rule).unwrap().has_devx());
    let refusals: [(Rule, &str); 2] = [
        (|_, _| Err(Errno::INVAL), "may have no user contexts, or it refused"),
        (|_, _| Err(Errno::AGAIN), "or its firmware failed"),
    ];
    for (rule, advice) in refusals {
        let error = context(rule).unwrap_err();
        assert!(error.to_string().contains(advice), "{error}");
    }
}

#[test]
fn every_refusal_is_a_cause_of_its_own() {
    for (errno, cause, advice) in [
        (Errno::NOTTY, Cause::NoIoctl, "Linux 5.10"),
        (Errno::PROTONOSUPPORT, Cause::UnknownToKernel, "newer kernel"),
        (Errno::IO, Cause::DeviceGone(libc::EIO), "list the devices again"),
        (Errno::AGAIN, Cause::Refused, "or its firmware failed"),
        (Errno::OPNOTSUPP, Cause::NotOffered, "does not offer"),
        (Errno::INVAL, Cause::Os(libc::EINVAL), "read sysfs if that has the answer"),
        (Errno::NOMEM, Cause::Os(libc::ENOMEM), "errno 12"),
    ] {
        #[derive(Debug)]
        struct Refuses(Errno);
        impl SimulatedKernel for Refuses {
            fn ioctl(&self, _: &mut [u8], _: &UserMemory<'_>) -> Result<(), Errno> {
                Err(self.0)
            }
        }
        let kernel = Box::new(Refuses(errno));
        let error = Context::simulated("sim0", 1..=1, DriverId::RXE, kernel).unwrap_err();
        assert_eq!((error.cause(), error.errno()), (&cause, errno.raw_os_error()));
        assert_eq!(error.subject(), "sim0");
        assert!(error.to_string().contains(advice), "{error}");
    }
}
