//! One connection, from its first byte on: whether it speaks TLS, the handshake, which HTTP it speaks, and the limits of
//! both HTTPs, set on purpose.
//!
//! Owns: everything about a peer before there is a request, and a peer that stops reading. Keeps out: accepting (`serve`),
//! what is served (`grpc`, `http`).

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::http::{Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;
use tonic::Status;
use tonic::codegen::Service;

use super::crowd::{Place, Requests};
use super::stream::{Stream, Version};
use super::{Times, grpc, tls};
use crate::source::notices::{Notice, Notices};

/// How long a connection that was let go may take to end by itself.
const FAREWELL: Duration = Duration::from_secs(1);
/// The head of an HTTP/1 request, bytes. Also how much is read at once of its body.
const HEAD: usize = 64 << 10;
/// Its headers.
const HEADERS: usize = 64;
/// The headers of an HTTP/2 request, bytes as RFC 9113 6.5.2 counts them.
const HEADER_LIST: u32 = 16 << 10;
/// Requests under way at once on an HTTP/2 connection. How much of their bodies lies here is bounded elsewhere (`body`).
const STREAMS: u32 = 128;
/// HTTP/2 requests that may be taken back before they were looked at, and wrong ones that may be turned away, before the
/// connection is closed ("rapid reset").
const RESETS: usize = 32;
/// What lies ready to be written of an HTTP/2 answer; answers are small.
const SEND_BUFFER: usize = 64 << 10;

/// The first byte of a TLS handshake; no HTTP begins with it.
const HANDSHAKE: u8 = 0x16;

/// What is served on a listener, and how.
pub(super) struct Port {
    router: Router,
    tls: Option<tls::Tls>,
    notices: Notices,
    times: Times,
    http1: Builder<TokioExecutor>,
    http2: Builder<TokioExecutor>,
}

impl Port {
    /// Serves this, inside TLS if there is any.
    pub fn new(router: Router, tls: Option<tls::Tls>, notices: Notices, times: Times) -> Self {
        let builder = builder(times);
        let http1 = builder.clone().http1_only();
        Self { router, tls, notices, times, http1, http2: builder.http2_only() }
    }

    /// Serves one connection until it ends, has to leave, or `stop` changes.
    pub async fn serve(&self, stream: TcpStream, place: &Place, mut stop: watch::Receiver<()>) {
        // Small answers should not wait for more; a socket that cannot promise that still works.
        let _ = stream.set_nodelay(true);
        let mut first = [0];
        tokio::select! {
            peeked = timeout(self.times.silence, stream.peek(&mut first)) => if !matches!(peeked, Ok(Ok(1))) { return },
            _ = stop.changed() => return,
            () = place.leave() => return,
        }
        match (&self.tls, first[0] == HANDSHAKE) {
            (None, false) => self.open(stream, self.router.clone(), place, stop).await,
            (Some(tls), true) => {
                let greeted = tokio::select! {
                    greeted = timeout(self.times.opening, tls.acceptor().accept(stream)) => greeted,
                    _ = stop.changed() => return,
                    () = place.leave() => return,
                };
                match greeted {
                    Ok(Ok(stream)) => self.open(stream, self.router.clone(), place, stop).await,
                    Ok(Err(error)) => {
                        if let Some(words) = tls::why(&error) {
                            self.notices.note(Notice::Tls, &words);
                        }
                    }
                    Err(_) => self.notices.note(Notice::TooSlow, "a TLS handshake did not end in time"),
                }
            }
            (Some(_), false) => {
                self.notices.note(Notice::Tls, PLAIN);
                self.open(stream, Router::new().fallback(tell_plain), place, stop).await;
            }
            (None, true) => {
                self.notices.note(Notice::Tls, ENCRYPTED);
                // Most clients tell the user what this is; nothing inside TLS could be said without a certificate.
                let mut stream = stream;
                let answer = format!(
                    "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{ENCRYPTED}",
                    ENCRYPTED.len()
                );
                let _ = timeout(FAREWELL, stream.write_all(answer.as_bytes())).await;
            }
        }
    }

    /// Serves HTTP of either version.
    async fn open<S>(&self, stream: S, router: Router, place: &Place, mut stop: watch::Receiver<()>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let opened = tokio::select! {
            opened = timeout(self.times.opening, Stream::open(stream, self.times.stall)) => opened,
            _ = stop.changed() => return,
            () = place.leave() => return,
        };
        let Ok(Ok((version, stream))) = opened else { return };
        let builder = match version {
            Version::Http1 => &self.http1,
            Version::Http2 => &self.http2,
        };
        let service = TowerToHyperService::new(Counted { router, requests: place.requests() });
        let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
        tokio::select! {
            // How a connection ended is its peer's business.
            _ = connection.as_mut() => return,
            _ = stop.changed() => {}
            () = place.leave() => {}
        }
        connection.as_mut().graceful_shutdown();
        let _ = timeout(FAREWELL, connection).await;
    }
}

fn builder(times: Times) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(times.silence).max_buf_size(HEAD).max_headers(HEADERS);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(times.silence)
        .keep_alive_timeout(times.pong)
        // Exports are large: windows that do not stall a 16 MiB message at every 64 KiB.
        .initial_stream_window_size(1 << 20)
        .initial_connection_window_size(4 << 20)
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(HEADER_LIST)
        .max_pending_accept_reset_streams(RESETS)
        .max_local_error_reset_streams(RESETS)
        .max_send_buf_size(SEND_BUFFER);
    builder
}

/// What a sender without TLS is told where TLS is spoken.
const PLAIN: &str = "this port speaks TLS and a sender did not: its endpoint must begin with https://";
/// What a sender with TLS is told where none is spoken.
const ENCRYPTED: &str = "this port speaks no TLS and a sender did: its endpoint must begin with http://, or give reqtop --tls-cert and --tls-key";

/// Answers everything with a word about TLS, in the form of the request.
async fn tell_plain(request: axum::extract::Request) -> Response {
    if grpc::is_grpc(request.headers()) {
        return Status::failed_precondition(PLAIN).into_http();
    }
    (StatusCode::BAD_REQUEST, [(header::CONNECTION, "close")], format!("{PLAIN}\n")).into_response()
}

/// A router that has its requests counted.
#[derive(Clone)]
struct Counted {
    router: Router,
    requests: Requests,
}

impl<B> Service<Request<B>> for Counted
where
    Router: Service<Request<B>, Response = Response, Error = Infallible>,
    <Router as Service<Request<B>>>::Future: Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.router.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (busy, answer) = (self.requests.busy(), self.router.call(request));
        Box::pin(async move {
            let answer = answer.await;
            drop(busy);
            answer
        })
    }
}
