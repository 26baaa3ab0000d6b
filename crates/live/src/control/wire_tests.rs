//! The codec of the control socket: what is sent arrives, however it is cut, and nothing else passes.

use proptest::prelude::*;

use super::*;

fn request() -> impl Strategy<Value = Request> {
    let path = "[^/]([ -~é\n%/]{0,40}[^/])?";
    let value = "[^\n\r]{0,60}";
    prop_oneof![
        path.prop_map(|path| Request::List { path }),
        path.prop_map(|path| Request::Read { path }),
        (path, value).prop_map(|(path, value)| Request::Write { path, value }),
        Just(Request::List { path: String::new() }),
    ]
}

fn answer() -> impl Strategy<Value = Answer> {
    let message = "[^\n\r]{0,60}";
    prop_oneof![
        "(?s).{0,200}".prop_map(Answer::Ok),
        (1..4096, message).prop_map(|(errno, message)| Answer::Error { errno: Errno(errno), message }),
    ]
}

/// `bytes` in pieces of these lengths, again and again.
fn pieces<'a>(mut bytes: &'a [u8], lengths: &'a [usize]) -> impl Iterator<Item = &'a [u8]> {
    let mut lengths = lengths.iter().cycle();
    std::iter::from_fn(move || {
        let length = (*lengths.next()?).min(bytes.len());
        let (piece, rest) = bytes.split_at(length);
        bytes = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

proptest! {
    #[test]
    fn requests_arrive_as_they_were_sent_however_they_are_cut(
        requests in prop::collection::vec(request(), 0..8),
        lengths in prop::collection::vec(1usize..50, 1..5),
    ) {
        let sent: String = requests.iter().map(|request| request.encode().unwrap()).collect();
        let mut decoder = RequestDecoder::default();
        let mut arrived = Vec::new();
        for piece in pieces(sent.as_bytes(), &lengths) {
            decoder.push(piece);
            while let Some(request) = decoder.decode().unwrap() {
                arrived.push(request);
            }
        }
        prop_assert_eq!(arrived, requests);
    }

    #[test]
    fn answers_arrive_as_they_were_sent_however_they_are_cut(
        answers in prop::collection::vec(answer(), 0..8),
        lengths in prop::collection::vec(1usize..90, 1..5),
    ) {
        let mut sent = Vec::new();
        answers.iter().for_each(|answer| answer.encode(&mut sent));
        let mut decoder = AnswerDecoder::default();
        let mut arrived = Vec::new();
        for piece in pieces(&sent, &lengths) {
            decoder.push(piece);
            while let Some(answer) = decoder.decode().unwrap() {
                arrived.push(answer);
            }
        }
        prop_assert_eq!(arrived, answers);
    }

    #[test]
    fn garbage_is_refused_in_bounded_memory(
        garbage in prop::collection::vec(
            prop_oneof![
                prop::collection::vec(any::<u8>(), 0..200),
                Just(b"write a b\n".to_vec()),
                Just(b"read %".to_vec()),
                Just(b"ok 99999999\n".to_vec()),
                Just(b"ok -1\n".to_vec()),
                Just(b"error 0 \n".to_vec()),
                Just(vec![b'x'; 5000]),
            ],
            0..40,
        ),
    ) {
        let mut requests = RequestDecoder::default();
        let mut answers = AnswerDecoder::default();
        let (mut requests_end, mut answers_end) = (false, false);
        for bytes in &garbage {
            if !requests_end {
                requests.push(bytes);
                requests_end = loop {
                    match requests.decode() {
                        Ok(Some(_)) => {}
                        Ok(None) => break false,
                        Err(error) if error.is_fatal() => break true,
                        Err(_) => {}
                    }
                };
                prop_assert!(requests_end || requests.lines.buffer.len() <= LINE_BYTES_MAX);
            }
            if !answers_end {
                answers.push(bytes);
                answers_end = loop {
                    match answers.decode() {
                        Ok(Some(_)) => {}
                        Ok(None) => break false,
                        Err(_) => break true,
                    }
                };
                prop_assert!(answers_end || answers.lines.buffer.len() <= LINE_BYTES_MAX.max(BODY_BYTES_MAX));
            }
        }
    }
}

#[test]
fn what_is_not_a_request_is_named_and_the_next_line_is_read() {
    let mut decoder = RequestDecoder::default();
    decoder.push(b"\nlist\nrad queue\nread a%2\nread \xff\nwrite a\nread a b\nread queue/scheduler\r\n");
    let refused: Vec<_> = std::iter::from_fn(|| decoder.decode().err()).map(|error| error.to_string()).collect();
    assert_eq!(refused.len(), 7, "{refused:?}");
    assert!(refused[2].contains("\"rad queue\" is not a request: write list PATH"), "{refused:?}");
    let mut decoder = RequestDecoder::default();
    decoder.push(b"read queue/scheduler\r\nlist /\nwrite /queue/nr_requests/  64 \n");
    assert_eq!(decoder.decode(), Ok(Some(Request::Read { path: "queue/scheduler".to_owned() })));
    assert_eq!(decoder.decode(), Ok(Some(Request::List { path: String::new() })));
    let write = Request::Write { path: "queue/nr_requests".to_owned(), value: " 64 ".to_owned() };
    assert_eq!(decoder.decode(), Ok(Some(write)));
}

#[test]
fn a_line_without_end_is_refused_as_soon_as_it_is_too_long() {
    for length in [LINE_BYTES_MAX - 5, LINE_BYTES_MAX - 4] {
        let mut decoder = RequestDecoder::default();
        decoder.push(b"read ");
        decoder.push(&vec![b'x'; length]);
        let too_long = length + 5 > LINE_BYTES_MAX;
        assert_eq!(decoder.decode() == Err(WireError::LineTooLong), too_long);
        decoder.push(b"\n");
        assert_eq!(decoder.decode().is_err(), too_long);
    }
    let request = Request::Read { path: "x".repeat(LINE_BYTES_MAX) };
    assert_eq!(request.encode(), Err(WireError::LineTooLong));
    let mut sent = Vec::new();
    Answer::Error { errno: Errno::EINVAL, message: "é".repeat(LINE_BYTES_MAX) }.encode(&mut sent);
    assert!(sent.len() <= LINE_BYTES_MAX + 1);
}
