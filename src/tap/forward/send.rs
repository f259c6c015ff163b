//! One export to an OTLP endpoint, over gRPC or HTTP, and what its answer means (OTLP specification, "Failures").
//!
//! Owns: transport, headers (never shown), which answers may be tried again and when. Keeps out: queues and counts (`super`).

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER};
use http::response::Parts;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as Pool;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tonic::client::Grpc;
use tonic::codec::CompressionEncoding;
use tonic::metadata::MetadataMap;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};
use tower::{ServiceExt, service_fn};

use super::Raw;
use super::target::{Protocol, Target};
use crate::source::intake::Signal;
use crate::source::otlp::answer::{partial_success, retry_delay, status_message};
use crate::source::remote::client::{clean, root_cause};
use crate::source::{trust, way};

/// How long one export may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a connection may take to be made.
const CONNECT_IN: Duration = Duration::from_secs(5);
/// The options that name the files of TLS.
const NAMES: trust::Names = trust::Names { ca: "--forward-ca", cert: "--forward-cert", key: "--forward-key" };
/// The longest answer that is read, bytes.
const ANSWER: usize = 64 << 10;

/// What a far side made of an export.
#[derive(Debug, PartialEq)]
pub enum Answer {
    /// Taken, but for so many of its spans or records, which must not be sent again; and the far side's words on it.
    Taken(u64, String),
    /// To be sent again, after this time if it says so.
    Again(Option<Duration>, String),
    /// Never to be taken.
    Refused(String),
}

/// A client of one endpoint.
#[derive(Clone)]
pub struct Client {
    transport: Transport,
    /// Sent with every export.
    headers: HeaderMap,
    /// Whether exports are compressed.
    gzip: bool,
}

#[derive(Clone)]
enum Transport {
    Grpc(Channel),
    Http { pool: Box<HttpPool>, url: String },
}

type HttpPool = Pool<HttpsConnector<HttpConnector>, Full<Bytes>>;

impl Client {
    /// A client; nothing is sent yet. Within a runtime.
    ///
    /// # Errors
    /// The address or a file of TLS cannot be used.
    pub fn new(target: &Target, headers: HeaderMap, gzip: bool, files: &trust::Files) -> Result<Self, String> {
        let mut tcp = HttpConnector::new();
        tcp.set_connect_timeout(Some(CONNECT_IN));
        tcp.set_nodelay(true);
        tcp.enforce_http(false);
        let tls = trust::client(files, NAMES, target.is_tls)?;
        let connector = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
        let transport = match target.protocol {
            Protocol::Grpc => {
                let connector = connector.enable_http2().wrap_connector(tcp);
                let url: Uri = target.url().parse().map_err(|error| format!("{target}: {error}"))?;
                // What tonic connects to looks like plain text to it: TLS is the connector's.
                let place = format!("http://{}", target.place());
                let endpoint = Endpoint::from_shared(place).map_err(|error| format!("{target}: {error}"))?;
                let endpoint = endpoint.origin(url.clone()).connect_timeout(CONNECT_IN);
                let connector = service_fn(move |_| connector.clone().oneshot(url.clone()));
                Transport::Grpc(endpoint.connect_with_connector_lazy(connector))
            }
            Protocol::Http => {
                let connector = connector.enable_http1().wrap_connector(tcp);
                let pool = Box::new(Pool::builder(TokioExecutor::new()).build(connector));
                Transport::Http { pool, url: target.url() }
            }
        };
        Ok(Self { transport, headers, gzip })
    }

    /// Sends one export request that has come this way.
    pub async fn export(&self, signal: Signal, bytes: &Bytes, way: &str) -> Answer {
        let mut headers = self.headers.clone();
        headers.extend(HeaderValue::from_str(way).ok().map(|way| (HeaderName::from_static(way::HEADER), way)));
        let sent = async {
            match &self.transport {
                Transport::Grpc(channel) => self.grpc(channel.clone(), headers, signal, bytes.clone()).await,
                Transport::Http { pool, url } => {
                    self.http(pool, url, headers, signal, bytes).await.unwrap_or_else(|why| Answer::Again(None, why))
                }
            }
        };
        let slow = || Answer::Again(None, format!("no answer within {} s", PATIENCE.as_secs()));
        tokio::time::timeout(PATIENCE, sent).await.unwrap_or_else(|_| slow())
    }

    async fn grpc(&self, channel: Channel, headers: HeaderMap, signal: Signal, bytes: Bytes) -> Answer {
        let path = PathAndQuery::from_static(match signal {
            Signal::Traces => "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
            Signal::Logs => "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
            Signal::Metrics => "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
        });
        let gzip = CompressionEncoding::Gzip;
        let mut grpc = Grpc::new(channel).accept_compressed(gzip).max_decoding_message_size(ANSWER);
        if self.gzip {
            grpc = grpc.send_compressed(gzip);
        }
        if let Err(error) = grpc.ready().await {
            return Answer::Again(None, why(&error));
        }
        let request =
            tonic::Request::from_parts(MetadataMap::from_headers(headers), tonic::Extensions::default(), bytes);
        match grpc.unary(request, path, Raw).await {
            Ok(answer) => taken(answer.get_ref()),
            Err(status) => of_status(&status),
        }
    }

