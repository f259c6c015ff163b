//! One HTTP client for the stores: bounded answers, bounded patience, errors that say what to do.
//!
//! Owns: addresses, headers (never shown), transport, content codings. Keeps out: what the stores' answers mean.

use std::fmt;
use std::net::Ipv6Addr;
use std::path::Path;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, LOCATION};
use http::uri::Scheme;
use http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Empty};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as Pool;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde::Deserialize;

use super::{Kind, Limits};
use crate::lifecycle::text;
use crate::source::otlp::coding::{Coding, Inflate};
use crate::source::trust;

/// Longest part of a store's own words that is repeated, characters.
const WORDS: usize = 200;

/// The address of a store: `http://host:port`, with a path where it is served under one.
#[derive(Clone, PartialEq, Eq)]
pub struct Base {
    scheme: Scheme,
    authority: String,
    path: String,
}

impl Base {
    /// Reads an address; without a scheme it is plain HTTP.
    ///
    /// # Errors
    /// What is wrong with it, in a sentence that repeats no password.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim_ascii();
        let full = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let (scheme, rest) = full.split_once("://").unwrap_or_default();
        if rest.split('/').next().is_some_and(|authority| authority.contains('@')) {
            return Err("expected an address without a user and a password: give them with --from-header \
                        'Authorization=Basic …' or in REQTOP_FROM_HEADER"
                .into());
        }
        if let Some(odd) = full.chars().find(|c| !c.is_ascii_graphic()) {
            return Err(format!("expected an address of plain characters, others as %XX, found {odd:?}"));
        }
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "http" => Scheme::HTTP,
            "https" => Scheme::HTTPS,
            other => {
                return Err(format!("expected an address such as http://jaeger:16686, found the scheme {other:?}"));
            }
        };
        let uri: Uri = full
            .parse()
            .map_err(|error| format!("expected an address such as http://jaeger:16686, found {full:?}: {error}"))?;
        let authority = uri.authority().map(ToString::to_string).unwrap_or_default();
        host_and_port(&authority).map_err(|odd| format!("{odd} in {full:?}"))?;
        if uri.query().is_some() {
            // What follows may be a secret.
            return Err(
                "expected the store's own address, without a question mark and what follows; what it asks for \
                        to let us in goes into --from-header"
                    .into(),
            );
        }
        Ok(Self { scheme, authority, path: uri.path().trim_end_matches('/').to_owned() })
    }
}

impl fmt::Display for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.scheme, self.authority, self.path)
    }
}

impl fmt::Debug for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The host, without brackets, and the port of `name:port` or `[IPv6]:port`, which may stand without a port.
///
/// # Errors
/// What was expected and what came.
pub fn host_and_port(authority: &str) -> Result<(&str, Option<u16>), String> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']').unwrap_or((rest, ""));
            host.parse::<Ipv6Addr>().map_err(|_| format!("expected an IPv6 address in brackets, found {host:?}"))?;
            (host, port)
        }
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    if host.is_empty() || host.contains(['[', ']']) {
        return Err(format!("expected a host, found {host:?}"));
    }
    let Some(number) = port.strip_prefix(':') else {
        return if port.is_empty() { Ok((host, None)) } else { Err(format!("expected :PORT, found {port:?}")) };
    };
    let port = number.parse().map_err(|_| format!("expected a port up to 65535, found {number:?}"))?;
    Ok((host, Some(port)))
}

/// Headers that say how a message is sent, where it goes and what it is: another value would break it.
const OURS: [HeaderName; 8] = [
    http::header::CONTENT_LENGTH,
    http::header::CONTENT_ENCODING,
    http::header::CONTENT_TYPE,
    http::header::TRANSFER_ENCODING,
    http::header::CONNECTION,
    http::header::UPGRADE,
    http::header::TE,
    http::header::HOST,
];

