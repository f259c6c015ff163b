//! What is answered to senders, in protobuf and JSON: success, partial success, errors. Owns: these few messages, written by
//! hand because the three signals' responses have one layout. Keeps out: status codes and headers (`grpc`, `http`).

use std::time::Duration;

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

/// An export response in protobuf: empty when all was taken. The partial success is field 1 for all three signals: the
/// number refused in its field 1, the reason in its field 2.
pub(super) fn protobuf(receipt: &Receipt) -> Vec<u8> {
    let mut out = Vec::new();
    if receipt.refused > 0 {
        let mut partial = Vec::new();
        put_number(&mut partial, 1, receipt.refused);
        put_bytes(&mut partial, 2, receipt.reason.as_deref().unwrap_or("").as_bytes());
        put_bytes(&mut out, 1, &partial);
    }
    out
}

/// An export response in JSON: `{}` when all was taken.
pub(super) fn json(signal: Signal, receipt: &Receipt) -> Vec<u8> {
    if receipt.refused == 0 {
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
pub(super) fn status(code: i32, message: &str, retry: bool) -> Vec<u8> {
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
