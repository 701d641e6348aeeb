//! Messages as bytes, and a socket whose answers are given.

use super::message::*;
use super::*;

#[test]
fn a_message_reads_back() {
    let bytes = Message::new(0x1405, &[]).number(1, 7).text(69, "uverbs").finish(0, 9);
    assert_eq!(bytes.len(), 16 + 8 + 12);
    let replies: Vec<_> = Replies(&bytes).map(Result::unwrap).collect();
    assert_eq!(replies.len(), 1);
    let reply = &replies[0];
    assert_eq!((reply.kind, reply.flags, reply.sequence), (0x1405, REQUEST, 9));
    let list: Vec<_> = attributes(reply.payload).map(Result::unwrap).collect();
    assert_eq!(list[0].u32(), Ok(7));
    assert_eq!(list[1].text(), "uverbs");
}

#[test]
fn broken_lengths_end_the_reading() {
    for length in [0u32, 15, 17, 1000, u32::MAX] {
        let mut bytes = Message::new(1, &[]).finish(0, 1);
        put(&mut bytes, 0, &length.to_ne_bytes());
        let results: Vec<_> = Replies(&bytes).collect();
        assert_eq!(results.len(), 1);
        assert!(results[0].is_err(), "{length}");
    }
    for length in [0u16, 3, 9, u16::MAX] {
        let mut bytes = Message::new(1, &[]).number(1, 1).bytes[HEADER..].to_vec();
        put(&mut bytes, 0, &length.to_ne_bytes());
        let results: Vec<_> = attributes(&bytes).collect();
        assert_eq!(results.len(), 1);
        assert!(results[0].is_err(), "{length}");
    }
}

#[test]
fn the_next_message_and_attribute_begin_at_a_multiple_of_4() {
    // The length is that of the content, without what fills it up.
    let mut bytes = Message::new(1, b"abcde").finish(0, 1);
    put(&mut bytes, 0, &21u32.to_ne_bytes());
    bytes.extend(Message::new(2, &[]).text(1, "ab").number(2, 7).finish(0, 2));
    let replies: Vec<_> = Replies(&bytes).map(Result::unwrap).collect();
    let kinds: Vec<_> = replies.iter().map(|it| (it.kind, it.payload.len())).collect();
    assert_eq!(kinds, [(1, 5), (2, 16)]);
    let list: Vec<_> = attributes(replies[1].payload).map(Result::unwrap).collect();
    assert_eq!((list[0].text().as_str(), list[1].u32()), ("ab", Ok(7)));
}

#[test]
fn numbers_of_every_width() {
    fn number(payload: &[u8]) -> Result<u64, Cause> {
        Attribute { kind: 0, payload }.number()
    }
    assert_eq!(number(&[5]), Ok(5));
    assert_eq!(number(&5u16.to_ne_bytes()), Ok(5));
    assert_eq!(number(&5u32.to_ne_bytes()), Ok(5));
    assert_eq!(number(&5u64.to_ne_bytes()), Ok(5));
    assert!(number(&[1, 2, 3]).is_err());
    assert!(number(&[]).is_err());
}

#[test]
fn error_messages_carry_an_errno() {
    let reply = |code: i32| {
        let bytes = code.to_ne_bytes();
        Reply { kind: ERROR, flags: 0, sequence: 1, payload: &bytes }.content().map(<[u8]>::len)
    };
    assert_eq!(reply(0), Ok(0));
    assert_eq!(reply(-22), Err(Errno::INVAL));
    assert_eq!(reply(22), Err(Errno::PROTO));
    assert_eq!(reply(i32::MIN), Err(Errno::PROTO));
}

fn message(kind: u16, flags: u16, sequence: u32, payload: &[u8]) -> Vec<u8> {
    Message::new(kind, payload).finish(flags, sequence)
}

