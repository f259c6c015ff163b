//! The time axis of a request's waterfall.
//!
//! Times stay as received; one that is zero or hours from all the others is marked and does not stretch the axis
//! (field cases B32, B33), while a clock a few seconds off is drawn where it says (B38).

use crate::lifecycle::request::{RequestView, SpanView, Up};

/// From where to where the waterfall goes, nanoseconds since the epoch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Axis {
    /// The left edge.
    pub start_ns: u64,
    /// The right edge, after the left one.
    pub end_ns: u64,
    /// A moment near which times are likely.
    near_ns: u64,
}

/// Times further than this from the middle one are taken for wrong: longer than any request, shorter than any reset clock.
const FAR_NS: u64 = 3_600_000_000_000;

/// What is odd about a span's times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Oddity {
    /// Start 0: drawn at its parent's start.
    NoStart,
    /// A start or end hours away from all others.
    Unlikely,
    /// Ends before it starts: drawn with no length.
    EndBeforeStart,
    /// Starts before its parent, by nanoseconds.
    BeforeParent(u64),
    /// In another process, starts after its parent ended, by nanoseconds.
    AfterParent(u64),
}

/// Where a span stands on the axis.
#[derive(Clone, PartialEq, Debug)]
pub struct Placed {
    /// Left end, from 0 to 1.
    pub start: f64,
    /// Length, from 0 to 1.
    pub length: f64,
    /// Whether it has not ended.
    pub running: bool,
    /// What is odd.
    pub oddities: Vec<Oddity>,
}

impl Axis {
    /// The axis of a request. `now_ns` is where running spans end while the request is in flight.
    pub fn of(request: &RequestView<'_>, now_ns: u64) -> Self {
        let mut starts: Vec<u64> = request.spans.iter().map(|span| span.start_ns).filter(|start| *start > 0).collect();
        starts.sort_unstable();
        let near_ns = match starts.len() {
            0 => request.facts.start_ns,
            count => starts[(count - 1) / 2],
        };
        let likely = |time: &u64| *time > 0 && time.abs_diff(near_ns) <= FAR_NS;
        // A time at the very end of what can be counted leaves room for an end.
        let start_ns = starts.iter().copied().find(|start| likely(start)).unwrap_or(near_ns).min(u64::MAX - 1);
        let ends = request.spans.iter().flat_map(|span| [span.start_ns, span.end_ns]).filter(|time| likely(time));
        let running = request.facts.end_ns.is_none() && likely(&now_ns);
        let end_ns = ends.chain(running.then_some(now_ns)).max().unwrap_or(start_ns);
        Self { start_ns, end_ns: end_ns.max(start_ns + 1), near_ns }
    }

    /// Its length in nanoseconds.
    pub fn length_ns(&self) -> u64 {
        self.end_ns - self.start_ns
    }

    fn is_likely(&self, time: u64) -> bool {
        time.abs_diff(self.near_ns) <= FAR_NS
    }

    fn fraction(&self, time: u64) -> f64 {
        (time.clamp(self.start_ns, self.end_ns) - self.start_ns) as f64 / self.length_ns() as f64
    }

    /// Where a span stands.
    pub fn place(&self, span: &SpanView<'_>, request: &RequestView<'_>) -> Placed {
        let mut oddities = Vec::new();
        let parent = match span.up {
            Up::At(index) => request.spans.get(index as usize),
            _ => None,
        };
        let parent_start = parent.map(|parent| parent.start_ns).filter(|start| *start > 0 && self.is_likely(*start));
        let start_ns = match span.start_ns {
            0 => {
                oddities.push(Oddity::NoStart);
                parent_start.unwrap_or(self.start_ns)
            }
            start if !self.is_likely(start) => {
                oddities.push(Oddity::Unlikely);
                parent_start.unwrap_or(self.start_ns)
            }
            start => {
                if let Some(parent_start) = parent_start
                    && start < parent_start
                {
                    oddities.push(Oddity::BeforeParent(parent_start - start));
                }
                if let Some(parent) = parent.filter(|parent| parent.resource != span.resource)
                    && parent.end_ns >= parent.start_ns.max(1)
                    && self.is_likely(parent.end_ns)
                    && start > parent.end_ns
                {
                    oddities.push(Oddity::AfterParent(start - parent.end_ns));
                }
                start
            }
        };
        let (mut end_ns, running) = match span.end_ns {
            0 => (self.end_ns, span.start_ns > 0),
            end if !self.is_likely(end) => {
                if !oddities.contains(&Oddity::Unlikely) {
                    oddities.push(Oddity::Unlikely);
                }
                (start_ns, false)
            }
            end if end < span.start_ns => {
                oddities.push(Oddity::EndBeforeStart);
                (start_ns, false)
            }
            end => (end, false),
        };
        if !running && span.end_ns == 0 {
            end_ns = start_ns;
        }
        let start = self.fraction(start_ns);
        Placed { start, length: (self.fraction(end_ns) - start).max(0.0), running, oddities }
    }

