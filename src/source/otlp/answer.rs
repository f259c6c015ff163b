//! What is answered to senders, in protobuf and JSON: success, partial success, errors. Owns: these few messages, written by
//! hand because the three signals' responses have one layout. Keeps out: status codes and headers (`grpc`, `http`).

use std::time::Duration;

use super::walk::{LEN_1, LEN_2, LEN_3, VAR_1, VAR_2, Walk};
use crate::lifecycle::packed::{put_bytes, put_number};
use crate::source::intake::{Receipt, Signal};

/// After how many seconds a sender that was told "busy" should try again.
pub(super) const RETRY_SECONDS: u64 = 1;

/// What is said to a sender that is told "busy".
pub(super) const BUSY: &str =
    "reqtop cannot keep up at the moment: nothing of this request was taken, please send it again";

/// What is said to a sender while the program ends.
pub(super) const CLOSING: &str = "reqtop is ending: nothing of this request was taken";

/// What is said to a sender whose request did not come in time.
pub(super) fn late(limit: Duration) -> String {
    format!("the request did not come to its end within {} s", limit.as_secs_f64())
}

/// Whether all was taken as it came. OTLP has a partial success with nothing rejected for a word of warning.
fn is_full(receipt: &Receipt) -> bool {
    receipt.refused == 0 && receipt.reason.is_none()
}

/// An export response in protobuf: empty when all was taken. The partial success is field 1 for all three signals: the
/// number refused in its field 1, the reason in its field 2.
pub(super) fn protobuf(receipt: &Receipt) -> Vec<u8> {
    let mut out = Vec::new();
    if !is_full(receipt) {
        let mut partial = Vec::new();
        if receipt.refused > 0 {
            put_number(&mut partial, 1, receipt.refused);
        }
        put_bytes(&mut partial, 2, receipt.reason.as_deref().unwrap_or("").as_bytes());
        put_bytes(&mut out, 1, &partial);
    }
    out
}

/// An export response in JSON: `{}` when all was taken.
pub(super) fn json(signal: Signal, receipt: &Receipt) -> Vec<u8> {
    if is_full(receipt) {
        return b"{}".to_vec();
    }
    let rejected = match signal {
        Signal::Traces => "rejectedSpans",
        Signal::Logs => "rejectedLogRecords",
        Signal::Metrics => "rejectedDataPoints",
    };
    let reason = receipt.reason.as_deref().unwrap_or("");
    // A 64-bit number is a string in protobuf's JSON.
    serde_json::json!({ "partialSuccess": { rejected: receipt.refused.to_string(), "errorMessage": reason } })
        .to_string()
        .into_bytes()
}

/// A `google.rpc.Status` in protobuf, with a `RetryInfo` when the sender should try again.
pub fn status(code: i32, message: &str, retry: bool) -> Vec<u8> {
    let mut out = Vec::new();
    put_number(&mut out, 1, code as u64);
    put_bytes(&mut out, 2, message.as_bytes());
    if retry {
        let (mut delay, mut info, mut any) = (Vec::new(), Vec::new(), Vec::new());
        put_number(&mut delay, 1, RETRY_SECONDS);
        put_bytes(&mut info, 1, &delay);
        put_bytes(&mut any, 1, b"type.googleapis.com/google.rpc.RetryInfo");
        put_bytes(&mut any, 2, &info);
        put_bytes(&mut out, 3, &any);
    }
    out
}

/// A `google.rpc.Status` in JSON.
pub(super) fn status_json(code: i32, message: &str) -> Vec<u8> {
    serde_json::json!({ "code": code, "message": message }).to_string().into_bytes()
}

/// What a far side's export response in protobuf says it did not take, and its words on it.
pub fn partial_success(response: &[u8]) -> (u64, String) {
    let partial = field(response, LEN_1).map(|partial| (number(partial, VAR_1), field(partial, LEN_2)));
    let (rejected, words) = partial.unwrap_or_default();
    // Signed on the wire: fewer than none is none.
    let rejected = rejected.and_then(|rejected| u64::try_from(rejected as i64).ok());
    (rejected.unwrap_or(0), String::from_utf8_lossy(words.unwrap_or_default()).into_owned())
}

/// The message of a `google.rpc.Status` in protobuf.
pub fn status_message(status: &[u8]) -> String {
    String::from_utf8_lossy(field(status, LEN_2).unwrap_or_default()).into_owned()
}

/// After how long a far side asks to be tried again, by the `RetryInfo` in a `google.rpc.Status`; `None` when it does not.
pub fn retry_delay(status: &[u8]) -> Option<Duration> {
    let mut walk = Walk::over("Status", status);
    while let Ok(Some(tag)) = walk.tag() {
        if tag != LEN_3 {
            walk.skip(tag).ok()?;
            continue;
        }
        let any = walk.bytes(tag).ok()?;
        if field(any, LEN_1).is_some_and(|name| name.ends_with(b"google.rpc.RetryInfo")) {
            let delay = field(field(any, LEN_2)?, LEN_1).unwrap_or_default();
            let nanos = number(delay, VAR_2).unwrap_or(0).min(999_999_999) as u32;
            return Some(Duration::new(number(delay, VAR_1).unwrap_or(0).min(86_400), nanos));
        }
    }
    None
}

/// The last length-delimited field with this tag.
fn field(message: &[u8], wanted: u32) -> Option<&[u8]> {
    let (mut walk, mut found) = (Walk::over("answer", message), None);
    while let Ok(Some(tag)) = walk.tag() {
        if tag == wanted {
            found = Some(walk.bytes(tag).ok()?);
        } else {
            walk.skip(tag).ok()?;
        }
    }
    found
}

/// The last number with this tag.
fn number(message: &[u8], wanted: u32) -> Option<u64> {
    let (mut walk, mut found) = (Walk::over("answer", message), None);
    while let Ok(Some(tag)) = walk.tag() {
        if tag == wanted {
            found = Some(walk.number(tag).ok()?);
        } else {
            walk.skip(tag).ok()?;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_answered_here_reads_back() {
        let receipt = Receipt { taken: 3, refused: 2, reason: Some("why".into()) };
        assert_eq!(partial_success(&protobuf(&receipt)), (2, "why".into()));
        assert_eq!(partial_success(&protobuf(&Receipt::default())), (0, String::new()));
        let warning = Receipt { taken: 3, refused: 0, reason: Some("why".into()) };
        assert_eq!(partial_success(&protobuf(&warning)), (0, "why".into()));
        let busy = status(14, BUSY, true);
        assert_eq!(
            (status_message(&busy).as_str(), retry_delay(&busy)),
            (BUSY, Some(Duration::from_secs(RETRY_SECONDS)))
        );
        assert_eq!(retry_delay(&status(14, CLOSING, false)), None);
        for nonsense in [&b"\xff\xff"[..], b"\x1a\x05ab", b"<html>"] {
            assert_eq!((partial_success(nonsense).0, retry_delay(nonsense)), (0, None));
        }
    }
}
