//! How gRPC puts one message into a body, and takes one out: a flag, a length, the message; then the trailers.
//!
//! Ours because it is the way in of every span: the message is handed on as it lies in the body, and inflated like any other
//! body (`coding`), in all its members. Keeps out: methods and statuses of exports (`grpc`).

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Response, header};
use bytes::{BufMut, Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use tonic::Status;
use tonic::metadata::{AsciiMetadataValue, GRPC_CONTENT_TYPE};

use super::coding::Coding;

/// The bytes before a message: whether it is compressed, and its length.
pub(super) const FRAME: usize = 5;

/// How messages are coded that say they are compressed.
const ENCODING: &str = "grpc-encoding";
/// Where a refusal lists what [`ENCODING`] may say.
pub(super) const ACCEPTED: &str = "grpc-accept-encoding";

/// The one message of a body, and how it is coded.
///
/// # Errors
/// The body is cut off, holds more than one, or is compressed in a way that is not known here.
pub(super) fn message(headers: &HeaderMap, body: &Bytes) -> Result<(Coding, Bytes), Status> {
    let Some((head, rest)) = body.split_first_chunk::<FRAME>() else {
        let found = body.len();
        return Err(Status::invalid_argument(format!("expected a message, found {found} bytes: its head has {FRAME}")));
    };
    let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
    if length != rest.len() {
        let found = rest.len();
        return Err(Status::invalid_argument(format!(
            "expected one message of the {length} bytes that its head says, found {found}"
        )));
    }
    let coding = match head[0] {
        0 => Coding::Identity,
        1 => coding(headers)?,
        flag => return Err(Status::invalid_argument(format!("expected 0 or 1 as a message's flag, found {flag}"))),
    };
    Ok((coding, body.slice(FRAME..)))
}

/// What [`ENCODING`] says, of a message that is compressed.
fn coding(headers: &HeaderMap) -> Result<Coding, Status> {
    let mut told = headers.get_all(ENCODING).iter();
    let name = told.next().map(|name| name.to_str().unwrap_or("that is not text"));
    if told.next().is_some() {
        return Err(unknown("more than one"));
    }
    match name.map(Coding::parse) {
        Some(Ok(Coding::Identity)) | None => {
            Err(Status::internal(format!("the message is compressed, expected {ENCODING} to say how")))
        }
        Some(Ok(coding)) => Ok(coding),
        Some(Err(name)) => Err(unknown(name)),
    }
}

fn unknown(name: &str) -> Status {
    let mut status = Status::unimplemented(format!("{ENCODING} {name}: expected one of {}", Coding::NAMES));
    status.metadata_mut().insert(ACCEPTED, AsciiMetadataValue::from_static(Coding::NAMES));
    status
}

/// The response that carries one message, with the status that all is well.
pub(super) fn answer(message: &[u8]) -> Response<Body> {
    let mut frame = BytesMut::with_capacity(FRAME + message.len());
    frame.put_u8(0);
    frame.put_u32(message.len() as u32);
    frame.put_slice(message);
    let trailers = HeaderMap::from_iter([(Status::GRPC_STATUS, HeaderValue::from_static("0"))]);
    let body = Full::new(frame.freeze()).with_trailers(std::future::ready(Some(Ok(trailers))));
    let mut response = Response::new(Body::new(body));
    response.headers_mut().insert(header::CONTENT_TYPE, GRPC_CONTENT_TYPE);
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use tonic::Code;

    /// A body of one message under this flag.
    fn body(flag: u8, message: &[u8]) -> Bytes {
        [&[flag][..], &(message.len() as u32).to_be_bytes(), message].concat().into()
    }

    fn coded(names: &[&'static str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for name in names {
            headers.append(ENCODING, HeaderValue::from_static(name));
        }
        headers
    }

    #[test]
    fn a_message_is_taken_out_with_its_coding() {
        for (flag, names, coding) in [
            (0, &[][..], Coding::Identity),
            (0, &["br"], Coding::Identity),
            (1, &["gzip"], Coding::Gzip),
            (1, &["deflate"], Coding::Deflate),
            (1, &["zstd"], Coding::Zstd),
        ] {
            let found = message(&coded(names), &body(flag, b"one")).unwrap();
            assert_eq!(found, (coding, Bytes::from_static(b"one")), "{names:?}");
        }
        assert_eq!(message(&coded(&[]), &body(0, b"")).unwrap().1, "");
    }

    #[test]
    fn what_is_no_message_is_said() {
        let whole = body(0, b"one");
        let two = [&whole[..], &whole].concat();
        for (names, body, code, words) in [
            (&[][..], Bytes::new(), Code::InvalidArgument, "found 0 bytes"),
            (&[], whole.slice(..4), Code::InvalidArgument, "found 4 bytes"),
            (&[], whole.slice(..7), Code::InvalidArgument, "the 3 bytes that its head says, found 2"),
            (&[], two.into(), Code::InvalidArgument, "the 3 bytes that its head says, found 11"),
            (&[], body(2, b"one"), Code::InvalidArgument, "found 2"),
            (&[], body(1, b"one"), Code::Internal, "expected grpc-encoding"),
            (&["identity"], body(1, b"one"), Code::Internal, "expected grpc-encoding"),
            (&["br"], body(1, b"one"), Code::Unimplemented, "br: expected one of gzip"),
            (&["gzip", "gzip"], body(1, b"one"), Code::Unimplemented, "more than one"),
        ] {
            let status = message(&coded(names), &body).unwrap_err();
            assert!(status.code() == code && status.message().contains(words), "{status:?}");
            assert_eq!(status.metadata().contains_key(ACCEPTED), code == Code::Unimplemented);
        }
    }
}
