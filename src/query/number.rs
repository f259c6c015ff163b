//! Numbers with units, and the intervals they make.

/// What a number counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unit {
    /// A plain number: counts, tokens, costs.
    Plain,
    /// A time; nanoseconds inside.
    Time,
    /// A size; bytes inside.
    Bytes,
    /// A share; 1 inside is the whole.
    Share,
}

/// A unit and what a number without one is worth in it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Measure {
    pub unit: Unit,
    pub plain: f64,
}

impl Measure {
    pub const PLAIN: Self = Self { unit: Unit::Plain, plain: 1.0 };
    pub const BYTES: Self = Self { unit: Unit::Bytes, plain: 1.0 };
    pub const SHARE: Self = Self { unit: Unit::Share, plain: 1.0 };
    /// Times; without a unit, milliseconds.
    pub const MILLIS: Self = Self { unit: Unit::Time, plain: 1e6 };

    /// What a received number is worth inside.
    pub fn scaled(self, number: f64) -> f64 {
        self.worth(number, self.plain)
    }

    /// Times are whole nanoseconds, so that `0.3us` is 300 of them.
    fn worth(self, number: f64, factor: f64) -> f64 {
        let worth = number * factor;
        if self.unit == Unit::Time { worth.round() } else { worth }
    }
}

impl Unit {
    /// Its suffixes and what each is worth.
    pub fn suffixes(self) -> &'static [(&'static str, f64)] {
        match self {
            Self::Plain => &[],
            Self::Time => &[
                ("ms", 1e6),
                ("s", 1e9),
                ("us", 1e3),
                ("ns", 1.0),
                ("m", 6e10),
                ("h", 3.6e12),
                ("µs", 1e3),
                ("μs", 1e3),
            ],
            Self::Bytes => &[
                ("B", 1.0),
                ("KiB", 1024.0),
                ("MiB", 1_048_576.0),
                ("GiB", 1_073_741_824.0),
                ("kB", 1e3),
                ("MB", 1e6),
                ("GB", 1e9),
            ],
            Self::Share => &[("%", 0.01)],
        }
    }

    /// What to write, for messages.
    pub fn expected(self) -> &'static str {
        match self {
            Self::Plain => "a number without a unit",
            Self::Time => "a time such as 250us, 100ms, 1.5s or 2m",
            Self::Bytes => "a size such as 900B, 4KiB or 1.5MiB",
            Self::Share => "a share such as 20% or 0.2",
        }
    }

    /// The word in the reference.
    pub fn word(self) -> &'static str {
        match self {
            Self::Plain => "number",
            Self::Time => "time (ns us ms s m h)",
            Self::Bytes => "size (B KiB MiB GiB kB MB GB)",
            Self::Share => "share (%)",
        }
    }
}

/// Numbers from `low` to `high`; each end may be left out.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Interval {
    pub low: f64,
    pub high: f64,
    pub without_low: bool,
    pub without_high: bool,
}

impl Interval {
    /// Every number.
    pub const ALL: Self = Self { low: f64::NEG_INFINITY, high: f64::INFINITY, without_low: false, without_high: false };

    pub fn just(number: f64) -> Self {
        Self { low: number, high: number, ..Self::ALL }
    }

    #[inline]
    pub fn holds(&self, number: f64) -> bool {
        (number > self.low || (number == self.low && !self.without_low))
            && (number < self.high || (number == self.high && !self.without_high))
    }

    /// Whether no number is in it.
    pub fn is_empty(&self) -> bool {
        self.low > self.high || (self.low == self.high && (self.without_low || self.without_high))
    }

    /// Reads `5`, `5ms`, `a..b`, `a..<b`, `a..` or `..b`; it may turn out empty. The message says what was expected.
    pub fn read(text: &str, measure: Measure) -> Result<Self, String> {
        let Some((low, high)) = text.split_once("..") else {
            return Ok(Self::just(number(text, measure)?));
        };
        let (high, without_high) = match high.strip_prefix('<') {
            Some(high) => (high, true),
            None => (high, false),
        };
        if high.is_empty() && (low.is_empty() || without_high) {
            return Err(format!("expected a range such as a..b, a.. or ..b, found {text:?}"));
        }
        let mut interval = Self { without_high, ..Self::ALL };
        let mut low_measure = measure;
        if !high.is_empty() {
            let (_, factor) = parts(high, measure)?;
            interval.high = number(high, measure)?;
            low_measure.plain = factor;
        }
        if !low.is_empty() {
            interval.low = number(low, low_measure)?;
        }
        Ok(interval)
    }
}

/// One number, inside its unit.
pub(super) fn number(text: &str, measure: Measure) -> Result<f64, String> {
    let (number, factor) = parts(text, measure)?;
    let worth = measure.worth(number, factor);
    if worth.is_finite() { Ok(worth) } else { Err(format!("{text} is too large")) }
}

fn parts(text: &str, measure: Measure) -> Result<(f64, f64), String> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-').len();
    let digits = match &text.as_bytes()[digits..] {
        [b'e' | b'E', b'0'..=b'9', ..] => exponent(text, digits + 1),
        [b'e' | b'E', b'-' | b'+', b'0'..=b'9', ..] => exponent(text, digits + 2),
        _ => digits,
    };
    let (number, suffix) = text.split_at(digits);
    let unexpected = || format!("expected {}, found {text:?}", measure.unit.expected());
    let number: f64 = number.parse().map_err(|_| unexpected())?;
    let factor = match suffix {
        "" => measure.plain,
        _ => measure.unit.suffixes().iter().find(|(name, _)| *name == suffix).ok_or_else(unexpected)?.1,
    };
    Ok((number, factor))
}

fn exponent(text: &str, from: usize) -> usize {
    from + text[from..].bytes().take_while(u8::is_ascii_digit).count()
}
