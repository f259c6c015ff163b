//! Requests and answers taken apart, each part as it lies in the bytes.
//!
//! Owns: their envelopes. Keeps out: what is in the parts (`super`).

use super::super::walk::*;

/// The resources of an `ExportTraceServiceRequest`, each as the bytes of a request that holds it alone.
///
/// # Errors
/// When the bytes are not well-formed protobuf: what was expected and in which field.
pub fn each_resource(bytes: &[u8]) -> Result<Vec<&[u8]>, String> {
    let (mut parts, mut walk) = (Vec::new(), Walk::over("ExportTraceServiceRequest", bytes));
    loop {
        let from = bytes.len() - walk.left();
        let Some(tag) = walk.tag()? else { return Ok(parts) };
        walk.skip(tag)?;
        if tag == LEN_1 {
            parts.push(&bytes[from..bytes.len() - walk.left()]);
        }
    }
}

/// The traces of a query's answer, each as an `ExportTraceServiceRequest`, and whether the answer says that it is only a
/// part: Tempo's newer answer holds such a message as field 1 beside a status (3, where 1 is "partial"); its older answer
/// is one. They are told apart by what stands in field 1: a message of nothing but resources, or a resource with scopes.
///
/// # Errors
/// When the bytes are not well-formed protobuf: what was expected and in which field.
pub fn unwrapped(bytes: &[u8]) -> Result<(Vec<&[u8]>, bool), String> {
    let (mut traces, mut partial, mut walk) = (Vec::new(), false, Walk::over("an answer with a trace", bytes));
    while let Some(tag) = walk.tag()? {
        match tag {
            LEN_1 => traces.push(walk.bytes(tag)?),
            VAR_3 => partial = walk.number(tag)? == 1,
            _ => walk.skip(tag)?,
        }
    }
    for trace in &traces {
        let mut inner = Walk::over("a trace of an answer", trace);
        while let Some(tag) = inner.tag()? {
            if tag != LEN_1 {
                return Ok((vec![bytes], false));
            }
            inner.skip(tag)?;
        }
    }
    Ok((traces, partial))
}
