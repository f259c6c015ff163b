//! OTLP/gRPC: the export methods of the three services, with the raw bytes of each message.
//!
//! Owns: the methods' names, gRPC statuses. Keeps out: how a message lies in a body (`framing`), decoding (the writer does
//! it), sockets (`serve`). Of the metadata only the token is looked at, where one is asked for: unknown tenants and secrets
//! pass by (field case B31).

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use tonic::{Code, Status};

use crate::source::intake::{Payload, Refusal, Signal};
use crate::source::notices::{Notice, UnderWay};
use crate::source::way::{self, Way};

use super::body::Broken;
use super::coding::{self, Coding, Inflate};
use super::{Shared, Token, answer, framing};

/// The service of all three signals.
pub(super) fn router(shared: Arc<Shared>) -> axum::Router {
    axum::Router::new().fallback(handle).with_state(shared)
}

fn path(signal: Signal) -> &'static str {
    match signal {
        Signal::Traces => "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
        Signal::Logs => "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
        Signal::Metrics => "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
    }
}

async fn handle(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    if let Some((status, notice, words)) = other(&request) {
        let asked = format!("HTTP {} {} on the gRPC port", request.method(), request.uri().path());
        shared.notices.note(notice, &format!("{asked}: {words}"));
        let allow = (status == StatusCode::METHOD_NOT_ALLOWED).then_some([(header::ALLOW, "POST")]);
        return (status, allow.unwrap_or([(header::ACCEPT, PLAIN)]), format!("{words}\n")).into_response();
    }
    let exported = match admit(&shared, request.headers()) {
        Ok(()) => export(&shared, request).await,
        Err(status) => Err(status),
    };
    exported.unwrap_or_else(|status| {
        note(&shared, &status);
        let asked = status.code() == Code::Unauthenticated;
        let mut response = status.into_http::<Body>();
        if asked {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, Token::CHALLENGE);
        }
        response
    })
}

async fn export(shared: &Shared, request: Request) -> Result<Response, Status> {
    let asked = request.uri().path();
    let Some(signal) = Signal::ALL.into_iter().find(|signal| path(*signal) == asked) else {
        let there_are = Signal::ALL.map(path).join(", ");
        return Err(Status::unimplemented(format!("{asked}: no such method here; there are {there_are}")));
    };
    let limit = shared.times.body;
    let mut coming = shared.notices.begin(signal != Signal::Metrics);
    let taken = tokio::time::timeout(limit, take(shared, signal, request, &mut coming)).await;
    coming.over();
    let taken = taken.unwrap_or_else(|_| Err(Status::deadline_exceeded(answer::late(limit))));
    taken.inspect_err(|status| {
        if signal != Signal::Metrics && notice_of(status).is_some_and(Notice::loses) {
            shared.notices.lose();
        }
    })
}

/// Takes an export from a sender who may send it here.
async fn take(
    shared: &Shared,
    signal: Signal,
    request: Request,
    coming: &mut UnderWay<'_>,
) -> Result<Response, Status> {
    let (head, body) = request.into_parts();
    let way = Way::of(head.headers.get(way::HEADER).and_then(|ids| ids.to_str().ok()));
    let limit = shared.max_message;
    let broken = |broken| match broken {
        Broken::Busy => unavailable(answer::BUSY),
        Broken::TooLarge => too_large(limit),
        Broken::Early(how) => Status::aborted(format!("the message ended early: {how}")),
    };
    let whole = shared.room.whole(body, limit.saturating_add(framing::FRAME)).await;
    coming.over();
    let whole = whole.map_err(broken)?;
    let (coding, message) = framing::message(&head.headers, &whole.bytes)?;
    // Its room is held until the answer, and so is the room for what it inflates to.
    let (message, _rooms) = if coding == Coding::Identity {
        (message, (whole, None))
    } else {
        let aside = message.len() >= coding::ASIDE;
        let mut making = shared.room.making(limit).await.map_err(broken)?;
        let inflate = move || {
            let inflated = coding.inflate(message, limit).map_err(|error| match error {
                Inflate::TooLarge => too_large(limit),
                Inflate::Broken(reason) => Status::invalid_argument(reason),
            })?;
            making.came_to(inflated.len());
            Ok::<_, Status>((inflated, (whole, Some(making))))
        };
        if aside {
            tokio::task::spawn_blocking(inflate).await.map_err(|_| unavailable(answer::CLOSING))??
        } else {
            inflate()?
        }
    };
    let payload = Payload { way, ..Payload::otlp(signal, message) };
    match shared.intake.offer(payload).await {
        Ok(receipt) => Ok(framing::answer(&answer::protobuf(&receipt))),
        Err(Refusal::Malformed(reason)) => Err(Status::invalid_argument(reason)),
        Err(Refusal::Busy) => Err(unavailable(answer::BUSY)),
        Err(Refusal::Closed) => Err(unavailable(answer::CLOSING)),
    }
}

