//! OTLP/gRPC: the export methods of the three services, with the raw bytes of each message.
//!
//! Owns: the methods' names, the codec that hands bytes through, gRPC statuses. Keeps out: decoding (the writer does it),
//! sockets (`serve`). Of the metadata only the token is looked at, where one is asked for: unknown tenants and secrets pass
//! by (field case B31).

use std::pin::Pin;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use tonic::codec::{CompressionEncoding, EnabledCompressionEncodings};
use tonic::server::{Grpc, UnaryService};
use tonic::{Code, Status};

use crate::source::intake::{Payload, Refusal, Signal};
use crate::source::notices::Notice;
use crate::source::way::{self, Way};

use super::body::{Broken, Making};
use super::{Raw, Shared, Token, answer};

/// The bytes before a message: whether it is compressed, and its length.
const FRAME: usize = 5;

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
    if !is_grpc(request.headers()) {
        let words = "this port speaks OTLP/gRPC; OTLP/HTTP has its own port (4318 unless --http says otherwise)\n";
        shared.notices.note(Notice::UnknownType, &format!("HTTP {} on the gRPC port", request.uri().path()));
        return (axum::http::StatusCode::UNSUPPORTED_MEDIA_TYPE, words).into_response();
    }
    if let Err(status) = admit(&shared, request.headers()) {
        note(&shared, &status);
        let asked = status.code() == Code::Unauthenticated;
        let mut response = status.into_http::<Body>();
        if asked {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, Token::CHALLENGE);
        }
        return response;
    }
    let signal = Signal::ALL.into_iter().find(|signal| path(*signal) == request.uri().path());
    let response = match signal {
        Some(signal) => {
            let mut grpc = Grpc::new(Raw)
                .apply_compression_config(compressions(), EnabledCompressionEncodings::default())
                .apply_max_message_size_config(Some(shared.max_message), None);
            let (head, body) = request.into_parts();
            let exported = async {
                // Its room is held until the answer, and so is the room for what it inflates to.
                let whole = shared.room.whole(body, shared.max_message.saturating_add(FRAME)).await?;
                if has_more(&whole.bytes) {
                    return Err(Broken::Early("another one follows it, where an export is one message".into()));
                }
                let making = match whole.bytes.first() {
                    None | Some(0) => None,
                    Some(_) => Some(shared.room.making(shared.max_message).await?),
                };
                let export = Export { signal, shared: Arc::clone(&shared), making };
                let request = Request::from_parts(head, Body::from(whole.bytes.clone()));
                Ok(grpc.unary(export, request).await)
            };
            match tokio::time::timeout(shared.times.body, exported).await {
                Ok(Ok(response)) => response,
                Ok(Err(Broken::Busy)) => unavailable(answer::BUSY).into_http(),
                Ok(Err(Broken::TooLarge)) => {
                    let words =
                        format!("the message is larger than {} bytes: send smaller batches", shared.max_message);
                    Status::out_of_range(words).into_http()
                }
                Ok(Err(Broken::Early(how))) => {
                    Status::invalid_argument(format!("the message ended early: {how}")).into_http()
                }
                Err(_) => Status::deadline_exceeded(answer::late(shared.times.body)).into_http(),
            }
        }
        None => Status::unimplemented(format!(
            "{}: no such method here; there are {}",
            request.uri().path(),
            Signal::ALL.map(path).join(", ")
        ))
        .into_http(),
    };
    if let Some(status) = response.extensions().get::<Status>() {
        note(&shared, status);
    }
    response.map(Body::new)
}

/// Whether something follows the first message of a body. It would be taken by nobody and told to nobody.
fn has_more(body: &[u8]) -> bool {
    let Some((head, rest)) = body.split_first_chunk::<FRAME>() else { return false };
    let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
    usize::try_from(length).is_ok_and(|length| rest.len() > length)
}

/// Whether a request is gRPC.
pub(super) fn is_grpc(headers: &HeaderMap) -> bool {
    headers.get(header::CONTENT_TYPE).is_some_and(|kind| {
        kind.as_bytes().get(..16).is_some_and(|kind| kind.eq_ignore_ascii_case(b"application/grpc"))
    })
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

/// Counts what was turned away.
fn note(shared: &Shared, status: &Status) {
    let notice = match status.code() {
        Code::Ok => return,
        Code::Unavailable => Notice::Busy,
        Code::Unimplemented => Notice::UnknownPath,
        Code::OutOfRange | Code::ResourceExhausted => Notice::TooLarge,
        Code::DeadlineExceeded => Notice::TooSlow,
        Code::Unauthenticated => Notice::Unauthorized,
        Code::PermissionDenied => Notice::Origin,
        _ => Notice::Malformed,
    };
    shared.notices.note(notice, &format!("gRPC: {}", status.message()));
}

fn compressions() -> EnabledCompressionEncodings {
    let mut enabled = EnabledCompressionEncodings::default();
    enabled.enable(CompressionEncoding::Gzip);
    enabled.enable(CompressionEncoding::Deflate);
    enabled.enable(CompressionEncoding::Zstd);
    enabled
}

/// One call of an export method.
struct Export {
    signal: Signal,
    shared: Arc<Shared>,
    making: Option<Making>,
}

impl UnaryService<Bytes> for Export {
    type Response = Bytes;
    type Future = Pin<Box<dyn Future<Output = Result<tonic::Response<Bytes>, Status>> + Send>>;

    fn call(&mut self, request: tonic::Request<Bytes>) -> Self::Future {
        let (signal, shared, making) = (self.signal, Arc::clone(&self.shared), self.making.take());
        let way = Way::of(request.metadata().get(way::HEADER).and_then(|ids| ids.to_str().ok()));
        let message = request.into_inner();
        Box::pin(async move {
            let mut making = making;
            if let Some(making) = &mut making {
                making.came_to(message.len());
            }
            match shared.intake.offer(Payload { way, ..Payload::otlp(signal, message) }).await {
                Ok(receipt) => Ok(tonic::Response::new(answer::protobuf(&receipt).into())),
                Err(Refusal::Malformed(reason)) => Err(Status::invalid_argument(reason)),
                Err(Refusal::Busy) => Err(unavailable(answer::BUSY)),
                Err(Refusal::Closed) => Err(unavailable(answer::CLOSING)),
            }
        })
    }
}

fn unavailable(message: &str) -> Status {
    let details = answer::status(Code::Unavailable as i32, message, true);
    Status::with_details(Code::Unavailable, message, details.into())
}
