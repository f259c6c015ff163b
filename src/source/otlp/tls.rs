//! TLS for both protocols: the server's certificate and key, and the authority that clients' certificates must come from
//! when one is named. rustls with ring.
//!
//! Owns: reading these files, saying what is wrong with them, why a handshake failed. Keeps out: sockets (`connection`), when
//! they are read again (`renew`).

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::RwLock;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::client::verify_server_cert_signed_by_trust_anchor;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use tokio_rustls::rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use tokio_rustls::rustls::{AlertDescription, CertificateError, Error, RootCertStore, ServerConfig};

pub(super) mod renew;

/// The largest certificate or key file, bytes.
const LARGEST: u64 = 1 << 20;
/// What is spoken inside, the preferred first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// The files of a server that speaks TLS; all PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// The server's certificate, followed by those between it and its authority.
    pub certificate: PathBuf,
    /// The key of that certificate, without a passphrase.
    pub key: PathBuf,
    /// The authority whose certificates clients must show; without it, clients show none.
    pub client_ca: Option<PathBuf>,
}

/// TLS, ready to serve. Clones serve the same.
#[derive(Clone, Debug)]
pub struct Tls {
    config: Arc<RwLock<Arc<ServerConfig>>>,
    cautions: Vec<String>,
    clients: Clients,
    files: Files,
    /// What the files were when they were read.
    stamp: renew::Stamp,
    /// The time since the Unix epoch when they were read first, and since when that is.
    read: (Duration, Instant),
}

/// Whom TLS lets in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clients {
    /// Anybody.
    All,
    /// Those with a certificate of the named authority.
    Certified,
}

impl Tls {
    /// Reads the files. `now` is the time since the Unix epoch, to tell an expired certificate.
    ///
    /// # Errors
    /// The file that is not what it should be, what was expected and what to do.
    pub fn load(files: &Files, now: Duration) -> Result<Self, String> {
        let stamp = renew::Stamp::of(files);
        let provider = Arc::new(ring::default_provider());
        let chain = certificates(&files.certificate).map_err(|error| format!("--tls-cert {error}"))?;
        let mut cautions = Vec::new();
        let key = key(&files.key, &mut cautions).map_err(|error| format!("--tls-key {error}"))?;
        if let Some(word) = validity(&chain[0], now, &provider)? {
            cautions.push(format!("the certificate in {} {word}: senders will refuse it", files.certificate.display()));
        }
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("TLS: {error}"))?;
        let (builder, clients) = match &files.client_ca {
            None => (builder.with_no_client_auth(), Clients::All),
            Some(path) => {
                let verifier = authority(path, provider).map_err(|error| format!("--tls-client-ca {error}"))?;
                (builder.with_client_cert_verifier(verifier), Clients::Certified)
            }
        };
        let mut config = builder.with_single_cert(chain, key).map_err(|error| match error {
            Error::InconsistentKeys(_) => format!(
                "--tls-key {}: expected the key of the certificate in {}, found another key",
                files.key.display(),
                files.certificate.display()
            ),
            error => format!("--tls-cert {}, --tls-key {}: {error}", files.certificate.display(), files.key.display()),
        })?;
        config.alpn_protocols = PROTOCOLS.iter().map(|protocol| protocol.to_vec()).collect();
        let config = Arc::new(RwLock::new(Arc::new(config)));
        Ok(Self { config, cautions, clients, files: files.clone(), stamp, read: (now, Instant::now()) })
    }

    /// Reads the files again, and serves what is in them from now on; gives what is worth telling of them.
    ///
    /// # Errors
    /// As [`Tls::load`]; what was served before goes on.
    fn read_anew(&self) -> Result<Vec<String>, String> {
        let (first, since) = self.read;
        let anew = Self::load(&self.files, first + since.elapsed())?;
        *self.config.write() = Arc::clone(&anew.config.read());
        Ok(anew.cautions)
    }

    /// Whom it lets in.
    pub fn clients(&self) -> Clients {
        self.clients
    }

    /// What is worth telling whoever set it up.
    pub(super) fn cautions(&self) -> impl Iterator<Item = String> {
        self.cautions.iter().cloned()
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.config.read()))
    }
}

/// The certificates of a PEM file; at least one.
pub(in crate::source) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let name = path.display();
    let bytes = read(path, &open(path)?)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let found = found.map_err(|error| format!("{name}: expected certificates in PEM, found: {error}"))?;
    if found.is_empty() {
        return Err(format!(
            "{name}: expected at least one block -----BEGIN CERTIFICATE-----, found {}",
            blocks(&bytes, &["PRIVATE KEY", "CERTIFICATE REQUEST"])
        ));
    }
    match found.iter().find_map(|one| ParsedCertificate::try_from(one).err()) {
        Some(error) => Err(format!("{name}: a certificate in it cannot be read: {error}")),
        None => Ok(found),
    }
}

