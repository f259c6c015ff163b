//! Which addresses the endpoint listens on: both loopbacks unless told otherwise (field cases B29, B30).
//!
//! Owns: reading addresses, binding, the one plain line when that fails. Keeps out: serving (`serve`).

use std::fmt;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::str::FromStr;

/// Where to listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address {
    /// On this port of both loopbacks, `127.0.0.1` and `::1`: what `localhost` may mean.
    Loopback(u16),
    /// On exactly this address.
    Exactly(SocketAddr),
}

impl FromStr for Address {
    type Err = String;

    /// Reads `PORT`, `localhost:PORT`, `IPV4:PORT` or `[IPV6]:PORT`. Port 0 lets the system choose.
    fn from_str(text: &str) -> Result<Self, String> {
        let port = text.strip_prefix("localhost:").unwrap_or(text);
        if let Ok(port) = port.parse() {
            return Ok(Self::Loopback(port));
        }
        text.parse().map(Self::Exactly).map_err(|_| {
            format!(
                "{text:?} is not an address to listen on: expected PORT, localhost:PORT, IPV4:PORT or [IPV6]:PORT, \
                 such as 0.0.0.0:4317 or [::]:4317"
            )
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Loopback(port) => write!(f, "localhost:{port}"),
            Self::Exactly(address) => write!(f, "{address}"),
        }
    }
}

/// An address that could not be bound. Prints as one line that says what to do.
#[derive(Debug)]
pub struct BindError {
    address: SocketAddr,
    option: &'static str,
    error: io::Error,
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, option, error } = self;
        let why = match error.kind() {
            ErrorKind::AddrInUse => "another program listens there".to_owned(),
            ErrorKind::AddrNotAvailable => "this machine has no such address".to_owned(),
            ErrorKind::PermissionDenied => "not permitted".to_owned(),
            _ => error.to_string(),
        };
        write!(f, "cannot listen on {address}: {why}; choose another address with {option} ADDR")
    }
}

impl std::error::Error for BindError {}

/// How often a pair of loopback ports is tried when the system chooses the port.
const TRIES: usize = 32;

/// Binds an address; `option` is the command line option that names it.
pub(super) fn bind(address: Address, option: &'static str) -> Result<Vec<TcpListener>, BindError> {
    let exactly =
        |address: SocketAddr| TcpListener::bind(address).map_err(|error| BindError { address, option, error });
    let port = match address {
        Address::Exactly(address) => return Ok(vec![exactly(address)?]),
        Address::Loopback(port) => port,
    };
    let v4 = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
    for tries_left in (0..if port == 0 { TRIES } else { 1 }).rev() {
        let first = exactly(v4)?;
        let chosen = first.local_addr().map_err(|error| BindError { address: v4, option, error })?.port();
        match exactly(SocketAddr::new(IpAddr::V6(Ipv6Addr::LOCALHOST), chosen)) {
            Ok(second) => return Ok(vec![first, second]),
            // The port the system chose may be taken on the other family: take another.
            Err(taken) if taken.error.kind() == ErrorKind::AddrInUse && tries_left > 0 => {}
            Err(taken) if taken.error.kind() == ErrorKind::AddrInUse => return Err(taken),
            // A machine without IPv6 has one loopback.
            Err(_) => return Ok(vec![first]),
        }
    }
    exactly(v4).map(|first| vec![first])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_nonsense_is_named() {
        for (text, address) in [
            ("4317", Address::Loopback(4317)),
            ("localhost:0", Address::Loopback(0)),
            ("0.0.0.0:4317", Address::Exactly("0.0.0.0:4317".parse().unwrap())),
            ("[::]:1", Address::Exactly("[::]:1".parse().unwrap())),
        ] {
            assert_eq!(text.parse(), Ok(address));
        }
        for text in ["", "host:1", "127.0.0.1", "::1:4317", "127.0.0.1:99999"] {
            assert!(Address::from_str(text).unwrap_err().contains("expected PORT"), "{text}");
        }
    }

    #[test]
    fn a_chosen_port_is_the_same_on_both_loopbacks() {
        let listeners = bind(Address::Loopback(0), "--grpc").unwrap();
        let ports: Vec<u16> = listeners.iter().map(|listener| listener.local_addr().unwrap().port()).collect();
        assert!(ports.iter().all(|port| *port == ports[0] && *port != 0));
    }

    #[test]
    fn a_taken_port_is_told_in_one_line() {
        for holder in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(holder) = TcpListener::bind(holder) else { continue };
            let port = holder.local_addr().unwrap().port();
            let error = bind(Address::Loopback(port), "--http").unwrap_err().to_string();
            assert!(error.contains(&port.to_string()) && error.contains("--http"), "{error}");
            assert_eq!(error.lines().count(), 1);
        }
    }
}
