//! Content codings: what compressed bodies are called, and inflating them within a bound (a small body may be a bomb).
//! Owns: the names, the limits. Keeps out: files (`source::file`, which inflates as it reads).

use std::io::Read;

use bytes::Bytes;
use flate2::bufread::{DeflateDecoder, GzDecoder, ZlibDecoder};

/// The largest window that zstd bodies may ask for, as a power of two: bytes that are set aside for the asking. Encoders
/// take 8 MiB unless told otherwise.
const ZSTD_WINDOW: u32 = 24;

/// Gzip members that a body may be in.
const GZIP_MEMBERS: usize = 1000;

/// Compressed bodies from this many bytes on are inflated aside, so that they do not hold up other connections: they may
/// inflate to a thousand times as much.
pub(super) const ASIDE: usize = 16 << 10;

/// How a body is coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::source) enum Coding {
    Identity,
    Gzip,
    Zstd,
    Deflate,
}

/// Why a body could not be inflated.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::source) enum Inflate {
    /// Larger than the limit.
    TooLarge,
    /// Not what its coding says.
    Broken(String),
}

impl Coding {
    /// The codings that are read, as told to senders of others.
    pub const NAMES: &str = "gzip, zstd, deflate, identity";

    /// Reads the value of `Content-Encoding`; the name of the coding when it is not known here.
    pub fn parse(value: &str) -> Result<Self, &str> {
        let name = value.trim();
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        match () {
            () if name.is_empty() || is("identity") => Ok(Self::Identity),
            () if is("gzip") || is("x-gzip") => Ok(Self::Gzip),
            () if is("zstd") => Ok(Self::Zstd),
            () if is("deflate") => Ok(Self::Deflate),
            () => Err(name),
        }
    }

    /// The body as it was before coding, at most `limit` bytes of it.
    pub fn inflate(self, body: Bytes, limit: usize) -> Result<Bytes, Inflate> {
        match self {
            Self::Identity if body.len() > limit => Err(Inflate::TooLarge),
            Self::Identity => Ok(body),
            Self::Gzip => gzip(&body, limit),
            Self::Zstd => zstd(&body, limit),
            // The standard says zlib; some senders leave its wrapper out.
            Self::Deflate => match deflate(ZlibDecoder::new(&body[..]), ZlibDecoder::into_inner, &body, limit) {
                Err(Inflate::Broken(reason)) => {
                    let raw = deflate(DeflateDecoder::new(&body[..]), DeflateDecoder::into_inner, &body, limit);
                    raw.map_err(|error| match error {
                        Inflate::Broken(_) => Inflate::Broken(reason),
                        Inflate::TooLarge => Inflate::TooLarge,
                    })
                }
                done => done,
            },
        }
    }
}

/// Inflates one member after the other. Each takes as much work as it takes for kilobytes, also when it holds nothing.
fn gzip(body: &[u8], limit: usize) -> Result<Bytes, Inflate> {
    let mut out = Vec::with_capacity(body.len().saturating_mul(6).min(limit));
    let mut rest = body;
    for _ in 0..GZIP_MEMBERS {
        let mut member = GzDecoder::new(rest);
        let left = limit.saturating_sub(out.len()) as u64 + 1;
        let read = member.by_ref().take(left).read_to_end(&mut out);
        read.map_err(|error| Inflate::Broken(format!("the body cannot be read as gzip: {error}")))?;
        if out.len() > limit {
            return Err(Inflate::TooLarge);
        }
        rest = member.into_inner();
        if rest.is_empty() {
            return Ok(out.into());
        }
    }
    Err(Inflate::Broken(format!("the body has more than {GZIP_MEMBERS} gzip members: send it as one")))
}

/// Inflates one frame after the other, as the decoder does by itself.
fn zstd(body: &[u8], limit: usize) -> Result<Bytes, Inflate> {
    let broken = |error| Inflate::Broken(format!("the body cannot be read as zstd: {error}"));
    let mut decoder = zstd::stream::read::Decoder::with_buffer(body).map_err(broken)?;
    decoder.window_log_max(ZSTD_WINDOW).map_err(broken)?;
    read(&mut decoder, body, limit, "zstd")
}

/// Inflates what has no members: what follows its end would be read by nobody.
fn deflate<'b, D: Read>(
    mut decoder: D,
    rest: fn(D) -> &'b [u8],
    body: &'b [u8],
    limit: usize,
) -> Result<Bytes, Inflate> {
    let out = read(&mut decoder, body, limit, "deflate")?;
    match rest(decoder) {
        [] => Ok(out),
        more => Err(Inflate::Broken(format!(
            "the body cannot be read as deflate: {} bytes follow its end, expected none",
            more.len()
        ))),
    }
}

