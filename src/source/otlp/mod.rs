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

pub mod answer;
mod bind;
mod body;
pub(super) mod coding;
mod connection;
mod cors;
mod crowd;
mod framing;
mod grpc;
mod http;
pub mod json;
mod logs;
mod serve;
mod stream;
mod times;
pub(super) mod tls;
mod token;
mod walk;
pub mod wire;

pub use bind::{Address, BindError};
pub use times::Times;
pub use tls::{Clients, Files, Tls};
pub use token::Token;

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
    /// What senders must show; anyone may send without it.
    pub token: Option<Token>,
    /// TLS for both protocols; plain text without it.
    pub tls: Option<Tls>,
    /// Connections over all listeners; beyond, idle ones are let go.
    pub max_connections: usize,
    /// How long peers may take.
    pub times: Times,
}

/// Connections over all listeners by default: the exporters of a cluster of hundreds of processes.
pub const MAX_CONNECTIONS: usize = 2048;

impl Default for Settings {
    fn default() -> Self {
        Self {
            grpc: Address::Loopback(4317),
            http: Address::Loopback(4318),
            max_message: MAX_MESSAGE,
            origins: Vec::new(),
            token: None,
            tls: None,
            max_connections: MAX_CONNECTIONS,
            times: Times::default(),
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

    /// The addresses that others than this machine can reach; worth a mark on the screen (field case B29).
    pub fn open(&self) -> Vec<SocketAddr> {
        let all = self.grpc().into_iter().chain(self.http());
        all.filter(|address| !address.ip().to_canonical().is_loopback()).collect()
    }

    /// What senders have to show.
    pub fn guard(&self) -> Guard {
        let Settings { token, tls, .. } = &self.settings;
        Guard { token: token.is_some(), tls: tls.as_ref().map(Tls::clients) }
    }

    /// What whoever started it should know: who can reach it, and what its files leave open. A sentence each.
    pub fn cautions(&self) -> Vec<String> {
        let mut cautions = Vec::new();
        if !self.open().is_empty() {
            let open = self.open().iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            cautions.push(match self.guard() {
                Guard { token: false, tls: None } => format!(
                    "anyone who can reach {open} can send, and read what is sent: \
                     give --token-file, and --tls-cert with --tls-key"
                ),
                Guard { token: true, tls: None } => format!(
                    "others can reach {open}, and read what is sent, the token too: give --tls-cert with --tls-key"
                ),
                Guard { token: false, tls: Some(Clients::All) } => {
                    format!("anyone who can reach {open} can send: give --token-file or --tls-client-ca")
                }
                Guard { .. } => format!("others can reach {open}"),
            });
        }
        let Settings { token, tls, .. } = &self.settings;
        cautions.extend(token.iter().flat_map(Token::cautions));
        cautions.extend(tls.iter().flat_map(Tls::cautions));
        cautions
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
        let Settings { max_message, origins, token, tls, max_connections, times, .. } = self.settings;
        let room = body::Room::new(max_message);
        let crowd = crowd::Crowd::new(max_connections);
        let port = |router| Arc::new(connection::Port::new(router, tls.clone(), notices.clone(), times));
        let shared = Arc::new(Shared { intake, notices: notices.clone(), max_message, origins, token, room, times });
        let (grpc, http) = (port(grpc::router(Arc::clone(&shared))), port(http::router(shared)));
        let grpc = self.grpc.into_iter().map(|listener| (listener, Arc::clone(&grpc)));
        let http = self.http.into_iter().map(|listener| (listener, Arc::clone(&http)));
        let (stop, stopped) = watch::channel(());
        let mut serving = JoinSet::new();
        if let Some(tls) = &tls {
            serving.spawn(tls::renew::keep(tls.clone(), tls::renew::EVERY, notices.clone(), stopped.clone()));
        }
        for (listener, port) in grpc.chain(http) {
            listener.set_nonblocking(true)?;
            let listener = tokio::net::TcpListener::from_std(listener)?;
            serving.spawn(serve::serve(listener, port, crowd.clone(), notices.clone(), stopped.clone()));
        }
        shutdown.await;
        // Nobody listening any more would mean that all has ended already.
        let _ = stop.send(());
        while serving.join_next().await.is_some() {}
        Ok(())
    }
}

/// What senders have to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard {
    /// A token.
    pub token: bool,
    /// That they speak TLS, and who may.
    pub tls: Option<Clients>,
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
    token: Option<Token>,
    room: body::Room,
    times: Times,
}

#[cfg(test)]
mod tests;
