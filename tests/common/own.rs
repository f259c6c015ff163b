//! A loopback address of this process' own. What is listened on only later, or again, stays free there: somebody else's
//! port 0, or the near end of somebody's connection, is on 127.0.0.1.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};

/// Where all of 127.0.0.0/8 is loopback (Linux), one of its addresses, by the process' id; 127.0.0.1 elsewhere.
pub fn loopback() -> IpAddr {
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    let own = IpAddr::from(Ipv4Addr::new(127, high | 0x40, middle, low | 1));
    if TcpListener::bind((own, 0)).is_ok() { own } else { Ipv4Addr::LOCALHOST.into() }
}

/// Addresses that nobody listens on.
pub fn free<const N: usize>() -> [SocketAddr; N] {
    let own = loopback();
    let held: [TcpListener; N] = std::array::from_fn(|_| TcpListener::bind((own, 0)).unwrap());
    std::array::from_fn(|index| held[index].local_addr().unwrap())
}