pub(in crate::source) fn key(path: &Path, cautions: &mut Vec<String>) -> Result<PrivateKeyDer<'static>, String> {
    let name = path.display();
    let file = open(path)?;
    if open_to_others(&file) {
        cautions.push(format!("the key file {name} can be read by others: chmod 600 {name}"));
    }
    let bytes = read(path, &file)?;
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|_| {
        let found = blocks(&bytes, &["ENCRYPTED PRIVATE KEY", "CERTIFICATE", "PUBLIC KEY"]);
        let advice =
            if found.contains("ENCRYPTED") { "; take the passphrase off: openssl pkey -in OLD -out NEW" } else { "" };
        format!("{name}: expected a block -----BEGIN PRIVATE KEY----- without a passphrase, found {found}{advice}")
    })
}

/// Names what a PEM file holds instead.
fn blocks(bytes: &[u8], known: &[&'static str]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let begins = |kind: &&&'static str| text.contains(&format!("-----BEGIN {kind}-----"));
    known.iter().find(begins).map_or_else(|| "none".to_owned(), |kind| format!("a block {kind}"))
}

fn authority(
    path: &Path,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn tokio_rustls::rustls::server::danger::ClientCertVerifier>, String> {
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots(path)?), provider)
        .build()
        .map_err(|error| format!("{}: {error}", path.display()))
}

/// The authorities in a PEM file.
pub(in crate::source) fn roots(path: &Path) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots
            .add(certificate)
            .map_err(|error| format!("{}: a certificate in it cannot be used: {error}", path.display()))?;
    }
    Ok(roots)
}

fn open(path: &Path) -> Result<File, String> {
    File::open(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// A small file whole.
fn read(path: &Path, file: &File) -> Result<Vec<u8>, String> {
    let name = path.display();
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|error| format!("{name}: {error}"))?;
    if bytes.len() as u64 > LARGEST {
        return Err(format!("{name}: expected a PEM file, found more than {LARGEST} bytes"));
    }
    Ok(bytes)
}

/// Whether others than its owner can read a file. A pipe has no such others.
pub(super) fn open_to_others(file: &File) -> bool {
    use std::os::unix::fs::MetadataExt;
    file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.mode() & 0o077 != 0)
}

/// What is wrong with the time of a certificate, in words that follow it. Who issued it does not matter here.
fn validity(
    certificate: &CertificateDer<'_>,
    now: Duration,
    provider: &CryptoProvider,
) -> Result<Option<String>, String> {
    let parsed = ParsedCertificate::try_from(certificate).map_err(|error| format!("--tls-cert: {error}"))?;
    let now = UnixTime::since_unix_epoch(now);
    let algorithms = provider.signature_verification_algorithms.all;
    // Without any authority this always fails; the time is what it looks at first.
    let looked = verify_server_cert_signed_by_trust_anchor(&parsed, &RootCertStore::empty(), &[], now, algorithms);
    let days = |from: UnixTime, to: UnixTime| to.as_secs().saturating_sub(from.as_secs()).div_ceil(86_400);
    Ok(match looked {
        Err(Error::InvalidCertificate(CertificateError::ExpiredContext { time, not_after })) => {
            Some(format!("expired {} days ago", days(not_after, time)))
        }
        Err(Error::InvalidCertificate(CertificateError::NotValidYetContext { time, not_before })) => {
            Some(format!("is valid in {} days only", days(time, not_before)))
        }
        _ => None,
    })
}

/// Why a handshake failed, in words; `None` when the peer only went away, as a probe does.
pub(super) fn why(error: &io::Error) -> Option<String> {
    let Some(error) = error.get_ref().and_then(|error| error.downcast_ref::<Error>()) else {
        return (error.kind() == io::ErrorKind::InvalidData).then(|| format!("the TLS handshake failed: {error}"));
    };
    use AlertDescription as Alert;
    Some(match error {
        Error::AlertReceived(
            Alert::UnknownCA | Alert::BadCertificate | Alert::CertificateUnknown | Alert::UnsupportedCertificate,
        ) => "a sender does not trust the certificate of --tls-cert: give it the authority that issued it".into(),
        Error::AlertReceived(Alert::CertificateExpired) => {
            "a sender says that the certificate of --tls-cert has expired".into()
        }
        Error::NoCertificatesPresented => "a sender showed no certificate; --tls-client-ca asks for one".into(),
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "a sender's certificate was not issued by the authority in --tls-client-ca".into()
        }
        Error::InvalidCertificate(CertificateError::Expired | CertificateError::ExpiredContext { .. }) => {
            "a sender's certificate has expired".into()
        }
        Error::InvalidCertificate(how) => {
            format!("a sender's certificate cannot be verified with --tls-client-ca: {how}")
        }
        Error::NoApplicationProtocol => "a sender speaks neither h2 nor http/1.1 inside TLS".into(),
        error => format!("the TLS handshake failed: {error}"),
    })
}

#[cfg(test)]
mod tests;
