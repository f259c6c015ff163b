//! The one form of numbers, durations and sizes on every screen. Keeps out: units of the filter language (`query`).

/// `1,204`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A noun as it stands after a number: `request` after 1, `requests` after any other.
pub fn noun<'a>(number: u64, one: &'a str, many: &'a str) -> &'a str {
    if number == 1 { one } else { many }
}

/// `1 request`, `1,204 requests`.
pub fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), noun(number, one, many))
}

/// A count in at most five columns: `1,204`, `14.2k`, `3.1M`.
pub fn short_count(number: u64) -> String {
    scaled(number as f64, 10_000.0, 1000.0, &["", "k", "M", "G", "T", "P", "E"], "").unwrap_or_else(|| count(number))
}

/// A rate per second: `0`, `0.4`, `812`, `14.2k`.
pub fn rate(per_second: f64) -> String {
    if per_second > 0.0 && per_second < 9.95 {
        format!("{per_second:.1}")
    } else {
        short_count(per_second.max(0.0).round() as u64)
    }
}

/// A size in bytes: `812 B`, `2.6 KiB`, `82 MiB`.
pub fn bytes(size: u64) -> String {
    scaled(size as f64, 1024.0, 1024.0, &["", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"], " ")
        .unwrap_or_else(|| format!("{size} B"))
}

/// `None` below `from`; otherwise two or three digits and the unit.
fn scaled(number: f64, from: f64, step: f64, units: &[&str], gap: &str) -> Option<String> {
    if number < from {
        return None;
    }
    let (mut value, mut unit) = (number, 0);
    while value >= step - 0.5 && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    let digits = usize::from(value < 99.95);
    let text = format!("{value:.digits$}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    Some(format!("{text}{gap}{}", units[unit]))
}

/// A duration given in nanoseconds: `0`, `4 µs`, `0.1 ms`, `412 ms`, `1.9 s`, `2m05s`, `3h12m`, `9d04h`.
pub fn duration(ns: u64) -> String {
    let (ms, seconds) = (ns as f64 / 1e6, ns / 1_000_000_000);
    match ns {
        0 => "0".into(),
        1..50_000 => format!("{} µs", (ns as f64 / 1e3).max(0.1).ceil()),
        50_000..9_950_000 => format!("{ms:.1} ms"),
        9_950_000..999_500_000 => format!("{ms:.0} ms"),
        999_500_000..59_950_000_000 => format!("{:.1} s", ns as f64 / 1e9),
        _ if seconds < 3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ if seconds < 86_400 => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds / 3600 % 24),
    }
}

/// An age given in nanoseconds, for a narrow column: `0.4s`, `12s`, `2m`, `3h`, `9d`. Coarse, so that it stays right for
/// as long as it is coarse.
pub fn age(ns: u64) -> String {
    match ns / 1_000_000_000 {
        0..10 => format!("{:.1}s", ns as f64 / 1e9),
        seconds @ 10..60 => format!("{seconds}s"),
        seconds @ 60..3600 => format!("{}m", seconds / 60),
        seconds @ 3600..86_400 => format!("{}h", seconds / 3600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

/// A signed offset given in nanoseconds: `+0.2 ms`, `−3.0 s`.
pub fn offset(ns: i64) -> String {
    format!("{}{}", if ns < 0 { "−" } else { "+" }, duration(ns.unsigned_abs()))
}

/// A cost: two decimals when small, fewer as it grows.
pub fn cost(value: f64) -> String {
    match value.abs() {
        magnitude if !magnitude.is_finite() => value.to_string(),
        ..100.0 => format!("{value:.2}"),
        ..10_000.0 => format!("{value:.1}"),
        ..1e15 => format!("{}{}", if value < 0.0 { "-" } else { "" }, count(value.abs().round() as u64)),
        _ => format!("{value:.2e}"),
    }
}

/// A share as `31 %`, with one decimal below ten.
pub fn percent(part: u64, whole: u64) -> String {
    if whole == 0 { "–".into() } else { share(part as f64 / whole as f64) }
}

/// A share from 0 to 1, likewise.
pub fn share(share: f64) -> String {
    let percent = share * 100.0;
    if percent > 0.0 && percent < 9.95 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}

/// A time of day in UTC, as all times are shown: `12:04:31Z`.
pub fn clock(ns: u64) -> String {
    jiff::Timestamp::from_nanosecond(i128::from(ns)).map_or("–".into(), |time| time.strftime("%H:%M:%SZ").to_string())
}

/// Likewise with milliseconds: `12:04:31.250Z`.
pub fn clock_ms(ns: u64) -> String {
    let time = jiff::Timestamp::from_nanosecond(i128::from(ns));
    time.map_or("–".into(), |time| time.strftime("%H:%M:%S%.3fZ").to_string())
}

/// A moment in full, in UTC: `2026-11-30T03:14:12.123456789Z`.
pub fn timestamp(ns: u64) -> String {
    jiff::Timestamp::from_nanosecond(i128::from(ns)).map_or_else(|_| ns.to_string(), |time| format!("{time:.9}"))
}

/// An id cut in the middle of a row: its first eight characters.
pub fn short_id(id: &str) -> String {
    id.chars().take(8).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_one_form() {
        assert_eq!([0, 999, 1204, 1_234_567].map(count), ["0", "999", "1,204", "1,234,567"]);
        assert_eq!([1204, 14_230, 999_999, 3_100_000].map(short_count), ["1,204", "14.2k", "1M", "3.1M"]);
        assert_eq!([0.0, 0.42, 812.4, 14_230.0].map(rate), ["0", "0.4", "812", "14.2k"]);
        assert_eq!([0, 812, 2662, 82 << 20, u64::MAX].map(bytes), ["0 B", "812 B", "2.6 KiB", "82 MiB", "16 EiB"]);
        assert_eq!(
            [0, 3900, 100_000, 412_000_000, 1_900_000_000, 125_000_000_000, 11_520_000_000_000, u64::MAX].map(duration),
            ["0", "4 µs", "0.1 ms", "412 ms", "1.9 s", "2m05s", "3h12m", "213503d23h"]
        );
        assert_eq!([400_000_000, 12_400_000_000, 125_000_000_000].map(age), ["0.4s", "12s", "2m"]);
        assert_eq!([offset(200_000), offset(-3_000_000_000)], ["+0.2 ms", "−3.0 s"]);
        assert_eq!([12.5, 812.26, 12_345.6, 0.0].map(cost), ["12.50", "812.3", "12,346", "0.00"]);
        assert_eq!([percent(31, 100), percent(3, 100), percent(0, 5), percent(1, 0)], ["31 %", "3.0 %", "0 %", "–"]);
        assert_eq!(timestamp(1_760_000_000_000_000_001), "2025-10-09T08:53:20.000000001Z");
    }
}
