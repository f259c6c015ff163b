//! Where forwarded data goes: the address, and that it is not this very program's.
//!
//! Owns: reading addresses, recognising our own. Keeps out: sending (`send`).

use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket};

use http::Uri;

use crate::source::remote::client::host_and_port;

/// How an endpoint is spoken to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// OTLP/gRPC.
    Grpc,
    /// OTLP/HTTP with protobuf bodies.
    Http,
}

/// The address of an OTLP endpoint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// How it is spoken to.
    pub protocol: Protocol,
    /// Whether it is spoken to inside TLS.
    pub is_tls: bool,
    host: String,
    port: u16,
    /// The path before `/v1/traces`; empty for gRPC.
    path: String,
}

const EXPECTED: &str = "expected grpc://HOST:PORT or http://HOST:PORT, with grpcs or https inside TLS";

/// How addresses begin.
const SCHEMES: [(Protocol, bool, &str); 4] = [
    (Protocol::Grpc, false, "grpc"),
    (Protocol::Grpc, true, "grpcs"),
    (Protocol::Http, false, "http"),
    (Protocol::Http, true, "https"),
];

impl Target {
    /// Reads `grpc://host:port` (4317 when no port is given) or `http://host:port[/path]` (4318); `grpcs` and `https` are the
    /// same inside TLS.
    ///
    /// # Errors
    /// What is wrong with it, in a sentence that repeats no password.
    pub fn parse(text: &str) -> Result<Self, String> {
        let Some((scheme, rest)) = text.trim().split_once("://") else {
            return Err(format!("{EXPECTED}, found no scheme"));
        };
        if rest.split('/').next().is_some_and(|authority| authority.contains('@')) {
            return Err("expected an address without a user and a password: give what is asked for there with \
                        --forward-header"
                .into());
        }
        if let Some(odd) = rest.chars().find(|c| !c.is_ascii_graphic()) {
            return Err(format!("{EXPECTED} of plain characters, others as %XX, found {odd:?}"));
        }
        let scheme = scheme.to_ascii_lowercase();
        let Some((protocol, is_tls, _)) = SCHEMES.into_iter().find(|(.., name)| *name == scheme) else {
            return Err(format!("{EXPECTED}, found the scheme {scheme:?}"));
        };
        let usual = match protocol {
            Protocol::Grpc => 4317,
            Protocol::Http => 4318,
        };
        let uri: Uri = format!("http://{rest}").parse().map_err(|error| format!("{EXPECTED}: {error}"))?;
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        let (host, port) = host_and_port(authority).map_err(|odd| format!("{EXPECTED}: {odd}"))?;
        let mut path = uri.path().trim_end_matches('/');
        if uri.query().is_some() || (protocol == Protocol::Grpc && !path.is_empty()) {
            return Err(format!("{EXPECTED}, found more behind the port"));
        }
        // Whoever writes it twice means it once; what is shown is read as it is.
        while let Some(rest) = path.strip_suffix("/v1/traces") {
            path = rest.trim_end_matches('/');
        }
        Ok(Self { protocol, is_tls, host: host.to_owned(), port: port.unwrap_or(usual), path: path.to_owned() })
    }

    /// The base of its URLs: `http://host:port/path`, or `https`.
    pub fn url(&self) -> String {
        format!("{}://{}", if self.is_tls { "https" } else { "http" }, self.place())
    }

    /// What stands behind the scheme.
    pub fn place(&self) -> String {
        let Self { host, port, path, .. } = self;
        if host.contains(':') { format!("[{host}]:{port}{path}") } else { format!("{host}:{port}{path}") }
    }

    /// Whether it is surely on this machine, so that no network lies between.
    pub fn is_here(&self) -> bool {
        self.host.eq_ignore_ascii_case("localhost") || self.host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
    }