fn read(decoder: &mut impl Read, body: &[u8], limit: usize, name: &str) -> Result<Bytes, Inflate> {
    let mut out = Vec::with_capacity(body.len().saturating_mul(6).min(limit));
    decoder
        .take(limit as u64 + 1)
        .read_to_end(&mut out)
        .map_err(|error| Inflate::Broken(format!("the body cannot be read as {name}: {error}")))?;
    if out.len() > limit { Err(Inflate::TooLarge) } else { Ok(out.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
    use std::io::Write;

    #[test]
    fn names_of_any_case_and_nothing_unknown() {
        for (name, coding) in [
            ("", Coding::Identity),
            ("identity", Coding::Identity),
            ("GZIP", Coding::Gzip),
            ("x-gzip", Coding::Gzip),
            (" Zstd ", Coding::Zstd),
            ("deflate", Coding::Deflate),
        ] {
            assert_eq!(Coding::parse(name), Ok(coding));
        }
        assert_eq!(Coding::parse("br"), Err("br"));
        assert_eq!(Coding::parse("gzip, zstd"), Err("gzip, zstd"));
    }

    #[test]
    fn every_coding_inflates_within_its_bound() {
        let plain = vec![b'x'; 100_000];
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
        let mut raw = DeflateEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(&plain).unwrap();
        zlib.write_all(&plain).unwrap();
        raw.write_all(&plain).unwrap();
        for (coding, body) in [
            (Coding::Identity, plain.clone()),
            (Coding::Gzip, gzip.finish().unwrap()),
            (Coding::Zstd, zstd::encode_all(&plain[..], 1).unwrap()),
            (Coding::Deflate, zlib.finish().unwrap()),
            (Coding::Deflate, raw.finish().unwrap()),
        ] {
            let body = Bytes::from(body);
            assert_eq!(coding.inflate(body.clone(), 100_000).unwrap(), plain);
            assert_eq!(coding.inflate(body.clone(), 99_999), Err(Inflate::TooLarge));
            if coding != Coding::Identity {
                let cut = coding.inflate(body.slice(..body.len() / 2), 100_000);
                assert!(matches!(cut, Err(Inflate::Broken(reason)) if reason.contains("cannot be read as")));
            }
        }
    }

    #[test]
    fn members_are_joined_up_to_a_number() {
        let member = |bytes: &[u8]| {
            let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
            gzip.write_all(bytes).unwrap();
            gzip.finish().unwrap()
        };
        let two = Bytes::from([member(b"one "), member(b"two")].concat());
        assert_eq!(Coding::Gzip.inflate(two.clone(), 7).unwrap(), "one two");
        assert_eq!(Coding::Gzip.inflate(two, 6), Err(Inflate::TooLarge));
        let many = |count| Coding::Gzip.inflate(member(b"").repeat(count).into(), 9);
        assert_eq!(many(GZIP_MEMBERS).unwrap(), "");
        assert!(matches!(many(GZIP_MEMBERS + 1), Err(Inflate::Broken(reason)) if reason.contains("more than 1000")));
        let noise = [&member(b"one")[..], b"noise"].concat();
        assert!(matches!(Coding::Gzip.inflate(noise.into(), 9), Err(Inflate::Broken(_))));
        assert!(Coding::Gzip.inflate(Bytes::new(), 9).is_err());
        let frames = [b"one ", b"two "].map(|bytes| zstd::encode_all(&bytes[..], 1).unwrap()).concat();
        assert_eq!(Coding::Zstd.inflate(frames.clone().into(), 9).unwrap(), "one two ");
        assert!(Coding::Zstd.inflate([&frames[..], b"noise"].concat().into(), 99).is_err());
    }

    #[test]
    fn nothing_follows_the_end_of_deflate() {
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
        let mut raw = DeflateEncoder::new(Vec::new(), Compression::fast());
        zlib.write_all(b"one").unwrap();
        raw.write_all(b"one").unwrap();
        for body in [zlib.finish().unwrap(), raw.finish().unwrap()] {
            assert_eq!(Coding::Deflate.inflate(body.clone().into(), 9).unwrap(), "one");
            let twice = Coding::Deflate.inflate(body.repeat(2).into(), 9);
            assert!(matches!(&twice, Err(Inflate::Broken(reason)) if reason.contains("deflate")), "{twice:?}");
        }
    }
}
