//! The OTLP endpoint: gRPC and HTTP, one decoder for both.
//!
//! [`Endpoint::bind`] binds before anything else starts, so that a taken port is one line on a quiet terminal;
//! [`Bound::serve`] then serves until told to stop. Owns: OTLP in all its forms. Keeps out: what is done with it.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinSet;

use super::intake::Intake;
use super::notices::Notices;

mod answer;
mod bind;
mod body;
pub(super) mod coding;
mod cors;
mod grpc;
mod http;
pub mod json;
mod logs;
mod serve;
mod walk;
pub mod wire;

pub use bind::{Address, BindError};

/// The largest message by default, in bytes: a trace record may be exactly 4 MiB (spec request-trace.md).
pub const MAX_MESSAGE: usize = 16 << 20;

/// How the endpoint is set up.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where gRPC listens (`--grpc`).
    pub grpc: Address,
    /// Where HTTP listens (`--http`).
    pub http: Address,
    /// The largest message taken, in bytes, after inflating.
    pub max_message: usize,
    /// Web origins that may send (`*`: any); none by default.
    pub origins: Vec<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            grpc: Address::Loopback(4317),
            http: Address::Loopback(4318),
            max_message: MAX_MESSAGE,
            origins: Vec::new(),
        }
    }
}

/// The OTLP endpoint.
pub struct Endpoint;

impl Endpoint {
    /// Binds every address, or none.
    ///
    /// # Errors
    /// The address that could not be bound; prints as one line naming it and the option to change.
    pub fn bind(settings: Settings) -> Result<Bound, BindError> {
        let grpc = bind::bind(settings.grpc, "--grpc")?;
        let http = bind::bind(settings.http, "--http")?;
        Ok(Bound { grpc, http, settings })
    }
}

/// An endpoint that is bound and not yet served: connections already queue.
#[derive(Debug)]
pub struct Bound {
    grpc: Vec<TcpListener>,
    http: Vec<TcpListener>,
    settings: Settings,
}

impl Bound {
    /// The addresses on which gRPC listens.
    pub fn grpc(&self) -> Vec<SocketAddr> {
        addresses(&self.grpc)
    }

    /// The addresses on which HTTP listens.
    pub fn http(&self) -> Vec<SocketAddr> {
        addresses(&self.http)
    }

    /// Whether only this machine can reach it; worth a mark on the screen when not (field case B29).
    pub fn is_loopback(&self) -> bool {
        self.grpc().iter().chain(&self.http()).all(|address| address.ip().to_canonical().is_loopback())
    }

    /// Serves until `shutdown` is ready: then accepts nothing more, gives running requests a second, and closes.
    ///
    /// # Errors
    /// When the runtime cannot take the listeners over.
    pub async fn serve(
        self,
        intake: Intake,
        notices: Notices,
        shutdown: impl Future<Output = ()>,
    ) -> std::io::Result<()> {
        let Settings { max_message, origins, .. } = self.settings;
        let shared = Arc::new(Shared { intake, notices, max_message, origins, room: body::Room::new(max_message) });
        let grpc = self.grpc.into_iter().map(|listener| (listener, grpc::router(Arc::clone(&shared))));
        let http = self.http.into_iter().map(|listener| (listener, http::router(Arc::clone(&shared))));
        let (stop, stopped) = watch::channel(());
        let mut serving = JoinSet::new();
        for (listener, router) in grpc.chain(http) {
            listener.set_nonblocking(true)?;
            let listener = tokio::net::TcpListener::from_std(listener)?;
            serving.spawn(serve::serve(listener, router, stopped.clone()));
        }
        shutdown.await;
        // Nobody listening any more would mean that all has ended already.
        let _ = stop.send(());
        while serving.join_next().await.is_some() {}
        Ok(())
    }
}

fn addresses(listeners: &[TcpListener]) -> Vec<SocketAddr> {
    listeners.iter().filter_map(|listener| listener.local_addr().ok()).collect()
}

/// What every request needs.
struct Shared {
    intake: Intake,
    notices: Notices,
    max_message: usize,
    origins: Vec<String>,
    room: body::Room,
}

#[cfg(test)]
mod tests;
