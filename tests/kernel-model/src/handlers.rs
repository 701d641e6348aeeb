//! What the methods do, in the kernel's order.

use uverbs_uapi::device::{
    self, get_context, info_handles, invoke_write, query_context, query_gid_entry, query_gid_table,
    query_port, query_port_speed, write_command,
};
use uverbs_uapi::{ioctl, mlx5};

use crate::errno::{EINVAL, ENODATA, ENOENT, ENOMSG, ENOSPC, EOPNOTSUPP, Errno};
use crate::spec::Handler;
use crate::{Port, Request, Stop, long, unless_absent, word};

pub(crate) fn handle(handler: Handler, request: &mut Request<'_>) -> Result<(), Stop> {
    match handler {
        Handler::InvokeWrite => invoke_write(request),
        Handler::InfoHandles => Ok(info_handles(request)?),
        Handler::QueryPort => Ok(query_port(request)?),
        Handler::GetContext => get_context(request),
        Handler::QueryContext => query_context(request),
        Handler::QueryGidTable => Ok(query_gid_table(request)?),
        Handler::QueryGidEntry => Ok(query_gid_entry(request)?),
        Handler::QueryPortSpeed => Ok(query_port_speed(request)?),
        Handler::QueryCompCntrCaps => Ok(no_comp_cntr_caps(request)?),
        Handler::AsyncEventAlloc => Ok(()),
        Handler::Mlx5QueryPort => Ok(mlx5_query_port(request)?),
        Handler::Devx => devx(request),
    }
}

impl Request<'_> {
    fn port(&self, number: u64) -> Result<&Port, Errno> {
        let place = number.checked_sub(self.device.first_port.into());
        let place = place.and_then(|place| usize::try_from(place).ok());
        place.and_then(|place| self.device.ports.get(place)).ok_or(EINVAL)
    }
}

fn query_port(request: &mut Request<'_>) -> Result<(), Errno> {
    request.context()?;
    let number = request.constant(query_port::PORT_NUM, u8::MAX.into())?;
    let answer = request.port(number)?.attributes.clone();
    request.copy_or_zero(query_port::RESP, &answer)
}

fn query_gid_entry(request: &mut Request<'_>) -> Result<(), Errno> {
    request.no_flags(query_gid_entry::FLAGS)?;
    let number = request.constant(query_gid_entry::PORT, u32::MAX.into())?;
    let index = request.constant(query_gid_entry::GID_INDEX, u32::MAX.into())?;
    request.context()?;
    let table = &request.port(number)?.gids;
    let slot = usize::try_from(index).ok().and_then(|index| table.get(index)).ok_or(EINVAL)?;
    let entry = slot.ok_or(ENODATA)?;
    request.copy_or_zero(query_gid_entry::RESP_ENTRY, &entry)
}

fn query_gid_table(request: &mut Request<'_>) -> Result<(), Errno> {
    const ENTRY: usize = size_of::<device::GidEntry>();
    request.no_flags(query_gid_table::FLAGS)?;
    let entry_size = request.constant(query_gid_table::ENTRY_SIZE, u64::MAX)?;
    let Some(given) = request.get(query_gid_table::RESP_ENTRIES) else { return Err(ENOENT) };
    let length = u64::from(given.len);
    if entry_size == 0 || length % entry_size != 0 || length / entry_size == 0 {
        return Err(EINVAL);
    }
    request.context()?;
    let valid = request.device.ports.iter().flat_map(|port| port.gids.iter().flatten());
    let entries: Vec<[u8; ENTRY]> = valid.copied().collect();
    if entries.len() as u64 > length / entry_size {
        return Err(EINVAL);
    }
    if entry_size == ENTRY as u64 {
        request.copy_to(query_gid_table::RESP_ENTRIES, entries.as_flattened())?;
    } else {
        let size = usize::try_from(entry_size).map_err(|_| EINVAL)?;
        let mut target = given.data;
        for entry in &entries {
            request.memory.write(target, entry.get(..size.min(ENTRY)).unwrap_or_default())?;
            let behind = target.wrapping_add(ENTRY as u64);
            request.memory.write(behind, &vec![0; size.saturating_sub(ENTRY)])?;
            target = target.wrapping_add(entry_size);
        }
        request.mark_written(given)?;
    }
    let count = (entries.len() as u64).to_ne_bytes();
    request.copy_to(query_gid_table::RESP_NUM_ENTRIES, &count)
}

fn query_port_speed(request: &mut Request<'_>) -> Result<(), Errno> {
    request.context()?;
    if request.device.ports.iter().all(|port| port.speed.is_none()) {
        return Err(EOPNOTSUPP);
    }
    let number = request.constant(query_port_speed::PORT_NUM, u32::MAX.into())?;
    let speed = request.port(number)?.speed.unwrap_or(Err(EOPNOTSUPP))?;
    request.copy_to(query_port_speed::RESP, &speed.to_ne_bytes())
}

fn no_comp_cntr_caps(request: &mut Request<'_>) -> Result<(), Errno> {
    request.context()?;
    Err(EOPNOTSUPP)
}

