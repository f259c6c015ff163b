//! Resources and scopes as kept: one run of bytes each, shared by all their spans.
//!
//! Layout: dropped count, then length-prefixed texts (resource: schema url; scope: name, version, schema url), then
//! length-prefixed packed attributes to the end.

use super::packed::{self, Value};

/// A kept resource.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Resource<'a>(pub &'a [u8]);

/// A kept instrumentation scope.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Scope<'a>(pub &'a [u8]);

/// Writes the kept form of a resource (`texts`: schema url) or scope (`texts`: name, version, schema url).
/// Everything given must be clean already.
pub fn write(out: &mut Vec<u8>, dropped: u32, texts: &[&[u8]], attrs: &[&[u8]]) {
    packed::put_varint(out, u64::from(dropped));
    for item in texts.iter().chain(attrs) {
        packed::put_varint(out, item.len() as u64);
        out.extend_from_slice(item);
    }
}

fn item<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = packed::varint(bytes)? as usize;
    let (head, tail) = bytes.split_at_checked(length)?;
    *bytes = tail;
    Some(head)
}

fn parts<const N: usize>(mut bytes: &[u8]) -> (u32, [&str; N], impl Iterator<Item = (&str, Value<'_>)>) {
    let dropped = packed::varint(&mut bytes).unwrap_or(0) as u32;
    let texts = std::array::from_fn(|_| item(&mut bytes).and_then(|text| std::str::from_utf8(text).ok()).unwrap_or(""));
    (dropped, texts, std::iter::from_fn(move || item(&mut bytes).map(packed::read)))
}

impl<'a> Resource<'a> {
    /// Attributes that the sender dropped.
    pub fn dropped(self) -> u32 {
        parts::<1>(self.0).0
    }

    /// The schema url of its spans.
    pub fn schema_url(self) -> &'a str {
        parts::<1>(self.0).1[0]
    }

    /// Its attributes.
    pub fn attrs(self) -> impl Iterator<Item = (&'a str, Value<'a>)> {
        parts::<1>(self.0).2
    }

    /// `service.name`; empty when it has none.
    pub fn service(self) -> &'a str {
        self.attrs().find(|(key, _)| *key == "service.name").and_then(|(_, value)| value.as_str()).unwrap_or("")
    }

    /// `host.name`; empty when it has none.
    pub fn host(self) -> &'a str {
        self.text("host.name").unwrap_or("")
    }

    /// The text of an attribute, unless it is empty.
    pub fn text(self, key: &str) -> Option<&'a str> {
        self.attrs()
            .find(|(other, _)| *other == key)
            .and_then(|(_, value)| value.as_str())
            .filter(|text| !text.is_empty())
    }
}

impl<'a> Scope<'a> {
    /// Attributes that the sender dropped.
    pub fn dropped(self) -> u32 {
        parts::<3>(self.0).0
    }

    /// Its name.
    pub fn name(self) -> &'a str {
        parts::<3>(self.0).1[0]
    }

    /// Its version.
    pub fn version(self) -> &'a str {
        parts::<3>(self.0).1[1]
    }

    /// Its schema url.
    pub fn schema_url(self) -> &'a str {
        parts::<3>(self.0).1[2]
    }

    /// Its attributes.
    pub fn attrs(self) -> impl Iterator<Item = (&'a str, Value<'a>)> {
        parts::<3>(self.0).2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let (name, port) = (packed::pack("service.name", Value::Str("frontend")), packed::pack("port", Value::Int(1)));
        let mut bytes = Vec::new();
        write(&mut bytes, 3, &[b"https://schema"], &[&name, &port]);
        let resource = Resource(&bytes);
        assert_eq!((resource.dropped(), resource.schema_url(), resource.service()), (3, "https://schema", "frontend"));
        assert_eq!(resource.attrs().count(), 2);
        bytes.clear();
        write(&mut bytes, 0, &[b"scope", b"1.0", b""], &[]);
        let scope = Scope(&bytes);
        assert_eq!((scope.name(), scope.version(), scope.schema_url(), scope.attrs().count()), ("scope", "1.0", "", 0));
    }
}