    /// Marks for an axis `width` columns long: column and nanoseconds from its start. Round steps, room between.
    pub fn ticks(&self, width: u16) -> Vec<(u16, u64)> {
        let (length, most) = (self.length_ns(), u64::from(width / 12).max(1));
        let mut step = 1u64;
        'found: loop {
            for factor in [1, 2, 5] {
                if length / (step * factor) <= most {
                    step *= factor;
                    break 'found;
                }
            }
            step *= 10;
        }
        (0..=length / step)
            .map(|index| index * step)
            .map(|ns| ((ns as f64 / length as f64 * f64::from(width.saturating_sub(1))) as u16, ns))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lifecycle::facts::{Facts, State};
    use crate::view::data::Data;
    use crate::view::fixture::{Def, Fixture, MS, NOW, def};

    fn placed(spans: Vec<Def<'_>>) -> (Axis, Vec<Placed>) {
        let mut fixture = Fixture::default();
        let key = fixture.add(Facts { state: State::Ended, end_ns: Some(NOW), ..Facts::default() });
        let ids: Vec<u64> = spans.iter().map(|span| span.id).collect();
        for span in spans {
            fixture.span(key, span);
        }
        let request = fixture.request(key).unwrap();
        let axis = Axis::of(&request, NOW);
        let place = |id: &u64| {
            let span = request.spans.iter().find(|span| span.id.0 == id.to_be_bytes()).unwrap();
            axis.place(span, &request)
        };
        (axis, ids.iter().map(place).collect())
    }

    #[test]
    fn b32_an_end_before_its_start_has_no_length_and_a_mark() {
        let mut wrong = def(2, 1, "x", 50.0, 50.0);
        wrong.end_ns = wrong.start_ns - 1;
        let (axis, placed) = placed(vec![def(1, 0, "http-request", 0.0, 100.0), wrong]);
        assert_eq!(axis.length_ns(), 100 * MS);
        assert_eq!((placed[1].length, &placed[1].oddities[..]), (0.0, &[Oddity::EndBeforeStart][..]));
    }

    #[test]
    fn the_end_of_time_is_a_time() {
        let mut last = def(1, 0, "http-request", 0.0, 0.0);
        (last.start_ns, last.end_ns) = (u64::MAX, u64::MAX);
        let (axis, placed) = placed(vec![last]);
        assert_eq!((axis.length_ns(), placed.len()), (1, 1));
    }

    #[test]
    fn b33_one_bad_time_does_not_stretch_the_axis() {
        let at = |id, start_ns, end_ns| Def { start_ns, end_ns, ..def(id, 1, "x", 0.0, 0.0) };
        let good = def(1, 0, "http-request", 0.0, 120.0);
        let start = good.start_ns;
        let (axis, placed) = placed(vec![
            good,
            at(2, 0, 0),
            at(3, start + 10 * MS, 0),
            at(4, 7_258_118_400_000_000_000, 7_258_118_400_000_000_000),
        ]);
        assert_eq!(axis.length_ns(), 120 * MS);
        assert_eq!((placed[1].running, &placed[1].oddities[..]), (false, &[Oddity::NoStart][..]));
        assert!(placed[2].running && (placed[2].start + placed[2].length - 1.0).abs() < 1e-9);
        assert_eq!(placed[3].oddities, [Oddity::Unlikely]);
    }

    #[test]
    fn b38_a_clock_that_is_off_is_drawn_where_it_says_and_marked() {
        let (axis, placed) = placed(vec![
            def(1, 0, "http-request", 0.0, 1000.0),
            def(2, 1, "handle_payload", -3000.0, -2200.0),
            def(3, 1, "response.streaming", 900.0, 1800.0),
        ]);
        assert_eq!(axis.length_ns(), 4800 * MS);
        assert_eq!((placed[1].start, &placed[1].oddities[..]), (0.0, &[Oddity::BeforeParent(3000 * MS)][..]));
        assert!(placed[2].oddities.is_empty(), "outliving a parent is normal");
    }

    #[test]
    fn ticks_are_round_and_leave_room() {
        let axis = Axis { start_ns: 0, end_ns: 1_900 * MS, near_ns: 0 };
        assert_eq!(axis.ticks(60).iter().map(|(_, ns)| ns / MS).collect::<Vec<_>>(), [0, 500, 1000, 1500]);
        for width in [0, 1, 11, 12, 300] {
            assert!(axis.ticks(width).len() <= usize::from(width / 12).max(1) + 1);
        }
        assert_eq!(Axis { start_ns: 5, end_ns: 6, near_ns: 5 }.ticks(40).len(), 2);
    }
}
