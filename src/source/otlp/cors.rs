//! Requests of web pages (field case B21): off unless origins are allowed; then both the preflight and the answer itself
//! carry the header a browser looks for.
//!
//! Every browser says the page's origin with a POST, even to what it takes for the page's own server. That is what a page
//! gets to see whose name was made to mean this machine meanwhile (DNS rebinding), so its origin gives it away where a
//! `Host` header could not be told from the names that senders rightly use. Owns: these headers. Keeps out: everything else
//! of HTTP.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;

/// The request's origin, when it is one of the allowed (`*` allows any).
pub(super) fn allowed<'a>(origins: &[String], headers: &'a HeaderMap) -> Option<&'a HeaderValue> {
    let origin = headers.get(header::ORIGIN)?;
    origins.iter().any(|allowed| allowed == "*" || allowed.as_bytes() == origin.as_bytes()).then_some(origin)
}

/// Whether a web page sent this that may not.
pub(super) fn is_foreign(origins: &[String], headers: &HeaderMap) -> bool {
    headers.contains_key(header::ORIGIN) && allowed(origins, headers).is_none()
}

/// Allows this origin to read the answer.
pub(super) fn allow(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::VARY, HeaderValue::from_static("origin"));
}

/// The answer to a preflight: to `OPTIONS` with an origin and a requested method, while any origin is allowed at all.
pub(super) fn preflight(origins: &[String], method: &Method, headers: &HeaderMap) -> Option<Response> {
    let asked = method == Method::OPTIONS && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    if origins.is_empty() || !asked {
        return None;
    }
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    if let Some(origin) = allowed(origins, headers) {
        let out = response.headers_mut();
        allow(out, origin.clone());
        out.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("POST"));
        out.insert(
            header::ACCESS_CONTROL_ALLOW_HEADERS,
            HeaderValue::from_static("content-type, content-encoding, authorization"),
        );
        out.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    }
    Some(response)
}