    /// Of the addresses on which this program listens the one that this is, if it is one.
    pub fn is_own(&self, own: &[SocketAddr]) -> Option<SocketAddr> {
        // A name that cannot be looked up yet is nobody's address yet.
        let there: Vec<IpAddr> = (self.host.as_str(), self.port)
            .to_socket_addrs()
            .map_or_else(|_| Vec::new(), |all| all.map(|one| one.ip()).collect());
        let is_here = |ip: IpAddr, listener: IpAddr| {
            let (ip, listener) = (ip.to_canonical(), listener.to_canonical());
            ip == listener || (listener.is_unspecified() && is_local(ip)) || (ip.is_unspecified() && is_local(listener))
        };
        own.iter().find(|own| own.port() == self.port && there.iter().any(|ip| is_here(*ip, own.ip()))).copied()
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |(protocol, is_tls, _): &(Protocol, bool, &str)| *protocol == self.protocol && *is_tls == self.is_tls;
        let scheme = SCHEMES.into_iter().find(of).map_or("", |(.., scheme)| scheme);
        write!(f, "{scheme}://{}", self.place())
    }
}

/// Whether an address is one of this machine's: only those can be bound.
fn is_local(ip: IpAddr) -> bool {
    ip.is_loopback() || UdpSocket::bind((ip, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_tell_what_is_wrong() {
        let read = |text: &str| Target::parse(text).map(|target| format!("{target} {}", target.url()));
        assert_eq!(read("grpc://collector").as_deref(), Ok("grpc://collector:4317 http://collector:4317"));
        assert_eq!(read("HTTP://10.0.0.1:9/otlp/").as_deref(), Ok("http://10.0.0.1:9/otlp http://10.0.0.1:9/otlp"));
        assert_eq!(read("http://x/v1/traces").as_deref(), Ok("http://x:4318 http://x:4318"));
        assert_eq!(read("http://x/a/v1/traces//v1/traces").as_deref(), Ok("http://x:4318/a http://x:4318/a"));
        assert_eq!(read("http://x/a//v1/traces").as_deref(), Ok("http://x:4318/a http://x:4318/a"));
        assert_eq!(read("grpc://[::1]:1").as_deref(), Ok("grpc://[::1]:1 http://[::1]:1"));
        assert_eq!(read("grpcs://x").as_deref(), Ok("grpcs://x:4317 https://x:4317"));
        assert_eq!(read("HTTPS://x/otlp").as_deref(), Ok("https://x:4318/otlp https://x:4318/otlp"));
        for (text, said) in [
            ("collector:4317", "no scheme"),
            ("ftp://x", "scheme \"ftp\""),
            ("grpc://x/path", "behind the port"),
            ("http://x?y", "behind the port"),
            ("http://", "expected"),
            ("http://x:99999", "a port up to 65535, found \"99999\""),
            ("http://x:", "a port up to 65535, found \"\""),
            ("grpc://[::1", "grpc"),
            ("https://name[::0]:320", "expected a host, found \"name[\""),
            ("http://[name]:1", "IPv6"),
        ] {
            assert!(read(text).unwrap_err().contains(said), "{text}");
        }
        let refused = read("http://me:hush@x").unwrap_err();
        assert!(refused.contains("--forward-header") && !refused.contains("hush"));
    }

    #[test]
    fn our_own_addresses_are_recognised() {
        let own: Vec<SocketAddr> =
            ["127.0.0.1:4317", "[::1]:4317", "0.0.0.0:9000"].map(|text| text.parse().unwrap()).into();
        let is_own = |text: &str| Target::parse(text).unwrap().is_own(&own).is_some();
        for text in [
            "grpc://127.0.0.1",
            "grpc://localhost:4317",
            "grpc://[::1]",
            "http://127.0.0.1:9000",
            "http://0.0.0.0:9000",
        ] {
            assert!(is_own(text), "{text}");
        }
        for text in ["grpc://127.0.0.1:4319", "http://192.0.2.1:9000", "grpc://127.0.0.2:4317"] {
            assert!(!is_own(text), "{text}");
        }
    }
}
