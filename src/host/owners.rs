//! Whose the objects of a device are.

use std::collections::BTreeMap;

use nix::libc;
use rustix::io::Errno;

use super::Host;
use super::list::means_no_netlink;
use crate::counter::{OwnedResources, Owner};
use crate::device::Device;
use crate::error::{Cause, Error, Request, Result};
use crate::kernel::lists_all_objects;
use crate::netlink::statistics::{OWNED_KINDS, is_of};

impl Host {
    /// Who has contexts (`ctx`), protection domains (`pd`), completion queues (`cq`), memory regions (`mr`), shared
    /// receive queues (`srq`) and identifiers of the connection manager (`cm_id`) of a device, by owner. It takes
    /// a dump of RDMA netlink for each kind.
    ///
    /// Queue pairs are left out, as the kernel asks the driver for each of them, and mlx5 asks its firmware.
    /// Contexts and shared receive queues are left out if the kernel does not list them: 6.1 does, 5.10 does not.
    /// A process in a PID namespace that the reader does not see is no owner with a number: its objects have
    /// [`owner`](OwnedResources::owner) `None`.
    ///
    /// ```no_run
    /// let mut host = uverbs::Host::new();
    /// let device = host.device("mlx5_0")?;
    /// for own in host.resource_owners(&device)? {
    ///     println!("{:?} has {} of {}", own.owner, own.count, own.kind);
    /// }
    /// # Ok::<(), uverbs::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// - That of [`netlink_error`](Self::netlink_error): netlink cannot be used.
    /// - `EOPNOTSUPP`: netlink was not refused, and did not list the device; or, before Linux 5.5, the reader is in a
    ///   PID namespace that is not the initial one, and the kernel lists only its objects.
    /// - `ENODEV`: the device is gone, or another device has taken its index.
    #[doc(alias = "RDMA_NLDEV_CMD_RES_CTX_GET")]
    pub fn resource_owners(&mut self, device: &Device) -> Result<Vec<OwnedResources>> {
        let failed = |cause| Error::new(&*device.name, Request::Owners, cause);
        let unlisted = failed(Cause::Os(libc::EOPNOTSUPP));
        let Some(index) = device.index else {
            let refusal = self.netlink_error().filter(|own| !means_no_netlink(own.errno()));
            return Err(refusal.unwrap_or(unlisted));
        };
        if !lists_all_objects() {
            return Err(unlisted);
        }
        let Some(socket) = self.socket()? else { return Err(unlisted) };
        let mut found: Vec<OwnedResources> = Vec::new();
        for kind in OWNED_KINDS {
            let listed = socket.dump(&kind.request(index), |message| {
                is_of(message, &device.name)?;
                kind.parse(message)
            });
            let messages = match listed {
                Ok(messages) => messages,
                Err(cause) if cause.as_errno() == Errno::INVAL && kind.is_new => continue,
                Err(cause) if cause.as_errno() == Errno::INVAL => {
                    return Err(failed(Cause::NoSuchDevice));
                }
                Err(cause) => return Err(failed(cause)),
            };
            let mut owners: BTreeMap<Option<Owner>, u64> = BTreeMap::new();
            for (owner, count) in messages.into_iter().flatten() {
                *owners.entry(owner).or_default() += count;
            }
            let kind = kind.name;
            found.extend(owners.into_iter().map(|(owner, count)| OwnedResources {
                owner,
                kind: kind.to_owned(),
                count,
            }));
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Netlink;
    use crate::netlink::statistics::tests::owned;
    use crate::netlink::{Datagram, Socket};

    fn device() -> Device {
        let mut device = Device::named("x");
        device.index = Some(7);
        device
    }

    /// What comes of these answers, one for each kind.
    fn asked(device: &Device, answers: Vec<Vec<Datagram<Vec<u8>>>>) -> Result<Vec<OwnedResources>> {
        let netlink = Netlink::Open(Socket::given(answers));
        Host { netlink, ..Host::rooted("/nowhere", "/nowhere") }.resource_owners(device)
    }

    fn empty(sequence: u32) -> Vec<Datagram<Vec<u8>>> {
        vec![Datagram::end(sequence)]
    }

    #[test]
    fn objects_are_added_up_by_owner() {
        let [_, pd, ..] = OWNED_KINDS;
        let found = asked(
            &device(),
            vec![
                // This release does not know contexts.
                vec![Datagram::refusal(Errno::INVAL, 1)],
                vec![
                    Datagram::reply(&owned(pd, &[12, 9, 12], &["ib_core"]), 2),
                    Datagram::reply(&owned(pd, &[9, 0], &[]), 2),
                    Datagram::end(2),
                ],
                empty(3),
                empty(4),
                vec![Datagram::refusal(Errno::INVAL, 5)],
                empty(6),
            ],
        );
        let own = |owner, count| OwnedResources { owner, kind: "pd".to_owned(), count };
        let expected = [
            own(None, 1),
            own(Some(Owner::Process(9)), 2),
            own(Some(Owner::Process(12)), 2),
            own(Some(Owner::Kernel("ib_core".to_owned())), 1),
        ];
        assert_eq!(found.unwrap(), expected);
    }

    #[test]
    fn another_device_is_not_taken_for_it() {
        let [ctx, ..] = OWNED_KINDS;
        let other = Device { name: "y".to_owned(), ..device() };
        let replaced = asked(&other, vec![vec![Datagram::reply(&owned(ctx, &[1], &[]), 1)]]);
        assert_eq!(replaced.unwrap_err().cause(), &Cause::Replaced);
        let gone = asked(
            &device(),
            vec![
                vec![Datagram::refusal(Errno::INVAL, 1)],
                vec![Datagram::refusal(Errno::INVAL, 2)],
            ],
        );
        assert_eq!(gone.unwrap_err().errno(), libc::ENODEV);
        let unlisted = asked(&Device::named("x"), Vec::new());
        assert_eq!(unlisted.unwrap_err().errno(), libc::EOPNOTSUPP);
        // Where netlink was refused, sysfs listed the device.
        let mut host =
            Host::with_netlink(Socket::given(vec![vec![Datagram::refusal(Errno::PERM, 1)]]));
        let _ = host.list();
        let refused = host.resource_owners(&Device::named("x")).unwrap_err();
        assert_eq!((refused.errno(), refused.device()), (libc::EPERM, None));
    }
}
