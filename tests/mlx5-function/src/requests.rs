//! Orders that come as lines of text, see [`control`](crate::control).

use crate::Function;
use crate::control::{Reply, Request, Response};
use std::io::{self, BufRead, Read, Write};

/// The longest line that is read.
const LINE: usize = 1 << 20;

/// Reads requests, one a line, and writes a response to each until there are no more. A line that
/// is no request, is longer than a mebibyte, or is for a function that is not there, gets
/// [`Reply::Error`].
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
    while requests.by_ref().take(LINE as u64).read_until(b'\n', &mut line)? > 0 {
        let response = if line.len() == LINE && !line.ends_with(b"\n") {
            requests.skip_until(b'\n')?;
            let reply = Reply::Error(format!("no request: it is longer than {LINE} bytes"));
            Response { number: None, reply }
        } else {
            respond(functions, &line)
        };
        serde_json::to_writer(&mut replies, &response)?;
        replies.write_all(b"\n")?;
        replies.flush()?;
        line.clear();
    }
    Ok(())
}

fn respond(functions: &[Function], line: &[u8]) -> Response {
    let Request { number, function, order } = match serde_json::from_slice(line) {
        Ok(request) => request,
        Err(error) => {
            let reply = Reply::Error(format!("no request: {error}"));
            return Response { number: None, reply };
        }
    };
    let reply = match functions.get(function) {
        Some(function) => function.handle(order),
        None => Reply::Error(format!("no function {function}: there are {}", functions.len())),
    };
    Response { number: Some(number), reply }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Order;
    use crate::description::Description;

    fn responses(functions: &[Function], requests: &[u8]) -> Vec<Response> {
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
        let describe = Request { number: 7, function: 1, order: Order::Describe };
        let mut requests = serde_json::to_vec(&describe).unwrap();
        requests.extend(b"\n\xff\xfe\n\n");
        requests.extend(vec![b'{'; 2 * LINE]);
        requests.extend(b"\n{\"number\":8,\"function\":2,\"order\":\"clear\"}\n");
        requests.extend(b"{\"number\":8,\"function\":0,\"order\":\"clear\"}");
        let responses = responses(&functions, &requests);
        let description = Box::new(Description::infiniband(2));
        let reply = Reply::Description(description);
        assert_eq!(responses[0], Response { number: Some(7), reply });
        for response in &responses[1..4] {
            assert_eq!(response.number, None);
            assert!(matches!(&response.reply, Reply::Error(why) if why.starts_with("no request")));
        }
        let reply = Reply::Error("no function 2: there are 2".to_owned());
        assert_eq!(responses[4], Response { number: Some(8), reply });
        assert_eq!(responses[5..], [Response { number: Some(8), reply: Reply::Done }]);
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
