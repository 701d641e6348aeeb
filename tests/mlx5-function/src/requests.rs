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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Order;
    use crate::description::Description;

    fn replies(functions: &[Function], requests: &[u8]) -> Vec<Reply> {
        let mut replies = Vec::new();
        serve(functions, requests, &mut replies).unwrap();
        let lines = replies.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
    }

    #[test]
    fn a_reply_to_each_line_whatever_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let start = |name: &str, description| {
            Function::start(description, &directory.path().join(name)).unwrap()
        };
        let functions = [start("0", Description::roce()), start("1", Description::infiniband(2))];
        let describe = serde_json::to_string(&Request { function: 1, order: Order::Describe });
        let mut requests = describe.unwrap().into_bytes();
        requests.extend(b"\n\xff\xfe\n\n{\"function\":2,\"order\":\"clear\"}\n");
        requests.extend(b"{\"function\":0,\"order\":\"clear\"}");
        let replies = replies(&functions, &requests);
        assert_eq!(replies[0], Reply::Description(Box::new(Description::infiniband(2))));
        assert!(matches!(&replies[1], Reply::Error(why) if why.starts_with("no request")));
        assert!(matches!(&replies[2], Reply::Error(_)));
        assert_eq!(replies[3], Reply::Error("no function 2: there are 2".to_owned()));
        assert_eq!(replies[4..], [Reply::Done]);
        for function in functions {
            function.finish().unwrap();
        }
    }

    #[test]
    fn a_function_that_cannot_be_is_not_served() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("socket");
        let impossible = Description { ports: Vec::new(), ..Description::roce() };
        let error = Function::start(impossible, &socket).unwrap_err();
        assert_eq!(error.to_string(), "no such function: number of ports: 0 is none of [1]");
        std::fs::write(&socket, "").unwrap();
        assert!(Function::start(Description::roce(), &socket).is_err(), "it exists");
    }
}