/// Reads `NAME=VALUE` or `NAME: VALUE` as a header that nothing will ever print.
///
/// # Errors
/// What is wrong with it; the value is not repeated.
pub fn header(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let at = text.find(['=', ':']).ok_or("expected NAME=VALUE, found neither = nor :")?;
    let (name, value) = (text[..at].trim(), text[at + 1..].trim());
    let name: HeaderName =
        name.parse().map_err(|_| format!("expected a header's name before the sign, found {name:?}"))?;
    if OURS.contains(&name) {
        return Err(format!("{name} is set by what is sent, and cannot be chosen"));
    }
    let mut value =
        HeaderValue::from_str(value).map_err(|_| format!("the value for {name} holds what a header cannot"))?;
    value.set_sensitive(true);
    Ok((name, value))
}

/// Why a store gave no answer that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No connection, or it broke.
    Unreachable(String),
    /// A certificate that is not accepted.
    Untrusted(String),
    /// No answer in time.
    Slow(Duration),
    /// Asked to come again: HTTP 429 and 5xx but 500.
    Busy(String),
    /// HTTP 500: it may be this very question that it cannot answer.
    Broken(String),
    /// HTTP 401 and 403.
    Denied(StatusCode),
    /// An answer that is none of this API.
    WrongApi(String),
    /// The store understood and declined; its words.
    Declined(String),
    /// An answer longer than this many bytes.
    TooLarge(usize),
    /// So many ranges in a row brought nothing but failures such as the last one, which was of a range this long.
    Over {
        /// Slow or too large.
        last: Box<Self>,
        /// How many.
        times: u32,
        /// Nanoseconds.
        width_ns: u64,
    },
    /// So many services that they are not all asked what they send; at most so many are.
    ManyServices(usize, usize),
}

impl Failure {
    /// Whether asking again later may help.
    pub fn passes(&self) -> bool {
        matches!(self.cause(), Self::Unreachable(_) | Self::Slow(_) | Self::Busy(_) | Self::Broken(_))
    }

    /// What a store says of a trace that it will not give, as one that is larger than it may be; `None` for what concerns
    /// more than that.
    pub fn of_one_trace(&self) -> Option<&str> {
        match self {
            Self::Declined(why) | Self::Broken(why) => Some(why),
            _ => None,
        }
    }

    /// What it is but for the range that it was met in.
    pub fn cause(&self) -> &Self {
        if let Self::Over { last, .. } = self { last.cause() } else { self }
    }

    /// The sentence for people.
    pub fn sentence(&self, kind: Kind, base: &Base) -> String {
        let name = kind.name();
        match self {
            Self::Unreachable(why) => {
                format!("cannot reach {name} at {base}: {why}; its query address is usually {}", kind.usual())
            }
            Self::Untrusted(why) => {
                format!(
                    "{base}: its certificate is not accepted: {why}; name the authority it is from with --from-ca FILE"
                )
            }
            Self::Slow(patience) => {
                format!("{name} at {base} did not answer within {}", lasting(patience.as_nanos() as u64))
            }
            Self::Busy(why) | Self::Broken(why) => format!("{name} at {base} cannot answer now: {why}"),
            Self::Denied(status) => format!(
                "{base} answered {status}: give what it asks for with --from-header 'Authorization=Bearer …' or in \
                 REQTOP_FROM_HEADER"
            ),
            Self::WrongApi(found) => format!(
                "{base} does not answer as {}: {found}; give the address that {name} itself has there, usually {}",
                kind.api(),
                kind.usual()
            ),
            Self::Declined(why) => format!("{name} at {base} declined: {why}"),
            Self::TooLarge(limit) => {
                format!("{name} at {base} answered with more than {} MiB at once", limit >> 20)
            }
            Self::Over { last, times, width_ns } => {
                let (last, width) = (last.sentence(kind, base), lasting(*width_ns));
                match times {
                    1 => format!("{last} when asked for {width} only: given up"),
                    _ => format!("{last}, {times} times in a row and at last when asked for {width} only: given up"),
                }
            }
            Self::ManyServices(found, most) => format!(
                "{name} at {base} has {found} services, and of at most {most} is asked which begin requests: name those \
                 that do with --service NAME"
            ),
        }
    }
}

/// A length of time in words: whole seconds, below ten to a thousandth.
pub fn lasting(ns: u64) -> String {
    let seconds = ns as f64 / 1e9;
    if seconds < 10.0 { format!("{} s", (seconds * 1e3).round() / 1e3) } else { format!("{seconds:.0} s") }
}