fn mlx5_query_port(request: &mut Request<'_>) -> Result<(), Errno> {
    let Some(given) = request.get(mlx5::query_port::PORT_NUM) else { return Err(ENOENT) };
    let number = word(&given.data.to_ne_bytes(), 0);
    request.context()?;
    let answer = request.port(number.into())?.mlx5.clone()?;
    request.copy_or_zero(mlx5::query_port::RESP, &answer)
}

fn info_handles(request: &mut Request<'_>) -> Result<(), Errno> {
    /// The number that means any object.
    const ANY_OBJECT: u64 = 0xffff;
    let list = request.get(info_handles::HANDLES_LIST);
    if !list.is_some_and(|list| list.len > 0 && list.len % 4 == 0) {
        return Err(EINVAL);
    }
    match request.constant(info_handles::OBJECT_ID, u16::MAX.into())? {
        ANY_OBJECT => return Err(ENOMSG),
        known if is_object(request, known) => {}
        _ => return Err(ENOENT),
    }
    // The files of these tests have no objects.
    request.copy_to(info_handles::HANDLES_LIST, &[])?;
    request.copy_to(info_handles::TOTAL_HANDLES, &[0; 4])
}

fn is_object(request: &Request<'_>, object: u64) -> bool {
    let newest = if request.device.release >= (7, 0) { 19 } else { 16 };
    let is_mlx5_s = object == u64::from(mlx5::object::DEVX)
        && request.device.mlx5.as_ref().is_some_and(|mlx5| mlx5.has_devx);
    object <= newest || is_mlx5_s
}

fn get_context(request: &mut Request<'_>) -> Result<(), Stop> {
    let vectors = request.device.num_comp_vectors.to_ne_bytes();
    unless_absent(request.copy_to(get_context::NUM_COMP_VECTORS, &vectors))?;
    let support = request.device.core_support.to_ne_bytes();
    unless_absent(request.copy_to(get_context::CORE_SUPPORT, &support))?;
    if request.file.has_context {
        return Err(EINVAL.into());
    }
    if request.get(get_context::FD_ARR).is_some_and(|_| request.device.release >= (6, 15)) {
        return Err(Stop::NotModelled("capabilities by file descriptors"));
    }
    if request.device.mlx5.is_some() {
        mlx5_context(request)?;
    }
    request.file.has_context = true;
    Ok(())
}

/// What mlx5 makes of its part of `GET_CONTEXT`.
fn mlx5_context(request: &mut Request<'_>) -> Result<(), Stop> {
    /// Flag: with a user context of the firmware's.
    const DEVX: u32 = 1;
    /// Capability of the program: no doorbell pages.
    const DYNAMIC_UAR: u64 = 2;
    let Some(given) = request.get(ioctl::ATTR_UHW_IN) else { return Err(EINVAL.into()) };
    let length = usize::from(given.len);
    if length != 8 && length < 16 {
        return Err(EINVAL.into());
    }
    if length != 8 && length < 32 {
        return Err(Stop::NotModelled("half a structure, of which newer kernels guess the rest"));
    }
    // Longer ones are not read to their end.
    let input =
        if length > 8 { request.memory.read(given.data, 32)? } else { request.input(&given)? };
    let mut asked = input;
    asked.resize(32, 0);
    let (total, low_latency) = (word(&asked, 0), word(&asked, 4));
    let (flags, comp_mask) = (word(&asked, 8), word(&asked, 12));
    if flags & !DEVX != 0 || comp_mask != 0 || long(&asked, 16) & !0xff != 0 {
        return Err(EOPNOTSUPP.into());
    }
    // In whole pages of four, of which two are for this.
    let total = total.wrapping_add(1) & !1;
    if low_latency > total.wrapping_sub(1) {
        return Err(EINVAL.into());
    }
    if flags & DEVX != 0 {
        return Err(Stop::NotModelled("user contexts of the firmware"));
    }
    if long(&asked, 24) & DYNAMIC_UAR == 0 {
        return Err(Stop::NotModelled("doorbell pages"));
    }
    // Newer releases write zeros after their structure.
    let whole = if request.device.release >= (7, 0) { usize::from(u16::MAX) } else { 72 };
    drivers_answer(request, whole)
}

/// The driver writes into its part of the answer what only it knows.
fn drivers_answer(request: &mut Request<'_>, most: usize) -> Result<(), Stop> {
    let Some(given) = request.get(ioctl::ATTR_UHW_OUT) else { return Ok(()) };
    let length = usize::from(given.len).min(most);
    if request.memory.read(given.data, length).is_err() {
        return Err(Stop::NotModelled("how far drivers get in memory that ends"));
    }
    request.effects.drivers.push((given.data, length));
    Ok(())
}

fn query_context(request: &mut Request<'_>) -> Result<(), Stop> {
    request.context()?;
    let Some(mlx5) = &request.device.mlx5 else { return Err(EOPNOTSUPP.into()) };
    let vectors = request.device.num_comp_vectors.to_ne_bytes();
    unless_absent(request.copy_to(query_context::NUM_COMP_VECTORS, &vectors))?;
    let support = request.device.core_support.to_ne_bytes();
    unless_absent(request.copy_to(query_context::CORE_SUPPORT, &support))?;
    Ok(request.copy_or_zero(mlx5::query_context::RESP_UCTX, &mlx5.context)?)
}

