//! OTLP/HTTP: `/v1/traces`, `/v1/logs`, `/v1/metrics` in protobuf and JSON, answered in the encoding of the request.
//!
//! Owns: paths, media types, codings, statuses, readable refusals. Keeps out: JSON itself (`json`), inflating (`coding`),
//! cross-origin rules (`cors`), sockets (`serve`).

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;

use crate::source::intake::{Payload, Refusal, Signal};
use crate::source::notices::Notice;
use crate::source::way::{self, Way};

use super::body::{Broken, Whole};
use super::coding::{self, Coding, Inflate};
use super::json::{self, Shape};
use super::{Shared, Token, answer, cors};

/// Plain bodies from this size on are transcoded aside, so that they do not hold up other connections.
const LARGE: usize = 256 << 10;

/// The service of all three signals.
pub(super) fn router(shared: Arc<Shared>) -> axum::Router {
    axum::Router::new().fallback(handle).with_state(shared)
}

fn path(signal: Signal) -> &'static str {
    match signal {
        Signal::Traces => "/v1/traces",
        Signal::Logs => "/v1/logs",
        Signal::Metrics => "/v1/metrics",
    }
}

/// The encoding of a request and of its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    Protobuf,
    Json,
}

impl Encoding {
    /// The media types that are read, as told to senders of others.
    const NAMES: &str = "application/x-protobuf, application/json";

    /// Reads the value of `Content-Type`: the media type only, of any case (field case B15).
    fn parse(value: &str) -> Option<Self> {
        let name = value.split(';').next()?.trim();
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        match () {
            () if is("application/x-protobuf") || is("application/protobuf") => Some(Self::Protobuf),
            () if is("application/json") => Some(Self::Json),
            () => None,
        }
    }

    fn media_type(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Protobuf => "application/x-protobuf",
            Self::Json => "application/json",
        })
    }
}

/// Why a request is not taken: a status and a sentence.
struct Refused {
    status: StatusCode,
    notice: Notice,
    words: String,
    header: Option<(HeaderName, HeaderValue)>,
}

impl Refused {
    fn new(status: StatusCode, notice: Notice, words: impl Into<String>) -> Self {
        Self { status, notice, words: words.into(), header: None }
    }

    fn with(mut self, name: HeaderName, value: impl Into<HeaderValue>) -> Self {
        self.header = Some((name, value.into()));
        self
    }

    /// The number of the nearest gRPC code, which `google.rpc.Status` carries.
    fn code(&self) -> i32 {
        match self.status {
            StatusCode::NOT_FOUND => 5,
            StatusCode::FORBIDDEN => 7,
            StatusCode::PAYLOAD_TOO_LARGE => 8,
            StatusCode::METHOD_NOT_ALLOWED => 12,
            StatusCode::SERVICE_UNAVAILABLE => 14,
            StatusCode::UNAUTHORIZED => 16,
            _ => 3,
        }
    }

    fn response(self, encoding: Option<Encoding>) -> Response {
        let code = self.code();
        let (kind, body) = match encoding {
            Some(Encoding::Protobuf) => {
                let retry = self.status == StatusCode::SERVICE_UNAVAILABLE;
                (Encoding::Protobuf.media_type(), answer::status(code, &self.words, retry))
            }
            Some(Encoding::Json) => (Encoding::Json.media_type(), answer::status_json(code, &self.words)),
            None => (HeaderValue::from_static("text/plain; charset=utf-8"), (self.words + "\n").into_bytes()),
        };
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = self.status;
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        if let Some((name, value)) = self.header {
            response.headers_mut().insert(name, value);
        }
        response
    }
}

async fn handle(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    if let Some(preflight) = cors::preflight(&shared.origins, request.method(), request.headers()) {
        return preflight;
    }
    let allowed = cors::allowed(&shared.origins, request.headers()).cloned();
    let encoding = text(request.headers(), &header::CONTENT_TYPE).and_then(Encoding::parse);
    let mut response = match export(&shared, encoding, request).await {
        Ok(response) => response,
        Err(refused) => {
            shared.notices.note(refused.notice, &format!("HTTP {}: {}", refused.status.as_u16(), refused.words));
            refused.response(encoding)
        }
    };
    if let Some(origin) = allowed {
        cors::allow(response.headers_mut(), origin);
    }
    response
}