    async fn http(
        &self,
        pool: &HttpPool,
        url: &str,
        mut headers: HeaderMap,
        signal: Signal,
        bytes: &Bytes,
    ) -> Result<Answer, String> {
        let path = match signal {
            Signal::Traces => "v1/traces",
            Signal::Logs => "v1/logs",
            Signal::Metrics => "v1/metrics",
        };
        let body = if self.gzip { compressed(bytes) } else { bytes.clone() };
        let mut request =
            Request::post(format!("{url}/{path}")).body(Full::new(body)).map_err(|error| error.to_string())?;
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        if self.gzip {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        *request.headers_mut() = headers;
        let answer = pool.request(request).await.map_err(|error| why(&error))?;
        let (head, body) = answer.into_parts();
        // What it says beyond the limit, or not at all, changes nothing about what it did.
        let body = Limited::new(body, ANSWER).collect().await.map_or_else(|_| Bytes::new(), |body| body.to_bytes());
        Ok(of_http(&head, &body))
    }
}

/// Why there was no answer.
fn why(error: &(dyn Error + 'static)) -> String {
    match trust::distrust(error) {
        Some(why) => {
            format!("certificate not accepted: {}; --forward-ca FILE names its authority", clean(why.as_bytes()))
        }
        None => root_cause(error),
    }
}

/// What an HTTP answer means.
fn of_http(head: &Parts, body: &[u8]) -> Answer {
    if head.status.is_success() {
        return taken(body);
    }
    let words = match head.headers.get(CONTENT_TYPE).is_some_and(|kind| kind == "application/x-protobuf") {
        true => status_message(body),
        false => String::from_utf8_lossy(body).into_owned(),
    };
    let words = match clean(words.as_bytes()) {
        none if none.is_empty() => head.status.to_string(),
        words => format!("{}: {words}", head.status.as_u16()),
    };
    let pause = head.headers.get(RETRY_AFTER).and_then(|value| pause(value.to_str().ok()?.trim()));
    match head.status {
        StatusCode::TOO_MANY_REQUESTS
        | StatusCode::BAD_GATEWAY
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::GATEWAY_TIMEOUT => Answer::Again(pause, words),
        _ => Answer::Refused(words),
    }
}

/// A `Retry-After`: seconds, or a date (RFC 9110, 10.2.3).
fn pause(text: &str) -> Option<Duration> {
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let until = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
    Duration::try_from(until.duration_since(jiff::Timestamp::now())).ok()
}

fn taken(body: &[u8]) -> Answer {
    let (refused, words) = partial_success(body);
    Answer::Taken(refused, clean(words.as_bytes()))
}

/// What a gRPC status means.
fn of_status(status: &Status) -> Answer {
    // Nothing came from the far side: the connection is what failed.
    if let Some(source) = status.source() {
        return Answer::Again(None, why(source));
    }
    let words = format!("{:?}: {}", status.code(), clean(status.message().as_bytes()));
    let delay = retry_delay(status.details());
    match status.code() {
        Code::Cancelled
        | Code::DeadlineExceeded
        | Code::Aborted
        | Code::OutOfRange
        | Code::Unavailable
        | Code::DataLoss => Answer::Again(delay, words),
        Code::ResourceExhausted if delay.is_some() => Answer::Again(delay, words),
        _ => Answer::Refused(words),
    }
}

fn compressed(bytes: &Bytes) -> Bytes {
    use std::io::Write;
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 6), Compression::new(3));
    // Writing to memory does not fail.
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::otlp::answer::status;

    #[test]
    fn pauses_are_asked_for_in_seconds_or_by_a_date() {
        assert_eq!(pause("7"), Some(Duration::from_secs(7)));
        assert!(pause("Wed, 21 Oct 2099 07:28:00 GMT").is_some_and(|pause| pause.as_secs() > 1_000_000));
        assert_eq!((pause("Wed, 21 Oct 2015 07:28:00 GMT"), pause("soon"), pause("-1")), (None, None, None));
    }

    #[test]
    fn what_is_too_large_is_refused_unless_its_time_may_come() {
        let of = |code, retry| of_status(&Status::with_details(code, "why", status(code as i32, "why", retry).into()));
        let words = |code: Code| format!("{code:?}: why");
        let (large, range) = (Code::ResourceExhausted, Code::OutOfRange);
        assert_eq!(of(large, false), Answer::Refused(words(large)));
        assert_eq!(of(large, true), Answer::Again(Some(Duration::from_secs(1)), words(large)));
        assert_eq!(of(range, false), Answer::Again(None, words(range)));
        // No details at all.
        assert_eq!(of_status(&Status::resource_exhausted("why")), Answer::Refused(words(large)));
    }

    #[test]
    fn fewer_than_none_rejected_is_none() {
        // partial_success { rejected_spans: -1 }
        let body = [0x0a, 11, 0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(taken(&body), Answer::Taken(0, String::new()));
        assert_eq!(taken(&[0x0a, 2, 0x08, 3]), Answer::Taken(3, String::new()));
    }
}