/// The media type of gRPC. What may follow is how its messages are written: protobuf unless it says otherwise.
const PLAIN: &str = "application/grpc";
/// The same, said in full.
const PROTOBUF: &str = "application/grpc+proto";

/// Whether a request is for gRPC of some kind: its sender would understand an answer in that form.
pub(super) fn is_grpc(headers: &HeaderMap) -> bool {
    media_type(headers).get(..PLAIN.len()).is_some_and(|kind| kind.eq_ignore_ascii_case(PLAIN))
}

/// The media type without its parameters; empty when there is none.
fn media_type(headers: &HeaderMap) -> &str {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("");
    kind.split(';').next().unwrap_or("").trim()
}

/// Why a request is none that this port reads, as HTTP says it.
fn other(request: &Request) -> Option<(StatusCode, Notice, String)> {
    let kind = media_type(request.headers());
    if request.method() != Method::POST {
        let words = "this port speaks OTLP/gRPC, and only POST is answered here";
        return Some((StatusCode::METHOD_NOT_ALLOWED, Notice::WrongMethod, words.to_owned()));
    }
    if [PLAIN, PROTOBUF].iter().any(|known| kind.eq_ignore_ascii_case(known)) {
        return None;
    }
    let words = if is_grpc(request.headers()) {
        let kind: String = kind.chars().take(80).collect();
        format!("expected messages in protobuf ({PLAIN} or {PROTOBUF}), found {kind:?}")
    } else {
        "this port speaks OTLP/gRPC; OTLP/HTTP has its own port (4318 unless --http says otherwise)".to_owned()
    };
    Some((StatusCode::UNSUPPORTED_MEDIA_TYPE, Notice::UnknownType, words))
}

/// Whether a request may be looked at: with the token, where one is asked for, and never from a web page.
fn admit(shared: &Shared, headers: &HeaderMap) -> Result<(), Status> {
    if let Some(Err(words)) = shared.token.as_ref().map(|token| token.check(headers)) {
        return Err(Status::unauthenticated(words));
    }
    match headers.contains_key(header::ORIGIN) {
        true => Err(Status::permission_denied("web pages cannot send here; the HTTP port has --allow-origin")),
        false => Ok(()),
    }
}

/// What kind of notice this answer is; `None` when all is well.
fn notice_of(status: &Status) -> Option<Notice> {
    Some(match status.code() {
        Code::Ok => return None,
        Code::Unavailable => Notice::Busy,
        Code::Aborted => Notice::CutOff,
        Code::Unimplemented if status.metadata().contains_key(framing::ACCEPTED) => Notice::UnknownType,
        Code::Unimplemented => Notice::UnknownPath,
        Code::ResourceExhausted => Notice::TooLarge,
        Code::DeadlineExceeded => Notice::TooSlow,
        Code::Unauthenticated => Notice::Unauthorized,
        Code::PermissionDenied => Notice::Origin,
        _ => Notice::Malformed,
    })
}

/// Counts what was turned away.
fn note(shared: &Shared, status: &Status) {
    if let Some(notice) = notice_of(status) {
        shared.notices.note(notice, &format!("gRPC: {}", status.message()));
    }
}

/// Without a time after which to try again senders do not (OTLP specification, "Failures"): they would after `OUT_OF_RANGE`,
/// and no message gets smaller by being sent again.
fn too_large(limit: usize) -> Status {
    Status::resource_exhausted(format!(
        "the message is larger than {limit} bytes (plain or inflated): send smaller batches"
    ))
}

