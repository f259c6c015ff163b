//! Sizes and times with their units.

use std::time::Duration;

/// Reads `512MiB`, `64k`, `1048576`.
pub(super) fn size(text: &str) -> Result<usize, String> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..digits].parse().map_err(|_| format!("expected a size such as 512MiB, found {text:?}"))?;
    let unit = match text[digits..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1u64,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        other => return Err(format!("expected B, KiB, MiB or GiB, found {other:?}")),
    };
    let size = number * unit as f64;
    if size >= MOST { Err(format!("expected a size below 8388608GiB, found {text:?}")) } else { Ok(size as usize) }
}

/// From here on a size is a slip, bytes: 8 PiB, up to where each is told from the next.
const MOST: f64 = (1u64 << 53) as f64;

/// The least that a message may be limited to, bytes: smaller than any that holds a span.
const LEAST_MESSAGE: usize = 1 << 10;

/// Reads the size of a message in which something can be sent at all.
pub(super) fn message(text: &str) -> Result<usize, String> {
    let size = size(text)?;
    if size < LEAST_MESSAGE { Err(format!("expected at least 1KiB, found {text:?}")) } else { Ok(size) }
}

/// Reads the origin of web pages as browsers say it (RFC 6454): compared byte by byte, any other would never be met.
pub(super) fn origin(text: &str) -> Result<String, String> {
    let is_origin = |text: &str| {
        let (scheme, place) = text.split_once("://")?;
        let port = place.rsplit_once(':').map(|(_, port)| port).filter(|port| !port.ends_with(']'));
        let is_usual = matches!((scheme, port), ("http", Some("80")) | ("https", Some("443")));
        let is_port = port.is_none_or(|port| port.parse::<u16>().is_ok());
        let is_bare = !place.contains(|c: char| c.is_ascii_uppercase() || !c.is_ascii_graphic() || "/?#@*".contains(c));
        (!scheme.is_empty() && is_bare && is_port && !is_usual && !place.is_empty() && !place.starts_with(':'))
            .then_some(())
    };
    if matches!(text, "*" | "null") || is_origin(text).is_some() {
        return Ok(text.to_owned());
    }
    Err(format!(
        "expected an origin as browsers send it, such as https://grafana.example:3000 (small letters, no path, no usual \
         port), * for any or null, found {text:?}"
    ))
}

/// The longest time, seconds: a hundred years.
const LONGEST: f64 = 36_500.0 * 86_400.0;

/// Reads a size in which something can be kept at all: the tables of an empty store take a part of it.
pub(super) fn memory(text: &str) -> Result<usize, String> {
    let size = size(text)?;
    if size < LEAST { Err(format!("expected at least 1MiB, found {text:?}")) } else { Ok(size) }
}

/// The least memory that may be asked for, bytes.
const LEAST: usize = 1 << 20;

/// Reads `90s`, `1.5m`, `500ms`; a bare number is seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..digits].parse().map_err(|_| format!("expected a time such as 60s, found {text:?}"))?;
    let seconds = match text[digits..].trim() {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86400.0,
        other => return Err(format!("expected ms, s, m, h or d, found {other:?}")),
    };
    let time = Duration::try_from_secs_f64(number * seconds).ok().filter(|time| time.as_secs_f64() <= LONGEST);
    time.ok_or_else(|| format!("expected a time of at most 36500d, found {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_are_read_with_their_units() {
        assert_eq!((size("512MiB"), size("64k"), size("1.5 gib")), (Ok(512 << 20), Ok(64 << 10), Ok(3 << 29)));
        assert_eq!((memory("1MiB"), memory("1")), (Ok(1 << 20), Err("expected at least 1MiB, found \"1\"".into())));
        assert_eq!((message("1KiB"), message("0")), (Ok(1 << 10), Err("expected at least 1KiB, found \"0\"".into())));
        for text in ["99999999999999999999GiB", "8388608GiB", &"9".repeat(400)] {
            assert!(size(text).unwrap_err().contains("below 8388608GiB"), "{text}");
        }
        for text in ["36501d", "99999999999999999999", &"9".repeat(400)] {
            assert!(duration(text).unwrap_err().contains("at most 36500d"), "{text}");
        }
        assert_eq!((size("8388607GiB"), size("0")), (Ok(8_388_607 << 30), Ok(0)));
        assert_eq!(duration("36500d"), Ok(Duration::from_secs(36_500 * 86_400)));
        assert!(size("lots").is_err() && size("5 parsecs").is_err());
        assert_eq!(
            (duration("500ms"), duration("2"), duration("1.5m")),
            (Ok(Duration::from_millis(500)), Ok(Duration::from_secs(2)), Ok(Duration::from_secs(90)))
        );
        assert!(duration("-1s").is_err() && duration("1 fortnight").is_err());
    }

    #[test]
    fn origins_are_those_that_browsers_send() {
        for text in [
            "*",
            "null",
            "https://a",
            "http://127.0.0.1:3000",
            "http://[::1]",
            "http://[::1]:81",
            "moz-extension://0f-1",
        ] {
            assert_eq!(origin(text).as_deref(), Ok(text));
        }
        for text in [
            "",
            "foo",
            "a:3000",
            "http://",
            "://a",
            "http://a/",
            "http://a/path",
            "https://A",
            "https://a:443",
            "http://a:80",
            "http://a:x",
            "http://*.a",
            "http://u@a",
            "http://[::1]:80443",
            "http://a?b",
            "http://a b",
            "http://:80",
        ] {
            let error = origin(text).unwrap_err();
            assert!(error.starts_with("expected an origin") && error.ends_with(&format!("found {text:?}")), "{error}");
        }
    }
}
