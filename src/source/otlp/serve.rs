//! Accepting connections and letting them go: all of them when the program ends (field case B64), the idle ones when
//! there are too many or the system has no more to give.
//!
//! Owns: the accept loop, the bound on open connections, the graceful end. Keeps out: one connection (`connection`), what is
//! served (`grpc`, `http`).

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::connection::Port;
use super::crowd::{Crowd, Entered};
use crate::source::notices::{Notice, Notices};

/// How long running requests have when the program ends.
const GRACE: Duration = Duration::from_secs(1);
/// How long nothing is accepted after the system refused a connection: it would refuse the next at once, too.
const REFUSED: Duration = Duration::from_millis(100);

/// Serves one listener until `stop` changes, then gives running requests [`GRACE`] and closes.
pub(super) async fn serve(
    listener: TcpListener,
    port: Arc<Port>,
    crowd: Crowd,
    notices: Notices,
    mut stop: watch::Receiver<()>,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            _ = stop.changed() => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let (place, word) = match crowd.enter() {
                        Entered::Free(place) => (Some(place), None),
                        Entered::Instead(place) => (Some(place), Some("the one idle longest was let go")),
                        Entered::Full => (None, Some("a further one was turned away")),
                    };
                    if let Some(word) = word {
                        let most = crowd.most();
                        let words = format!("{most} connections are open, the most there may be (--max-connections): {word}");
                        notices.note(Notice::Crowded, &words);
                    }
                    if let Some(place) = place {
                        let (port, stop) = (Arc::clone(&port), stop.clone());
                        connections.spawn(async move { port.serve(stream, &place, stop).await });
                    }
                }
                // The one connection ended before it was accepted.
                Err(error) if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset) => {}
                Err(error) => {
                    notices.note(Notice::Crowded, &refusal(&error));
                    crowd.let_one_go();
                    tokio::select! {
                        _ = stop.changed() => break,
                        () = tokio::time::sleep(REFUSED) => {}
                    }
                }
            },
        }
    }
    drop(listener);
    let _ = tokio::time::timeout(GRACE, async { while connections.join_next().await.is_some() {} }).await;
    connections.shutdown().await;
    // A stream of HTTP/2 runs beside its connection and hears a moment later that it is gone: what was cut off is counted.
    let _ = tokio::time::timeout(GRACE, async {
        while notices.under_way() > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// Why the system gives no connection, and what to do.
fn refusal(error: &io::Error) -> String {
    const NO_FILES: [i32; 2] = [23, 24];
    match error.raw_os_error() {
        Some(code) if NO_FILES.contains(&code) => {
            "no file descriptors are left for connections: those idle longest are let go; raise `ulimit -n`".into()
        }
        _ => format!("cannot accept connections: {error}"),
    }
}