/// Takes datagrams as a dump with sequence number 7: the list, if it ended.
fn dumped(datagram: &[Vec<u8>]) -> Result<Option<(Vec<u32>, bool)>, Cause> {
    let mut dump = Dump { sequence: 7, list: Vec::new(), interrupted: false };
    for reply in Replies(&datagram.concat()) {
        let number = |payload: &[u8]| number_at(payload, 0).ok_or(Cause::Malformed("short"));
        if dump.take(&reply?, number)? {
            return Ok(Some((dump.list, dump.interrupted)));
        }
    }
    Ok(None)
}

#[test]
fn a_dump_of_several_parts() {
    let part = |n: u32| message(16, 2, 7, &n.to_ne_bytes());
    let done = |errno: i32| message(DONE, 2, 7, &errno.to_ne_bytes());
    assert_eq!(dumped(&[part(1), part(2), done(0)]), Ok(Some((vec![1, 2], false))));
    assert_eq!(dumped(&[part(1)]), Ok(None), "it goes on");
    let stale = message(16, 2, 6, &9u32.to_ne_bytes());
    let stale_end = message(DONE, 2, 6, &0u32.to_ne_bytes());
    assert_eq!(dumped(&[stale, stale_end, part(1), done(0)]), Ok(Some((vec![1], false))));
    let interrupted = message(16, 2 | DUMP_INTR, 7, &2u32.to_ne_bytes());
    assert_eq!(dumped(&[part(1), interrupted, done(0)]), Ok(Some((vec![1, 2], true))));
}

#[test]
fn a_dump_that_fails_on_its_way_is_not_a_short_list() {
    let part = message(16, 2, 7, &1u32.to_ne_bytes());
    let done = message(DONE, 2, 7, &(-19i32).to_ne_bytes());
    assert_eq!(dumped(&[part.clone(), done]), Err(Cause::Os(libc::ENODEV)));
    let error = message(ERROR, 0, 7, &(-16i32).to_ne_bytes());
    assert_eq!(dumped(&[part, error]), Err(Cause::Os(libc::EBUSY)));
}

fn from(sender: Option<u32>, messages: &[Vec<u8>]) -> Datagram<Vec<u8>> {
    Datagram { sender, is_cut: false, bytes: messages.concat() }
}

/// The answers to two questions, from these batches of datagrams.
fn asked(batches: Vec<Vec<Datagram<Vec<u8>>>>) -> Result<Vec<(usize, u32)>, Cause> {
    let mut answers = Vec::new();
    let question = Message::new(0x1401, &[]);
    Socket::given(batches).ask(vec![question.clone(), question], |place, reply| {
        let number = number_at(reply.map_err(Cause::of)?, 0);
        answers.push((place, number.ok_or(Cause::Malformed("short"))?));
        Ok(())
    })?;
    Ok(answers)
}

#[test]
fn only_the_kernel_is_listened_to() {
    let answer = |sequence, n: u32| message(0x1401, 0, sequence, &n.to_ne_bytes());
    let ours = from(Some(0), &[answer(1, 10), answer(2, 20)]);
    assert_eq!(asked(vec![vec![ours.clone()]]), Ok(vec![(0, 10), (1, 20)]));
    for sender in [None, Some(7)] {
        let theirs = from(sender, &[answer(1, 66), answer(2, 66)]);
        let cut = Datagram { is_cut: true, ..theirs.clone() };
        let batches = vec![vec![theirs.clone(), cut], vec![theirs.clone(), ours.clone()]];
        assert_eq!(asked(batches), Ok(vec![(0, 10), (1, 20)]), "{sender:?}");
        assert_eq!(asked(vec![vec![theirs]]), Err(UNANSWERED));
    }
    let cut = Datagram { is_cut: true, ..ours };
    assert!(matches!(asked(vec![vec![cut]]), Err(Cause::Malformed(_))));
}