/// The options that name the files of TLS.
const NAMES: trust::Names = trust::Names { ca: "--from-ca", cert: "--from-cert", key: "--from-key" };

/// An answer with a status of success, or 404, which stores also give for "nothing found".
#[derive(Debug)]
pub struct Reply {
    /// 200 or 404.
    pub status: StatusCode,
    /// Without its parameters.
    pub content_type: String,
    /// After decoding.
    pub body: Bytes,
}

impl Reply {
    /// The JSON object that it is; `None` for anything else. A list would pass for an object without fields.
    pub fn object<'a, T: Deserialize<'a>>(&'a self) -> Option<T> {
        self.body.trim_ascii_start().starts_with(b"{").then(|| serde_json::from_slice(&self.body).ok()).flatten()
    }

    /// What came, for [`Failure::WrongApi`].
    pub fn told(&self, path: &str) -> String {
        let kind = if self.content_type.is_empty() { "without a content type" } else { &self.content_type };
        format!("GET {path} gave {} {kind}", self.status.as_u16())
    }
}

/// A connection pool to one store.
#[derive(Clone)]
pub struct Client {
    pool: Pool<HttpsConnector<HttpConnector>, Empty<Bytes>>,
    base: Base,
    headers: HeaderMap,
    limits: Limits,
}

impl Client {
    /// A client; nothing is sent yet. `authority` is a file of the certificates that https is checked against instead of
    /// the system's.
    ///
    /// # Errors
    /// There are no certificates to check https against.
    pub fn new(base: Base, headers: HeaderMap, authority: Option<&Path>, limits: Limits) -> Result<Self, String> {
        let mut tcp = HttpConnector::new();
        tcp.set_connect_timeout(Some(limits.patience.min(Duration::from_secs(5))));
        tcp.set_nodelay(true);
        tcp.enforce_http(false);
        let files = trust::Files { authority: authority.map(Path::to_owned), identity: None };
        let tls = trust::client(&files, NAMES, base.scheme == Scheme::HTTPS)?;
        let connector = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1();
        let pool = Pool::builder(TokioExecutor::new()).build(connector.wrap_connector(tcp));
        Ok(Self { pool, base, headers, limits })
    }

    /// Asks for a path with parameters.
    ///
    /// # Errors
    /// Anything but 200 and 404 within the limits.
    pub async fn get(&self, path: &str, query: &[(&str, &str)], accept: &'static str) -> Result<Reply, Failure> {
        let patience = self.limits.patience;
        tokio::time::timeout(patience, self.exchange(path, query, accept)).await.unwrap_or(Err(Failure::Slow(patience)))
    }

    async fn exchange(&self, path: &str, query: &[(&str, &str)], accept: &'static str) -> Result<Reply, Failure> {
        let mut target = format!("{}{path}", self.base);
        for (index, (key, value)) in query.iter().enumerate() {
            target.push(if index == 0 { '?' } else { '&' });
            escape(key, &mut target);
            target.push('=');
            escape(value, &mut target);
        }
        let mut request =
            Request::get(target).body(Empty::new()).map_err(|error| Failure::Declined(error.to_string()))?;
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static(accept));
        request.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        request.headers_mut().extend(self.headers.iter().map(|(name, value)| (name.clone(), value.clone())));
        let answer = self.pool.request(request).await.map_err(|error| broken(&error))?;
        let (head, mut body) = answer.into_parts();
        let value = |name| head.headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).unwrap_or("");
        let content_type = value(CONTENT_TYPE).split(';').next().unwrap_or("").trim().to_ascii_lowercase();
        let mut bytes = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| broken(&error))?;
            if let Ok(data) = frame.into_data() {
                if bytes.len() + data.len() > self.limits.answer {
                    return Err(Failure::TooLarge(self.limits.answer));
                }
                bytes.extend_from_slice(&data);
            }
        }
        let coding = Coding::parse(value(CONTENT_ENCODING))
            .map_err(|coding| Failure::WrongApi(format!("it sends the coding {coding:?}, asked for gzip or none")))?;
        let body = coding.inflate(bytes.freeze(), self.limits.answer).map_err(|error| match error {
            Inflate::TooLarge => Failure::TooLarge(self.limits.answer),
            Inflate::Broken(reason) => Failure::Unreachable(reason),
        })?;
        let words = || {
            let status = head.status;
            let words = clean(&body);
            if words.is_empty() { status.to_string() } else { format!("{status}: {words}") }
        };
        match head.status {
            status @ (StatusCode::OK | StatusCode::NOT_FOUND) => Ok(Reply { status, content_type, body }),
            status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::PROXY_AUTHENTICATION_REQUIRED) => {
                Err(Failure::Denied(status))
            }
            StatusCode::TOO_MANY_REQUESTS => Err(Failure::Busy(words())),
            StatusCode::INTERNAL_SERVER_ERROR => Err(Failure::Broken(words())),
            status if status.is_server_error() => Err(Failure::Busy(words())),
            status if status.is_redirection() => Err(Failure::WrongApi(format!(
                "GET {path} gave {} to {:?}, which is not followed",
                status.as_u16(),
                clean(value(LOCATION).as_bytes())
            ))),
            _ => Err(Failure::Declined(words())),
        }
    }
}

