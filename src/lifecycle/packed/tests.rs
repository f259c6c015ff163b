//! Any value packs, reads and cleans as it should.

use super::clean::TOO_DEEP;
use super::*;

#[test]
fn numbers_are_read_from_text_and_from_integers() {
    assert_eq!(Value::Str("10075825329253151357").as_u64(), Some(10_075_825_329_253_151_357));
    assert_eq!(Value::Int(7_587_890).as_u64(), Some(7_587_890));
    assert_eq!(Value::Int(-1).as_u64(), Some(u64::MAX));
    assert_eq!(Value::Str("12.34").as_f64(), Some(12.34));
    assert_eq!(Value::Str("NaN").as_f64(), None);
    assert_eq!(Value::Str("True").as_bool(), Some(true));
    assert_eq!(Value::Str("").as_u64(), None);
}

#[test]
fn what_is_packed_is_read_back() {
    for value in [
        Value::Str("x"),
        Value::Str(""),
        Value::Bool(false),
        Value::Int(-5),
        Value::Double(1.5),
        Value::Bytes(&[0, 255]),
        Value::Array(&[]),
        Value::Map(&[]),
        Value::Empty,
    ] {
        let packed = pack("key", value);
        assert_eq!(read(&packed), ("key", value));
        assert!(matches!(clean(&packed), Cow::Borrowed(_)));
    }
}

#[test]
fn hostile_text_is_scrubbed_and_the_rest_kept() {
    let mut packed = pack("a\u{1b}[2J", Value::Str("ok"));
    assert_eq!(read(&clean(&packed)), ("a\u{fffd}[2J", Value::Str("ok")));
    packed = pack("k", Value::Empty);
    packed.truncate(3);
    put_bytes(&mut packed, 2, &[0x0a, 3, b'a', 0xff, b'b']);
    assert_eq!(read(&clean(&packed)), ("k", Value::Str("a\u{fffd}b")));
}

#[test]
fn deep_nesting_costs_only_what_is_too_deep() {
    let mut value = Vec::new();
    put_value(&mut value, Value::Str("bottom"));
    for _ in 0..10_000 {
        let (mut list, mut outer) = (Vec::new(), Vec::new());
        put_bytes(&mut list, 1, &value);
        put_value(&mut outer, Value::Array(&list));
        value = outer;
    }
    let mut packed = Vec::new();
    put_bytes(&mut packed, 1, b"deep");
    put_bytes(&mut packed, 2, &value);
    let cleaned = clean(&packed).into_owned();
    let (key, mut value) = read(&cleaned);
    assert_eq!(key, "deep");
    for _ in 0..MAX_DEPTH {
        value = value.items().next().unwrap();
    }
    assert_eq!(value, Value::Str(TOO_DEEP));
    assert!(matches!(clean(&cleaned), Cow::Borrowed(_)));
}
