//! Accepting connections and letting them go: idle ones in time, all of them when the program ends (field case B64).
//!
//! Owns: the accept loop, time limits on silent connections, the graceful end. Keeps out: what is served (`grpc`, `http`).

use std::io::ErrorKind;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

/// How long running requests have when the program ends.
const GRACE: Duration = Duration::from_secs(1);
/// How long a connection may be silent before or within the head of a request. HTTP/2 connections may idle for good as
/// long as the peer answers pings.
const SILENCE: Duration = Duration::from_secs(60);
/// How long the answer to such a ping may take.
const PONG: Duration = Duration::from_secs(20);
/// Connections held at once by one listener; more wait in the system's queue.
const CONNECTIONS: usize = 1024;

/// Serves one listener until `stop` changes, then gives running requests [`GRACE`] and closes.
pub(super) async fn serve(listener: TcpListener, router: Router, mut stop: watch::Receiver<()>) {
    let builder = Arc::new(builder());
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let place = Arc::clone(&places).acquire_owned();
        let accepted = async {
            let place = place.await.ok()?;
            Some((listener.accept().await, place))
        };
        tokio::select! {
            biased;
            _ = stop.changed() => break,
            Some(_) = connections.join_next() => {}
            Some((accepted, place)) = accepted => match accepted {
                Ok((stream, _)) => {
                    let (builder, router, stop) = (Arc::clone(&builder), router.clone(), stop.clone());
                    connections.spawn(async move {
                        connection(stream, &builder, router, stop).await;
                        drop(place);
                    });
                }
                // Such an error belongs to the one connection; others (no file descriptors left) pass with time.
                Err(error) if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset) => {}
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            },
        }
    }
    drop(listener);
    let _ = tokio::time::timeout(GRACE, async { while connections.join_next().await.is_some() {} }).await;
    connections.shutdown().await;
}

fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(SILENCE);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(SILENCE)
        .keep_alive_timeout(PONG)
        // Exports are large: windows that do not stall a 16 MiB message at every 64 KiB.
        .initial_stream_window_size(1 << 20)
        .initial_connection_window_size(4 << 20)
        .max_concurrent_streams(128);
    builder
}

async fn connection(
    stream: TcpStream,
    builder: &Builder<TokioExecutor>,
    router: Router,
    mut stop: watch::Receiver<()>,
) {
    // Small answers should not wait for more; a socket that cannot promise that still works.
    let _ = stream.set_nodelay(true);
    tokio::select! {
        first = tokio::time::timeout(SILENCE, stream.readable()) => if first.is_err() { return },
        _ = stop.changed() => return,
    }
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router)));
    tokio::select! {
        // How a connection ended is its peer's business.
        _ = connection.as_mut() => return,
        _ = stop.changed() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}