/// A store's own words: one line, without control characters, not long.
pub fn clean(words: &[u8]) -> String {
    let cut = &words[..words.len().min(4 * WORDS)];
    let line: String = text::scrub(cut).split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(WORDS).collect()
}

/// Why there was no answer, by the innermost reason, which says most.
fn broken(error: &(dyn std::error::Error + 'static)) -> Failure {
    match trust::distrust(error) {
        Some(why) => Failure::Untrusted(clean(why.as_bytes())),
        None => Failure::Unreachable(root_cause(error)),
    }
}

/// The innermost reason of an error, which says most.
pub fn root_cause(error: &(dyn std::error::Error + 'static)) -> String {
    match trust::inner(error) {
        Some(inner) => root_cause(inner),
        None => clean(error.to_string().as_bytes()),
    }
}

/// Percent-encodes everything but what RFC 3986 leaves unreserved.
pub fn escape(text: &str, out: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(byte as char);
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_tell_what_is_wrong() {
        let base = |text: &str| Base::parse(text).map(|base| base.to_string());
        assert_eq!(base("http://jaeger:16686/").as_deref(), Ok("http://jaeger:16686"));
        assert_eq!(base("10.0.0.1:16686/trace-ui/").as_deref(), Ok("http://10.0.0.1:16686/trace-ui"));
        assert_eq!(base("HTTP://[::1]:3200").as_deref(), Ok("http://[::1]:3200"));
        assert_eq!(base("https://tempo/").as_deref(), Ok("https://tempo"));
        assert!(base("ftp://x").unwrap_err().contains("scheme"));
        assert!(base("http://x?y=1").unwrap_err().contains("question mark"));
        assert!(base("").is_err());
        assert!(base("http://x/\u{85}").unwrap_err().contains("found '\\u{85}'"));
        let refused = base("http://me:hush@x").unwrap_err();
        assert!(refused.contains("--from-header") && !refused.contains("hush"));
    }

    #[test]
    fn header_values_are_never_printed() {
        let (name, value) = header("X-Scope-OrgID=team a").unwrap();
        assert_eq!((name.as_str(), value.to_str().unwrap()), ("x-scope-orgid", "team a"));
        let (_, value) = header("Authorization: Bearer hush=").unwrap();
        assert_eq!((value.to_str().unwrap(), format!("{value:?}").contains("hush")), ("Bearer hush=", false));
        assert!(header("Content-Length: 5").is_err_and(|error| error.contains("content-length is set by")));
        assert!(header("hush").is_err_and(|error| !error.contains("hush")));
        assert!(header("A=hu\nsh").is_err_and(|error| !error.contains("hu")));
    }

    #[test]
    fn parameters_are_escaped() {
        let mut out = String::new();
        escape("{ .a = \"ü\" && b>1 }", &mut out);
        assert_eq!(out, "%7B%20.a%20%3D%20%22%C3%BC%22%20%26%26%20b%3E1%20%7D");
    }
}
