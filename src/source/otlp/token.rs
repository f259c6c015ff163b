//! The bearer token that senders must show, when one is asked for.
//!
//! Owns: reading it from a file or the environment, comparing it in constant time, the words for those without it. Keeps
//! out: statuses (`grpc`, `http`). The token itself is in no message, no `Debug` output and on no command line.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use axum::http::{HeaderMap, HeaderValue, header};
use subtle::ConstantTimeEq;

/// The longest token, bytes: it has to fit a header with everything else (`serve` bounds those).
const LONGEST: usize = 4096;
/// A token below this many bytes is worth a word: it can be guessed.
const SHORT: usize = 16;

/// A secret that senders show in `authorization: Bearer …`. Its `Debug` does not show it.
#[derive(Clone)]
pub struct Token {
    secret: Arc<[u8]>,
    cautions: Vec<String>,
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Token {
    /// Reads a token from a file: its only line.
    ///
    /// # Errors
    /// When it cannot be read or holds no token; says what was expected and never what was found.
    pub fn from_file(path: &Path) -> Result<Self, String> {
        let name = path.display();
        let mut bytes = Vec::new();
        let file = File::open(path).map_err(|error| format!("{name}: {error}"))?;
        let open_to_others = super::tls::open_to_others(&file);
        file.take(LONGEST as u64 + 2).read_to_end(&mut bytes).map_err(|error| format!("{name}: {error}"))?;
        let mut token = Self::new(bytes.trim_ascii()).map_err(|error| format!("{name}: {error}"))?;
        if open_to_others {
            token.cautions.push(format!("the token file {name} can be read by others: chmod 600 {name}"));
        }
        Ok(token)
    }

    /// A token as it is.
    ///
    /// # Errors
    /// When it is no token; the sentence does not hold it.
    pub fn new(secret: &[u8]) -> Result<Self, String> {
        let fits = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(byte);
        match secret.len() {
            0 => return Err("expected a token, found nothing".into()),
            length if length > LONGEST => return Err(format!("expected a token of at most {LONGEST} bytes")),
            _ if !secret.iter().all(fits) => {
                return Err("expected one token of letters, digits and -._~+/= (RFC 6750), found other characters; \
                     `openssl rand -hex 32` makes one"
                    .into());
            }
            _ => {}
        }
        let mut cautions = Vec::new();
        if secret.len() < SHORT {
            cautions.push(format!("the token is shorter than {SHORT} characters: it can be guessed"));
        }
        Ok(Self { secret: secret.into(), cautions })
    }

    /// The token itself, for this program's own senders.
    pub fn reveal(&self) -> String {
        String::from_utf8_lossy(&self.secret).into_owned()
    }

    /// The header's value that shows it; nothing prints it.
    pub fn bearer(&self) -> HeaderValue {
        // A token is made of characters that fit a header.
        let mut value = HeaderValue::from_bytes(&[b"Bearer ", &self.secret[..]].concat())
            .unwrap_or_else(|_| HeaderValue::from_static("Bearer"));
        value.set_sensitive(true);
        value
    }

    /// What is worth telling whoever set it up.
    pub fn cautions(&self) -> impl Iterator<Item = String> {
        self.cautions.iter().cloned()
    }

    /// Whether a request shows the token; why not, in words for the sender. How long the comparison takes tells nothing
    /// but whether the lengths are equal.
    pub(super) fn check(&self, headers: &HeaderMap) -> Result<(), &'static str> {
        let mut shown = headers.get_all(header::AUTHORIZATION).iter();
        let (first, further) = (shown.next(), shown.next());
        let Some(first) = first.filter(|_| further.is_none()) else {
            return Err("expected one header `authorization: Bearer TOKEN`, found none or several");
        };
        let scheme = first.as_bytes().get(..7).unwrap_or_default();
        if !scheme.eq_ignore_ascii_case(b"bearer ") {
            return Err("expected the header `authorization: Bearer TOKEN`, found another scheme");
        }
        let shown = first.as_bytes()[7..].trim_ascii();
        if bool::from(shown.ct_eq(&self.secret)) {
            Ok(())
        } else {
            Err("the token in `authorization: Bearer TOKEN` is not the one asked for here")
        }
    }

    /// The value of `WWW-Authenticate` for those without it.
    pub(super) const CHALLENGE: HeaderValue = HeaderValue::from_static("Bearer realm=\"reqtop\"");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(values: &[&str]) -> HeaderMap {
        values.iter().map(|value| (header::AUTHORIZATION, HeaderValue::from_str(value).unwrap())).collect()
    }

    #[test]
    fn only_the_token_itself_opens() {
        let token = Token::new(b"correct-horse-battery").unwrap();
        for good in ["Bearer correct-horse-battery", "bearer  correct-horse-battery", "BEARER correct-horse-battery "] {
            assert_eq!(token.check(&shown(&[good])), Ok(()), "{good}");
        }
        for bad in [
            &[][..],
            &["correct-horse-battery"],
            &["Basic correct-horse-battery"],
            &["Bearer"],
            &["Bearer "],
            &["Bearer correct-horse-batter"],
            &["Bearer correct-horse-battery2"],
            &["Bearer Correct-horse-battery"],
            &["Bearer correct-horse-battery", "Bearer correct-horse-battery"],
        ] {
            let words = token.check(&shown(bad)).unwrap_err();
            assert!(words.contains("Bearer TOKEN") && !words.contains("horse"), "{bad:?}: {words}");
        }
    }

    #[test]
    fn a_token_is_never_shown_and_nonsense_is_named_without_it() {
        assert_eq!(format!("{:?}", Token::new(b"s3cret-s3cret-s3cret").unwrap()), "Token(…)");
        for nonsense in [&b"two words"[..], b"s3cret\nX: y", b"", "schl\u{fc}ssel".as_bytes(), &[b's'; LONGEST + 1]] {
            let error = Token::new(nonsense).unwrap_err();
            assert!(error.contains("expected") && !error.contains("s3cret"), "{error}");
        }
        assert!(Token::new(b"short").unwrap().cautions().next().unwrap().contains("guessed"));
    }

    #[test]
    fn a_file_holds_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        std::fs::write(&path, "correct-horse-battery\r\n").unwrap();
        assert_eq!(
            Token::from_file(&path).unwrap().check(&shown(&["Bearer correct-horse-battery"])),
            Ok(()),
            "its line ending does not belong to it"
        );
        let error = Token::from_file(&folder.path().join("none")).unwrap_err();
        assert!(error.contains("none: "), "{error}");
    }
}