async fn export(shared: &Shared, encoding: Option<Encoding>, request: Request) -> Result<Response, Refused> {
    if let Some(Err(words)) = shared.token.as_ref().map(|token| token.check(request.headers())) {
        return Err(Refused::new(StatusCode::UNAUTHORIZED, Notice::Unauthorized, words)
            .with(header::WWW_AUTHENTICATE, Token::CHALLENGE));
    }
    let asked = request.uri().path();
    let posted = request.method() == Method::POST;
    let Some(signal) = Signal::ALL.into_iter().find(|signal| asked.strip_suffix('/').unwrap_or(asked) == path(*signal))
    else {
        let valid = Signal::ALL.map(path).join(", ");
        let words = format!("{asked}: no such path here; POST to {valid}");
        let notice = if posted { Notice::UnknownPath } else { Notice::WrongMethod };
        return Err(Refused::new(StatusCode::NOT_FOUND, notice, words));
    };
    if !posted {
        let words = format!("{} {asked}: only POST is answered here", request.method());
        return Err(Refused::new(StatusCode::METHOD_NOT_ALLOWED, Notice::WrongMethod, words)
            .with(header::ALLOW, HeaderValue::from_static("POST")));
    }
    if cors::is_foreign(&shared.origins, request.headers()) {
        let words = "a web page sent this and its origin may not: --allow-origin ORIGIN allows one";
        return Err(Refused::new(StatusCode::FORBIDDEN, Notice::Origin, words));
    }
    let taken = take(shared, signal, encoding, request).await;
    taken.inspect_err(|refused| {
        if signal != Signal::Metrics && refused.notice.loses() {
            shared.notices.lose();
        }
    })
}

/// Takes an export from a sender who may send it here.
async fn take(
    shared: &Shared,
    signal: Signal,
    encoding: Option<Encoding>,
    request: Request,
) -> Result<Response, Refused> {
    let Some(encoding) = encoding else {
        let found = text(request.headers(), &header::CONTENT_TYPE).unwrap_or("none");
        let words = format!("Content-Type {found}: expected one of {}", Encoding::NAMES);
        return Err(Refused::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, Notice::UnknownType, words));
    };
    let coding = coding(request.headers())?;
    let way = Way::of(request.headers().get(way::HEADER).and_then(|ids| ids.to_str().ok()));
    let limit = shared.max_message;
    // Its room is held until the answer, and so is the room for what it is made into, which may be much larger.
    let mut coming = shared.notices.begin(signal != Signal::Metrics);
    let whole = body(shared, request, limit).await;
    coming.over();
    let whole = whole?;
    // What it inflates to, and what that is made into.
    let steps = usize::from(coding != Coding::Identity) + usize::from(encoding == Encoding::Json);
    let making = match steps {
        0 => None,
        steps => Some(shared.room.making(limit.saturating_mul(steps)).await.map_err(|_| unavailable(answer::BUSY))?),
    };
    let aside = whole.bytes.len() >= if coding == Coding::Identity { LARGE } else { coding::ASIDE };
    let read = move || {
        let payload = Payload { way, ..payload(signal, encoding, coding, whole.bytes.clone(), limit)? };
        let mut rooms = (whole, making);
        if let Some(making) = &mut rooms.1 {
            making.came_to(payload.size());
        }
        Ok((payload, rooms))
    };
    let (payload, _rooms) = if aside {
        tokio::task::spawn_blocking(read).await.map_err(|_| unavailable(answer::CLOSING))??
    } else {
        read()?
    };
    if payload.tally.snake_case > 0 {
        shared
            .notices
            .note(Notice::SnakeCase, "JSON with snake_case keys was taken; OTLP's JSON form is lowerCamelCase");
    }
    if payload.tally.passed_over + payload.tally.misplaced > 0
        && let Some(words) = payload.tally.left_out()
    {
        shared.notices.note(Notice::LeftOut, &words);
    }
    match shared.intake.offer(payload).await {
        Ok(receipt) => {
            let body = match encoding {
                Encoding::Protobuf => answer::protobuf(&receipt),
                Encoding::Json => answer::json(signal, &receipt),
            };
            let mut response = Response::new(Body::from(body));
            response.headers_mut().insert(header::CONTENT_TYPE, encoding.media_type());
            Ok(response)
        }
        Err(Refusal::Malformed(reason)) => Err(malformed(reason)),
        Err(Refusal::Busy) => Err(unavailable(answer::BUSY)),
        Err(Refusal::Closed) => Err(unavailable(answer::CLOSING)),
    }
}

