//! One export to an OTLP endpoint, over gRPC or HTTP, and what its answer means (OTLP specification, "Failures").
//!
//! Owns: transport, headers (never shown), which answers may be tried again and when. Keeps out: queues and counts (`super`).

use std::error::Error;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes};
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy::Client as Pool;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tonic::client::Grpc;
use tonic::codec::{Codec, CompressionEncoding, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::metadata::MetadataMap;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

use super::target::{Protocol, Target};
use crate::source::intake::Signal;
use crate::source::otlp::answer::{partial_success, retry_delay, status_message};
use crate::source::remote::client::{clean, root_cause};

/// How long one export may take.
const PATIENCE: Duration = Duration::from_secs(10);
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
pub enum Client {
    /// Over gRPC.
    Grpc {
        /// Connections.
        channel: Channel,
        /// Sent with every export.
        headers: MetadataMap,
        /// Whether exports are compressed.
        gzip: bool,
    },
    /// Over HTTP.
    Http {
        /// Connections.
        pool: Pool<HttpConnector, Full<Bytes>>,
        /// `http://host:port/path`.
        url: String,
        /// Sent with every export.
        headers: HeaderMap,
        /// Whether exports are compressed.
        gzip: bool,
    },
}

impl Client {
    /// A client; nothing is sent yet. Within a runtime.
    ///
    /// # Errors
    /// The address cannot be used.
    pub fn new(target: &Target, headers: HeaderMap, gzip: bool) -> Result<Self, String> {
        let connect_in = Duration::from_secs(5);
        Ok(match target.protocol {
            Protocol::Grpc => {
                let endpoint = Endpoint::from_shared(target.url()).map_err(|error| error.to_string())?;
                let channel = endpoint.connect_timeout(connect_in).tcp_nodelay(true).connect_lazy();
                Self::Grpc { channel, headers: MetadataMap::from_headers(headers), gzip }
            }
            Protocol::Http => {
                let mut connector = HttpConnector::new();
                connector.set_connect_timeout(Some(connect_in));
                connector.set_nodelay(true);
                let pool = Pool::builder(TokioExecutor::new()).build(connector);
                Self::Http { pool, url: target.url(), headers, gzip }
            }
        })
    }

    /// Sends one export request.
    pub async fn export(&self, signal: Signal, bytes: &Bytes) -> Answer {
        let sent = async {
            match self {
                Self::Grpc { channel, headers, gzip } => {
                    grpc(channel.clone(), headers.clone(), *gzip, signal, bytes.clone()).await
                }
                Self::Http { pool, url, headers, gzip } => {
                    http(pool, url, headers, *gzip, signal, bytes).await.unwrap_or_else(|why| Answer::Again(None, why))
                }
            }
        };
        let slow = || Answer::Again(None, format!("no answer within {} s", PATIENCE.as_secs()));
        tokio::time::timeout(PATIENCE, sent).await.unwrap_or_else(|_| slow())
    }
}

fn taken(body: &[u8]) -> Answer {
    let (refused, words) = partial_success(body);
    Answer::Taken(refused, clean(words.as_bytes()))
}

async fn grpc(channel: Channel, headers: MetadataMap, gzip: bool, signal: Signal, bytes: Bytes) -> Answer {
    let path = PathAndQuery::from_static(match signal {
        Signal::Traces => "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
        Signal::Logs => "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
        Signal::Metrics => "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
    });
    let mut grpc = Grpc::new(channel).accept_compressed(CompressionEncoding::Gzip).max_decoding_message_size(ANSWER);
    if gzip {
        grpc = grpc.send_compressed(CompressionEncoding::Gzip);
    }
    if let Err(error) = grpc.ready().await {
        return Answer::Again(None, root_cause(&error));
    }
    let request = tonic::Request::from_parts(headers, tonic::Extensions::default(), bytes);
    match grpc.unary(request, path, Raw).await {
        Ok(answer) => taken(answer.get_ref()),
        Err(status) => of_status(&status),
    }
}

/// What a gRPC status means.
fn of_status(status: &Status) -> Answer {
    // Nothing came from the far side: the connection is what failed.
    if let Some(source) = status.source() {
        return Answer::Again(None, root_cause(source));
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

async fn http(
    pool: &Pool<HttpConnector, Full<Bytes>>,
    url: &str,
    headers: &HeaderMap,
    gzip: bool,
    signal: Signal,
    bytes: &Bytes,
) -> Result<Answer, String> {
    let path = match signal {
        Signal::Traces => "v1/traces",
        Signal::Logs => "v1/logs",
        Signal::Metrics => "v1/metrics",
    };
    let body = if gzip { compressed(bytes) } else { bytes.clone() };
    let mut request =
        Request::post(format!("{url}/{path}")).body(Full::new(body)).map_err(|error| error.to_string())?;
    request.headers_mut().extend(headers.iter().map(|(name, value)| (name.clone(), value.clone())));
    request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
    if gzip {
        request.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    let answer = pool.request(request).await.map_err(|error| root_cause(&error))?;
    let (head, body) = answer.into_parts();
    // What it says beyond the limit, or not at all, changes nothing about what it did.
    let body = Limited::new(body, ANSWER).collect().await.map_or_else(|_| Bytes::new(), |body| body.to_bytes());
    if head.status.is_success() {
        return Ok(taken(&body));
    }
    let words = match head.headers.get(CONTENT_TYPE).is_some_and(|kind| kind == "application/x-protobuf") {
        true => status_message(&body),
        false => String::from_utf8_lossy(&body).into_owned(),
    };
    let words = format!("{}: {}", head.status.as_u16(), clean(words.as_bytes()));
    let seconds = head.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
    Ok(match head.status {
        StatusCode::TOO_MANY_REQUESTS
        | StatusCode::BAD_GATEWAY
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::GATEWAY_TIMEOUT => Answer::Again(seconds.map(Duration::from_secs), words),
        _ => Answer::Refused(words),
    })
}

fn compressed(bytes: &Bytes) -> Bytes {
    use std::io::Write;
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 6), Compression::new(3));
    // Writing to memory does not fail.
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default().into()
}

/// Hands message bytes through.
#[derive(Clone, Copy)]
struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        out.put(item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, message: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(message.copy_to_bytes(message.remaining())))
    }
}
