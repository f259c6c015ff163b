//! What is written comes back as it was.

use super::*;

struct Fixed;

impl Pieces for Fixed {
    fn attr(&self, piece: u32) -> Attr<'_> {
        Attr { field: Field::Other, key: ["a", "b", "c"][piece as usize], value: Value::Str("v") }
    }
    fn text(&self, piece: u32) -> &str {
        ["zero", "one", "two"][piece as usize]
    }
}

#[test]
fn what_is_written_is_read_back() {
    let mut bytes = Vec::new();
    let head = Head { status_code: -2, status_message: Some(1), trace_state: Some(2), flags: 257, dropped: [7, 0, 1] };
    let mut writer = Writer(&mut bytes);
    writer.head(&head, true, true);
    writer.attrs(&[Code::Piece(0), Code::Int(1, -5), Code::Text(2, b"in place"), Code::Keyed(0, 1)]);
    writer.count(1);
    writer.event(-10, 0, 3, &[Code::Piece(2)]);
    writer.count(2);
    writer.link(&[1; 16], &[2; 8], None, 1, 0, &[]);
    writer.link(&[], &[], Some(0), 0, 4, &[Code::Int(0, i64::MIN)]);

    let body = Body::new(&bytes, &Fixed);
    assert_eq!(body.head(), head);
    assert_eq!((body.status_message(), body.trace_state()), ("one", "two"));
    let attrs: Vec<_> = body.attrs().map(|attr| (attr.key, attr.value)).collect();
    assert_eq!(
        attrs,
        [("a", Value::Str("v")), ("b", Value::Int(-5)), ("c", Value::Str("in place")), ("a", Value::Str("v"))]
    );
    let values: Vec<_> = body.attrs().unread().map(super::Unread::value).collect();
    assert_eq!(values, [Value::Str("v"), Value::Int(-5), Value::Str("in place"), Value::Str("v")]);
    let events = body.events();
    assert_eq!((events.len(), events[0].offset_ns, events[0].name, events[0].dropped), (1, -10, "zero", 3));
    assert_eq!(events[0].attrs.map(|attr| attr.key).collect::<Vec<_>>(), ["c"]);
    let links = body.links();
    assert_eq!((links.len(), links[0].trace, links[0].span, links[0].flags), (2, &[1; 16][..], &[2; 8][..], 1));
    assert_eq!((links[1].trace_state, links[1].dropped), ("zero", 4));
    assert_eq!(links[1].attrs.map(|attr| attr.value).collect::<Vec<_>>(), [Value::Int(i64::MIN)]);

    let (mut attrs, mut texts) = (Vec::new(), Vec::new());
    Reader::new(&bytes).pieces(|piece| attrs.push(piece), |piece| texts.push(piece));
    assert_eq!((attrs, texts), (vec![0, 1, 2, 0, 1, 2, 0], vec![1, 2, 0, 0]));
}