/// Which commands the kernel lets through on a context without DEVX.
fn devx(request: &mut Request<'_>) -> Result<(), Stop> {
    request.context()?;
    let Some(given) = request.get(mlx5::devx_other::CMD_IN) else { return Err(ENOENT.into()) };
    let input = request.input(&given)?;
    match input.first_chunk().map(|bytes| u16::from_be_bytes(*bytes)) {
        Some(0x100 | 0x740 | 0x752 | 0x762) => Err(Stop::NotModelled("what firmware answers")),
        _ => Err(EINVAL.into()),
    }
}

fn invoke_write(request: &mut Request<'_>) -> Result<(), Stop> {
    const EXTENDED: u32 = 0x8000_0000;
    const NUMBER: u32 = 0xff;
    let command = request.constant(invoke_write::WRITE_CMD, u32::MAX.into())?;
    let command = u32::try_from(command).map_err(|_| EINVAL)?;
    if command & !(EXTENDED | NUMBER) != 0 {
        return Err(EINVAL.into());
    }
    let (least_in, least_out) = match command {
        write_command::QUERY_DEVICE => (8, size_of::<device::QueryDeviceResponse>()),
        write_command::QUERY_PORT => (16, 40),
        // Its least lengths are not looked at on this way.
        write_command::EX_QUERY_DEVICE => (0, 0),
        number if number & NUMBER >= 64 => return Err(EOPNOTSUPP.into()),
        _ => return Err(Stop::NotModelled("write commands that make something")),
    };
    let room = |id| request.get(id).map_or(0, |given| usize::from(given.len));
    let (given_in, given_out) = (room(invoke_write::CORE_IN), room(invoke_write::CORE_OUT));
    if given_in < least_in || given_out < least_out {
        return Err(ENOSPC.into());
    }
    request.context()?;
    let input = core_input(request, least_in.max(8))?;
    let answer = match command {
        write_command::QUERY_PORT => {
            let number = input.get(8).copied().unwrap_or_default();
            port_of_old(&request.port(number.into())?.attributes)
        }
        write_command::EX_QUERY_DEVICE => {
            if long(&input, 0) != 0 {
                return Err(EINVAL.into());
            }
            driver_part(request)?;
            let mut answer = request.device.attributes.clone();
            let length = u32::try_from(given_out.min(answer.len())).unwrap_or(u32::MAX);
            for (place, byte) in answer.iter_mut().skip(180).zip(length.to_ne_bytes()) {
                *place = byte;
            }
            answer
        }
        _ => request.device.attributes.iter().take(least_out).copied().collect(),
    };
    Ok(unless_absent(request.copy_or_zero(invoke_write::CORE_OUT, &answer))?)
}

/// What drivers do with their part of `EX_QUERY_DEVICE`.
fn driver_part(request: &mut Request<'_>) -> Result<(), Stop> {
    let (given_in, given_out) = (request.get(ioctl::ATTR_UHW_IN), request.get(ioctl::ATTR_UHW_OUT));
    let length = |given: Option<crate::Present>| given.map_or(0, |given| given.len);
    if length(given_in) == 0 && length(given_out) == 0 {
        return Ok(());
    }
    if request.device.mlx5.is_some() {
        let input = given_in.map_or(Ok(Vec::new()), |given| request.input(&given));
        let is_zero = |input: &[u8]| input.iter().all(|byte| *byte == 0);
        if (1..8).contains(&length(given_out)) {
            return Err(EINVAL.into());
        }
        match input {
            Ok(input) if is_zero(&input) => {}
            Ok(_) if request.device.release >= (7, 0) => return Err(EOPNOTSUPP.into()),
            Err(errno) if request.device.release >= (7, 0) => return Err(errno.into()),
            _ => return Err(EINVAL.into()),
        }
        return drivers_answer(request, usize::from(u16::MAX));
    }
    if request.device.release < (7, 0) {
        return Err(EINVAL.into());
    }
    Err(Stop::NotModelled("what drivers of 7.x make of their part"))
}

/// The command's structure. If it is longer, the rest must be zero.
fn core_input(request: &Request<'_>, known: usize) -> Result<Vec<u8>, Errno> {
    let Some(given) = request.get(invoke_write::CORE_IN) else { return Ok(Vec::new()) };
    let input = request.input(&given);
    let length = usize::from(given.len);
    let head = match (&input, length > known) {
        (Ok(input), _) => input.get(..known).unwrap_or_default().to_vec(),
        // Only the head may be there.
        (Err(_), true) if length > 8 => request.memory.read(given.data, known)?,
        (Err(errno), _) => return Err(*errno),
    };
    let is_zero = input.is_ok_and(|input| input.iter().skip(known).all(|byte| *byte == 0));
    if length > known && !is_zero { Err(EOPNOTSUPP) } else { Ok(head) }
}

/// The answer of the write command, made of the newer one: 40 bytes.
fn port_of_old(attributes: &[u8]) -> Vec<u8> {
    attributes.iter().take(40).copied().collect()
}
