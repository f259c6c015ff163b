//! Certificates that are renewed while the program runs: the files are looked at now and then, and read anew when they are
//! other ones than before. What cannot be used is told, and what was there before goes on.
//!
//! Owns: noticing that. Keeps out: reading the files (`tls`), sockets. Connections that are open keep what they began with.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::watch;

use super::{Files, Tls};
use crate::source::notices::{Notice, Notices};

/// How often the files are looked at.
pub(in crate::source::otlp) const EVERY: Duration = Duration::from_secs(2);

/// What tells whether a file is another than it was: which one it is, how large, and when it was last changed.
type File = Option<(u64, u64, (i64, i64), (i64, i64))>;

/// Of the certificate, its key, and the authority of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp([File; 3]);

impl Stamp {
    pub fn of(files: &Files) -> Self {
        let of = |path: &PathBuf| {
            let found = fs::metadata(path).ok()?;
            let changed = (found.ctime(), found.ctime_nsec());
            Some((found.ino(), found.size(), (found.mtime(), found.mtime_nsec()), changed))
        };
        Self([of(&files.certificate), of(&files.key), files.client_ca.as_ref().and_then(of)])
    }
}

/// Keeps what is served as the files have it, until `stop` changes.
pub(in crate::source::otlp) async fn keep(tls: Tls, every: Duration, notices: Notices, mut stop: watch::Receiver<()>) {
    let (mut known, mut tried) = (tls.stamp, None);
    loop {
        tokio::select! {
            _ = stop.changed() => return,
            () = tokio::time::sleep(every) => {}
        }
        let found = Stamp::of(&tls.files);
        if found == known {
            continue;
        }
        let reading = tls.clone();
        let Ok(read) = tokio::task::spawn_blocking(move || reading.read_anew()).await else { continue };
        match read {
            Ok(cautions) => {
                known = found;
                let name = tls.files.certificate.display();
                notices.note(Notice::Certificate, &format!("the certificate in {name} was read anew"));
                cautions.iter().for_each(|words| notices.note(Notice::Certificate, words));
            }
            // They are written one after the other: it is told when it is no better at the next look.
            Err(_) if tried != Some(found) => tried = Some(found),
            Err(why) => {
                known = found;
                notices.note(Notice::Certificate, &format!("the certificate from before goes on: {why}"));
            }
        }
    }
}