fn malformed(words: impl Into<String>) -> Refused {
    Refused::new(StatusCode::BAD_REQUEST, Notice::Malformed, words)
}

fn unavailable(words: &str) -> Refused {
    Refused::new(StatusCode::SERVICE_UNAVAILABLE, Notice::Busy, words).with(header::RETRY_AFTER, answer::RETRY_SECONDS)
}

fn too_large(limit: usize) -> Refused {
    let words = format!("the body is larger than {limit} bytes (plain or inflated): send smaller batches");
    Refused::new(StatusCode::PAYLOAD_TOO_LARGE, Notice::TooLarge, words)
}

fn coding(headers: &HeaderMap) -> Result<Coding, Refused> {
    let unknown = |found: &str| {
        let words = format!("Content-Encoding {found}: expected one of {}", Coding::NAMES);
        Refused::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, Notice::UnknownType, words)
            .with(header::ACCEPT_ENCODING, HeaderValue::from_static(Coding::NAMES))
    };
    let mut codings = headers.get_all(header::CONTENT_ENCODING).iter();
    let coding = match codings.next().map(HeaderValue::to_str) {
        None => Coding::Identity,
        Some(Ok(name)) => Coding::parse(name).map_err(unknown)?,
        Some(Err(_)) => return Err(unknown("that is not text")),
    };
    if codings.next().is_some() { Err(unknown("more than once")) } else { Ok(coding) }
}

async fn body(shared: &Shared, request: Request, limit: usize) -> Result<Whole, Refused> {
    let told = text(request.headers(), &header::CONTENT_LENGTH).and_then(|length| length.parse::<u64>().ok());
    if told.is_some_and(|length| length > limit as u64) {
        return Err(too_large(limit));
    }
    match tokio::time::timeout(shared.times.body, shared.room.whole(request.into_body(), limit)).await {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(Broken::TooLarge)) => Err(too_large(limit)),
        Ok(Err(Broken::Busy)) => Err(unavailable(answer::BUSY)),
        Ok(Err(Broken::Early(how))) => {
            let words = format!("the body ended early: {how}");
            Err(Refused::new(StatusCode::BAD_REQUEST, Notice::CutOff, words))
        }
        Err(_) => Err(Refused::new(StatusCode::REQUEST_TIMEOUT, Notice::TooSlow, answer::late(shared.times.body))),
    }
}

/// Inflates and, when it is JSON, transcodes.
fn payload(signal: Signal, encoding: Encoding, coding: Coding, body: Bytes, limit: usize) -> Result<Payload, Refused> {
    let body = coding.inflate(body, limit).map_err(|error| match error {
        Inflate::TooLarge => too_large(limit),
        Inflate::Broken(reason) => malformed(reason),
    })?;
    match encoding {
        Encoding::Protobuf => Ok(Payload::otlp(signal, body)),
        Encoding::Json => {
            let mut out = Vec::with_capacity(body.len() / 2);
            let tally = json::transcode_within(limit, Shape::Request(signal), &body, &mut out).map_err(malformed)?;
            out.shrink_to_fit();
            Ok(Payload { tally, ..Payload::otlp(signal, out) })
        }
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_media_type_decides_without_case_and_parameters() {
        for (value, encoding) in [
            ("application/json; charset=utf-8", Some(Encoding::Json)),
            ("Application/JSON;v=1", Some(Encoding::Json)),
            ("application/x-protobuf; messageType=\"x\"", Some(Encoding::Protobuf)),
            ("application/protobuf", Some(Encoding::Protobuf)),
            ("text/plain", None),
            ("", None),
        ] {
            assert_eq!(Encoding::parse(value), encoding, "{value}");
        }
    }
}
