//! TLS as a client: whom it trusts, and the certificate it shows where one is asked for. rustls with ring.
//!
//! Owns: choosing the authorities (a file's or the system's), why a server is not trusted. Keeps out: reading PEM
//! (`otlp::tls`), connections (those who connect).

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

use super::otlp::tls;

/// The options by which a client's files are named, for sentences about them.
#[derive(Clone, Copy, Debug)]
pub struct Names {
    /// Of the authority.
    pub ca: &'static str,
    /// Of the certificate shown.
    pub cert: &'static str,
    /// Of its key.
    pub key: &'static str,
}

/// The files of a client that speaks TLS; all PEM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// The authorities that a server's certificate must come from; without it, those of the system.
    pub authority: Option<PathBuf>,
    /// The certificate that is shown to a server that asks for one, and its key.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// How a client speaks TLS; what is spoken inside is for whoever connects to say. Where nothing `is_checked`, no authorities
/// are needed.
///
/// # Errors
/// The file that is not what it should be, or that there is nothing to check a server against.
pub fn client(files: &Files, names: Names, is_checked: bool) -> Result<ClientConfig, String> {
    let roots = match &files.authority {
        Some(path) => tls::roots(path).map_err(|error| format!("{} {error}", names.ca))?,
        None if is_checked => system_roots(names)?,
        None => RootCertStore::empty(),
    };
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS: {error}"))?
        .with_root_certificates(roots);
    let Some((certificate, key)) = &files.identity else { return Ok(builder.with_no_client_auth()) };
    let chain = tls::certificates(certificate).map_err(|error| format!("{} {error}", names.cert))?;
    let secret = tls::key(key, &mut Vec::new()).map_err(|error| format!("{} {error}", names.key))?;
    builder.with_client_auth_cert(chain, secret).map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => format!(
            "{} {}: expected the key of the certificate in {}, found another key",
            names.key,
            key.display(),
            certificate.display()
        ),
        error => format!("{} {}: {error}", names.cert, certificate.display()),
    })
}

/// The authorities that this system trusts.
fn system_roots(names: Names) -> Result<RootCertStore, String> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    match (roots.is_empty(), found.errors.first()) {
        (false, _) => Ok(roots),
        (true, Some(error)) => {
            Err(format!("TLS: the system's certificates cannot be read: {error}; give {} FILE", names.ca))
        }
        (true, None) => Err(format!("TLS: this system has no certificates to check against; give {} FILE", names.ca)),
    }
}

/// Why a server's certificate was not accepted, when that is what an error comes from.
pub fn distrust(error: &(dyn Error + 'static)) -> Option<String> {
    if let Some(rustls::Error::InvalidCertificate(why)) = error.downcast_ref() {
        return Some(why.to_string());
    }
    inner(error).and_then(distrust)
}

/// What an error comes from: what an I/O error was made of is not among its sources.
pub fn inner<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    let made_of = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    made_of.map(|inner| inner as &(dyn Error + 'static)).or_else(|| error.source())
}
