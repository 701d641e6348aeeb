//! Orders that come as lines of text, see [`control`](crate::control).

use crate::Function;
use crate::control::{Reply, Request};
use std::io::{self, BufRead, Write};

/// Reads requests, one a line, and writes a reply to each until there are no more. A line that is
/// no request, or is for a function that is not there, gets [`Reply::Error`].
///
/// # Errors
///
/// Those of reading and writing.
pub fn serve(
    functions: &[Function],
    mut requests: impl BufRead,
    mut replies: impl Write,
) -> io::Result<()> {
    let mut line = Vec::new();
    while requests.read_until(b'\n', &mut line)? > 0 {
        serde_json::to_writer(&mut replies, &reply(functions, &line))?;
        replies.write_all(b"\n")?;
        replies.flush()?;
        line.clear();
    }
    Ok(())
}

fn reply(functions: &[Function], line: &[u8]) -> Reply {
    let Request { function, order } = match serde_json::from_slice(line) {
        Ok(request) => request,
        Err(error) => return Reply::Error(format!("no request: {error}")),
    };
    match functions.get(function) {
        Some(function) => function.handle(order),
        None => Reply::Error(format!("no function {function}: there are {}", functions.len())),
    }
}
