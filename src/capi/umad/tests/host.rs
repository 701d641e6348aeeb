//! The functions as C calls them, on this host: `errno`, names, the level of debugging.

use super::*;

#[test]
fn errno_is_restored() {
    nix::errno::Errno::set_raw(77);
    let answer = guarded(1, || {
        set_errno(Errno::NOENT);
        2
    });
    assert_eq!((answer, nix::errno::Errno::last_raw()), (2, 77));
    let answer = guarded(1, || {
        set_errno(Errno::NOENT);
        std::panic::resume_unwind(Box::new(()))
    });
    assert_eq!((answer, nix::errno::Errno::last_raw()), (1, 77));
}

#[test]
fn errno_of_a_failure_stays() {
    let answer = |value| {
        nix::errno::Errno::set_raw(77);
        let answer = reasoned(-5, || {
            set_errno(Errno::NOENT);
            value
        });
        (answer, nix::errno::Errno::last_raw())
    };
    assert_eq!(answer(0), (0, 77));
    assert_eq!(answer(2), (2, 77));
    assert_eq!(answer(-1), (-1, Errno::NOENT.raw_os_error()));
}

#[test]
fn errno_tells_why_there_is_no_ca() {
    let reason = |status: c_int| {
        let errno = Errno::from_raw_os_error(nix::errno::Errno::last_raw());
        nix::errno::Errno::set_raw(77);
        (status, errno)
    };
    let mut ca: UmadCa = garbage();
    let mut port: UmadPort = garbage();
    nix::errno::Errno::set_raw(77);
    // SAFETY: all there.
    let status = unsafe { umad_get_ca(c"no such ca".as_ptr(), &raw mut ca) };
    assert_eq!((reason(status), zeroed_ca(&ca)), ((minus(Errno::NOENT), Errno::NOENT), true));
    // SAFETY: all there.
    let status = unsafe { umad_get_port(c"no such ca".as_ptr(), 1, &raw mut port) };
    assert_eq!((reason(status), zeroed_port(&port)), ((minus(Errno::IO), Errno::NOENT), true));
    // SAFETY: NULL is allowed.
    let status = unsafe { umad_get_ca_portguids(c"\xff".as_ptr(), null_mut(), 0) };
    assert_eq!(reason(status), (-1, Errno::NOENT));
    let head = umad_get_ca_device_list();
    assert_eq!(nix::errno::Errno::last_raw(), 0);
    free(head);
}

/// As a program does that reads again what it has.
#[test]
fn the_name_may_stand_in_the_structure() {
    let mut ca = UmadCa::NONE;
    ca.ca_name[..4].copy_from_slice(b"none");
    let name = ca.ca_name.as_ptr().cast();
    // SAFETY: a text that ends with a NUL.
    let name = unsafe { text(name) };
    let tree = Tree::new();
    tree.device("none", CA);
    // SAFETY: room for a CA.
    assert_eq!(unsafe { get_ca(&tree.sysfs(), name.as_deref(), &raw mut ca) }, 0);
    assert_eq!(text_of(&ca.ca_name), "none");
    // SAFETY: a text that is not UTF-8 is one.
    assert_eq!(unsafe { text(c"\xff".as_ptr()) }, Some(String::new()));
    // SAFETY: NULL is allowed.
    assert_eq!(unsafe { text(null()) }, None);
}

#[test]
fn the_level_of_debugging() {
    assert_eq!(umad_debug(-1), 0);
    assert_eq!((umad_debug(2), umad_debug(-1), umad_debug(c_int::MIN)), (2, 2, 2));
    assert_eq!((umad_debug(0), umad_debug(-1)), (0, 0));
    assert_eq!((umad_init(), umad_done()), (0, 0));
}
