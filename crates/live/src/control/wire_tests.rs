//! Tests of the codec of the control socket. Messages arrive unchanged, however the bytes are cut.
//! The decoders accept no other lines.

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
    let message = "(?s).{0,60}";
    prop_oneof![
        "(?s).{0,200}".prop_map(Answer::Ok),
        (1..4096, message).prop_map(|(errno, message)| Answer::Error { errno: Errno(errno), message }),
    ]
}

/// Cuts `bytes` into pieces of these lengths, in rotation.
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
    fn requests_are_decoded_from_pieces_of_any_length(
        requests in prop::collection::vec(request(), 0..8),
        lengths in prop::collection::vec(1usize..50, 1..5),
    ) {
        let sent: Vec<u8> = requests.iter().flat_map(|request| request.encode().unwrap()).collect();
        let mut decoder = RequestDecoder::default();
        let mut arrived = Vec::new();
        for piece in pieces(&sent, &lengths) {
            decoder.push(piece);
            while let Some(request) = decoder.decode().unwrap() {
                arrived.push(request);
            }
        }
        prop_assert_eq!(arrived, requests);
    }

    #[test]
    fn answers_are_decoded_from_pieces_of_any_length(
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
                Just(b"{\"op\":\"write\",\"path\":\"a\",\"value\":\"b\"}\n".to_vec()),
                Just(b"{\"op\":\"read\",\"path\":\"".to_vec()),
                Just(b"{\"ok\":\"\"}\n".to_vec()),
                Just(b"{\"error\":{\"errno\":99999999999}}\n".to_vec()),
                Just(b"[[[[[[[[".to_vec()),
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
                prop_assert!(answers_end || answers.lines.buffer.len() <= ANSWER_BYTES_MAX);
            }
        }
    }
}

#[test]
fn the_line_after_a_malformed_request_is_read() {
    let mut decoder = RequestDecoder::default();
    let no_requests: [&[u8]; 9] = [
        b"",
        b"list",
        b"read queue/scheduler",
        br#"{"op":"red","path":"queue"}"#,
        br#"{"op":"read"}"#,
        br#"{"op":"read","path":"queue","value":"64"}"#,
        br#"{"op":"read","path":7}"#,
        b"{\"op\":\"read\",\"path\":\"\xff\"}",
        br#"{"op":"write","path":"queue/nr_requests","value":"6\n4"}"#,
    ];
    for line in no_requests {
        decoder.push(line);
        decoder.push(b"\n");
    }
    decoder.push(b"{\"path\":\"/queue/scheduler/\", \"op\":\"read\"}\r\n{\"op\":\"list\",\"path\":\"/\"}\n");
    let refused = no_requests.map(|_| decoder.decode().unwrap_err().to_string());
    assert!(refused[2].starts_with(r#""read queue/scheduler" is not a valid request: "#), "{refused:?}");
    assert!(refused[2].ends_with(REQUEST), "{refused:?}");
    assert!(refused[3].contains("unknown variant `red`"), "{refused:?}");
    assert!(refused[8].contains("must not contain line ends"), "{refused:?}");
    assert_eq!(decoder.decode(), Ok(Some(Request::Read { path: "queue/scheduler".to_owned() })));
    assert_eq!(decoder.decode(), Ok(Some(Request::List { path: String::new() })));
    assert_eq!(decoder.decode(), Ok(None));
}

#[test]
fn a_line_without_end_is_refused_as_soon_as_it_is_too_long() {
    let frame = Request::Read { path: String::new() }.encode().unwrap().len() - 1;
    for length in [LINE_BYTES_MAX - frame, LINE_BYTES_MAX - frame + 1] {
        let request = Request::Read { path: "x".repeat(length) };
        let too_long = length + frame > LINE_BYTES_MAX;
        assert_eq!(request.encode() == Err(WireError::LineTooLong(LINE_BYTES_MAX)), too_long);
        let line = line_of(&request);
        let mut decoder = RequestDecoder::default();
        decoder.push(&line[..line.len() - 1]);
        assert_eq!(decoder.decode().is_err_and(|error| error.is_fatal()), too_long);
        decoder.push(b"\n");
        assert_eq!(decoder.decode().is_err(), too_long);
    }
}