fn unavailable(message: &str) -> Status {
    let details = answer::status(Code::Unavailable as i32, message, true);
    Status::with_details(Code::Unavailable, message, details.into())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::{GzEncoder, ZlibEncoder};
    use tower::ServiceExt;

    use super::super::tests::messages;
    use super::super::{Times, body::Room};
    use super::*;
    use crate::source::intake::{Body as Content, Bounds, Intake, Receipt, channel};
    use crate::source::notices::Notices;

    const LIMIT: usize = 64 << 20;

    fn shared(intake: Intake) -> Shared {
        Shared {
            intake,
            notices: Notices::default(),
            max_message: LIMIT,
            origins: Vec::new(),
            token: None,
            room: Room::new(LIMIT),
            times: Times::default(),
        }
    }

    #[tokio::test]
    async fn only_protobuf_that_is_posted_is_an_export() {
        let (intake, _outlet) = channel(Bounds::default());
        let shared = Arc::new(shared(intake));
        let ask = async |method: Method, kind: &str| {
            let request = Request::builder()
                .method(method)
                .uri(path(Signal::Traces))
                .header(header::CONTENT_TYPE, kind)
                // One that is cut off: it is answered with a status of gRPC, and goes no further.
                .body(Body::from(&[0][..]))
                .unwrap();
            let response = router(Arc::clone(&shared)).oneshot(request).await.unwrap();
            let refused = response.headers().contains_key(Status::GRPC_STATUS);
            (response.status().as_u16(), refused)
        };
        for kind in ["application/grpc", "application/grpc+proto", "Application/GRPC+Proto ; charset=utf-8"] {
            assert_eq!(ask(Method::POST, kind).await, (200, true), "{kind}");
            assert_eq!(ask(Method::GET, kind).await, (405, false), "{kind}");
        }
        assert_eq!(shared.notices.count(Notice::WrongMethod), 3);
        for kind in ["application/grpc+json", "application/grpc-web", "application/grpc-web+proto", "application/grpcx"]
        {
            assert_eq!(ask(Method::POST, kind).await, (415, false), "{kind}");
        }
        assert_eq!(ask(Method::POST, "application/json").await, (415, false));
        assert_eq!(shared.notices.count(Notice::UnknownType), 5);
    }

    /// What came in of a message that says it is in this coding, and the status it was answered with.
    async fn sent(coding: &str, message: Vec<u8>) -> (Option<Vec<u8>>, String) {
        let (intake, mut outlet) = channel(Bounds::default());
        let writer = std::thread::spawn(move || {
            let delivery = outlet.recv()?;
            let Content::Otlp(_, bytes) = &delivery.payload.body else { panic!("expected OTLP") };
            let bytes = bytes.to_vec();
            delivery.answer(Ok(Receipt::default()));
            Some(bytes)
        });
        let shared = shared(intake);
        let body = [&[1][..], &(message.len() as u32).to_be_bytes(), &message].concat();
        let request = Request::post(path(Signal::Traces))
            .header(header::CONTENT_TYPE, "application/grpc")
            .header("grpc-encoding", coding)
            .body(Body::from(body))
            .unwrap();
        let response = router(Arc::new(shared)).oneshot(request).await.unwrap();
        let refused = response.headers().get(Status::GRPC_STATUS).cloned();
        let body = http_body_util::BodyExt::collect(response.into_body()).await.unwrap();
        let told = refused.or_else(|| body.trailers()?.get(Status::GRPC_STATUS).cloned()).unwrap();
        (writer.join().unwrap(), told.to_str().unwrap().to_owned())
    }

    #[tokio::test]
    async fn of_several_members_every_one_is_read_or_the_sender_is_told() {
        let messages = messages("dev-sim.traces.pb.gz");
        let (one, two) = (&messages[0], &messages[1]);
        let gzip = |bytes: &[u8]| {
            let mut out = GzEncoder::new(Vec::new(), Compression::fast());
            out.write_all(bytes).unwrap();
            out.finish().unwrap()
        };
        let zlib = |bytes: &[u8]| {
            let mut out = ZlibEncoder::new(Vec::new(), Compression::fast());
            out.write_all(bytes).unwrap();
            out.finish().unwrap()
        };
        let zstd = |bytes: &[u8]| zstd::encode_all(bytes, 1).unwrap();
        let both = Some([&one[..], two].concat());
        let ok = |read: Option<Vec<u8>>| (read, "0".to_owned());
        let invalid = || (None, (Code::InvalidArgument as i32).to_string());
        assert!(sent("gzip", [gzip(one), gzip(two)].concat()).await == ok(both.clone()));
        assert!(sent("zstd", [zstd(one), zstd(two)].concat()).await == ok(both));
        assert!(sent("deflate", zlib(one)).await == ok(Some(one.clone())));
        assert!(sent("deflate", [zlib(one), zlib(two)].concat()).await == invalid());
        assert!(sent("gzip", [&gzip(one)[..], b"noise"].concat()).await == invalid());
        assert!(sent("gzip", gzip(one)[..40].to_vec()).await == invalid());
        assert!(sent("br", one.clone()).await == (None, (Code::Unimplemented as i32).to_string()));
        // Large enough to be inflated aside.
        let large = vec![b'x'; LIMIT];
        assert!(gzip(&large).len() > coding::ASIDE);
        assert!(sent("gzip", gzip(&large)).await == ok(Some(large.clone())));
        let past = sent("gzip", [gzip(&large), gzip(b"x")].concat()).await;
        assert!(past == (None, (Code::ResourceExhausted as i32).to_string()));
    }
}
