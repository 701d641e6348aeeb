//! A command for the connection manager's character device, with the memory for its answer.
//!
//! The kernel takes a command by write(2), and writes the answer, of at most the length in the command's
//! header, to an address in the command. Only the commands here are sent: their addresses are those of
//! memory that is borrowed exclusively during the call.

use std::fs::File;
use std::io::{Error, ErrorKind, Result, Write};

use uverbs_uapi::cm as abi;
use zerocopy::IntoBytes;

/// A command.
pub(crate) enum CmCommand<'a> {
    /// Makes an identifier, which lives as long as the open file.
    CreateId(&'a mut abi::CreateIdResponse),
    /// Binds one to an address.
    Bind(&'a abi::Bind),
    /// Asks to which device and address an identifier is bound.
    QueryAddr(u32, &'a mut abi::QueryAddrResponse),
}

/// Sends a command to an open connection manager.
pub(crate) fn send(node: &File, command: CmCommand<'_>) -> Result<()> {
    let bytes = match command {
        CmCommand::CreateId(answer) => {
            let (response, len) = lent(answer.as_mut_bytes());
            let (port_space, qp_type) = (abi::port_space::IB, abi::qp_type::RC);
            let create = abi::CreateId { response, port_space, qp_type, ..Default::default() };
            framed(abi::command::CREATE_ID, create.as_bytes(), len)
        }
        CmCommand::Bind(bind) => framed(abi::command::BIND, bind.as_bytes(), 0),
        CmCommand::QueryAddr(id, answer) => {
            let (response, len) = lent(answer.as_mut_bytes());
            let query = abi::Query { response, id, option: abi::query::ADDR };
            framed(abi::command::QUERY, query.as_bytes(), len)
        }
    };
    // Not rustix's: there, the compiler may assume that a write changes no memory of the process.
    let mut node = node;
    if node.write(&bytes)? != bytes.len() {
        return Err(Error::from(ErrorKind::WriteZero));
    }
    Ok(())
}

/// Address and length of memory that the kernel may write.
fn lent(answer: &mut [u8]) -> (u64, usize) {
    // Exposed, because the kernel gets the address as a number.
    (answer.as_mut_ptr().expose_provenance() as u64, answer.len())
}

fn framed(command: u32, body: &[u8], output_len: usize) -> Vec<u8> {
    // All are structures of the ABI, of at most 280 bytes.
    let short = |len: usize| u16::try_from(len).unwrap_or(0);
    let (input_len, output_len) = (short(body.len()), short(output_len));
    [abi::CommandHeader { command, input_len, output_len }.as_bytes(), body].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::fd::OwnedFd;
    use zerocopy::FromBytes;

    /// What a command is on its way to the kernel.
    fn sent(command: CmCommand<'_>) -> (abi::CommandHeader, Vec<u8>) {
        let (mut reader, writer) = std::io::pipe().unwrap();
        send(&File::from(OwnedFd::from(writer)), command).unwrap();
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).unwrap();
        let (header, body) = abi::CommandHeader::read_from_prefix(&bytes).unwrap();
        (header, body.to_vec())
    }

    #[test]
    fn commands_lend_the_memory_for_their_answers() {
        let mut id = abi::CreateIdResponse::default();
        let address = (&raw const id).addr() as u64;
        let (header, body) = sent(CmCommand::CreateId(&mut id));
        assert_eq!((header.command, header.input_len, header.output_len), (0, 24, 4));
        let create = abi::CreateId::read_from_bytes(&body).unwrap();
        assert_eq!((create.response, create.port_space, create.qp_type), (address, 0x13f, 2));

        let mut answer = abi::QueryAddrResponse::default();
        let address = (&raw const answer).addr() as u64;
        let (header, body) = sent(CmCommand::QueryAddr(7, &mut answer));
        assert_eq!((header.command, header.input_len, header.output_len), (19, 16, 280));
        let query = abi::Query::read_from_bytes(&body).unwrap();
        assert_eq!(query, abi::Query { response: address, id: 7, option: 0 });

        let bind = abi::Bind { id: 7, addr_size: 16, ..abi::Bind::default() };
        let (header, body) = sent(CmCommand::Bind(&bind));
        assert_eq!((header.command, header.input_len, header.output_len), (20, 136, 0));
        assert_eq!(body, bind.as_bytes());
    }
}