#[test]
fn answers_come_in_any_order_and_once() {
    let answer = |sequence, n: u32| message(0x1401, 0, sequence, &n.to_ne_bytes());
    let batches = vec![
        vec![from(Some(0), &[answer(2, 20), answer(2, 21), answer(9, 9)])],
        vec![],
        vec![from(Some(0), &[answer(1, 10)]), from(Some(0), &[answer(1, 11)])],
    ];
    assert_eq!(asked(batches), Ok(vec![(1, 20), (0, 10)]));
}

#[test]
fn more_questions_than_a_batch_holds_are_sent_in_several() {
    let count = BATCH + 3;
    let answer = |sequence: usize| {
        let sequence = u32::try_from(sequence).unwrap();
        from(Some(0), &[message(0x1401, 0, sequence, &sequence.to_ne_bytes())])
    };
    let batches =
        vec![(1..=BATCH).map(answer).collect(), (BATCH + 1..=count).map(answer).collect()];
    let mut socket = Socket::given(batches);
    let mut places = Vec::new();
    socket
        .ask(vec![Message::new(0x1401, &[]); count], |place, _| {
            places.push(place);
            Ok(())
        })
        .unwrap();
    assert_eq!(places, (0..count).collect::<Vec<_>>());
    let Peer::Given(given) = &socket.peer else { panic!("a real socket") };
    let lengths: Vec<_> = given.sent.iter().map(Vec::len).collect();
    assert_eq!(lengths, [BATCH * HEADER, 3 * HEADER]);
}

#[test]
fn an_interrupted_dump_is_asked_for_again() {
    let part = |flags: u16, sequence, n: u32| message(16, 2 | flags, sequence, &n.to_ne_bytes());
    let done = |flags: u16, sequence| message(DONE, 2 | flags, sequence, &[0; 4]);
    let number = |payload: &[u8]| number_at(payload, 0).ok_or(Cause::Malformed("short"));
    let batches = vec![
        vec![from(Some(0), &[part(0, 1, 5), done(DUMP_INTR, 1)])],
        vec![from(Some(0), &[part(0, 1, 66)]), from(Some(0), &[part(0, 2, 6)])],
        vec![from(Some(0), &[part(0, 2, 7), done(0, 2)])],
    ];
    let request = Message::new(16, &[]);
    assert_eq!(Socket::given(batches).dump(&request, number), Ok(vec![6, 7]));
    let always = (1..=DUMP_TRIES).map(|n| vec![from(Some(0), &[done(DUMP_INTR, n)])]).collect();
    assert_eq!(Socket::given(always).dump(&request, number), Err(Cause::Os(libc::EAGAIN)));
    // An errno of the kernel's is not silence.
    let busy = message(ERROR, 0, 1, &(-11i32).to_ne_bytes());
    let answer = Socket::given(vec![vec![from(Some(0), &[busy])]]).dump(&request, number);
    assert_eq!(answer, Err(Cause::Os(libc::EAGAIN)));
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
        let mut length = 0;
        for reply in Replies(&bytes) {
            length += 1;
            if let Ok(reply) = reply {
                let _ = reply.content();
            }
        }
        proptest::prop_assert!(length <= bytes.len() / HEADER + 1);
        for attribute in attributes(&bytes).flatten() {
            let _ = (attribute.number(), attribute.text(), attribute.u8());
        }
    }
}

#[test]
fn a_real_route_socket_answers_in_one_exchange() {
    let mut socket = Socket::route().unwrap();
    let request = Message::new(libc::RTM_GETLINK, &[0; 16]);
    let links = socket.dump(&request, |payload| Ok(number_at(payload, 4))).unwrap();
    assert!(links.contains(&Some(1)), "the loopback interface: {links:?}");
    let mut results = Vec::new();
    socket
        .ask(vec![request.clone().number(29, 0), request], |place, result| {
            results.push((place, result.is_ok()));
            Ok(())
        })
        .unwrap();
    assert_eq!(results, [(0, false), (1, false)], "no interface is named");
}
