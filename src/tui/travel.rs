//! Moving the moment that is shown: what its keys ask for, and where that leads.

use super::action::Action;
use super::layers::menu::Menu;
use super::layers::{Command, Scene};
use crate::view::data::Data;

/// Where to in time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Travel {
    /// So many nanoseconds from the moment that is shown.
    By(i64),
    /// To the first moment that is kept.
    First,
    /// To the last one.
    Last,
    /// To this one, nanoseconds since the epoch.
    To(u64),
}

const SECOND: i64 = 1_000_000_000;

/// Where an action goes in time; `None` when it stays.
fn of(action: Action) -> Option<Travel> {
    Some(match action {
        Action::Earlier => Travel::By(-SECOND),
        Action::Later => Travel::By(SECOND),
        Action::MuchEarlier => Travel::By(-15 * SECOND),
        Action::MuchLater => Travel::By(15 * SECOND),
        Action::FirstMoment => Travel::First,
        Action::LastMoment => Travel::Last,
        _ => return None,
    })
}

/// What an action asks for; `None` when it has nothing to do with time.
pub fn commands(action: Action, scene: &Scene<'_>) -> Option<Vec<Command>> {
    Some(match action {
        Action::Bookmark => vec![Command::Bookmark],
        Action::Bookmarks if scene.env.bookmarks.is_empty() => {
            vec![Command::Say("no bookmark is set; m sets one at the moment that is shown".into())]
        }
        Action::Bookmarks => vec![Command::Push(Box::new(Menu::of_bookmarks()))],
        action => vec![Command::Travel(of(action)?)],
    })
}

/// The first and the last moment that can be shown, nanoseconds since the epoch; `None` while nothing is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moments {
    /// When anything was first heard of.
    pub first_ns: u64,
    /// When something was last, but not later than the present.
    pub last_ns: u64,
}

impl Moments {
    /// Of what is kept.
    pub fn of(data: &dyn Data, now_ns: u64) -> Option<Self> {
        let (first_ns, last_ns) = data.heard()?;
        let last_ns = last_ns.min(now_ns);
        Some(Self { first_ns: first_ns.min(last_ns), last_ns })
    }

    /// The moment to show, and what to say when it is not the one asked for.
    pub fn target(self, travel: Travel, shown_ns: Option<u64>) -> (u64, Option<&'static str>) {
        let asked_ns = match travel {
            Travel::By(by_ns) => shown_ns.unwrap_or(self.last_ns).saturating_add_signed(by_ns),
            Travel::First => self.first_ns,
            Travel::Last => self.last_ns,
            Travel::To(at_ns) => at_ns,
        };
        let at_ns = asked_ns.clamp(self.first_ns, self.last_ns);
        let word = match at_ns.cmp(&asked_ns) {
            std::cmp::Ordering::Less => Some("this is the last moment there is; p shows what comes in"),
            std::cmp::Ordering::Equal => None,
            std::cmp::Ordering::Greater => Some("nothing older is kept"),
        };
        (at_ns, word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_moves_within_what_is_kept() {
        let kept = Moments { first_ns: 10_000_000_000, last_ns: 30_000_000_000 };
        let seconds = |travel, shown: Option<u64>| {
            let (at_ns, word) = kept.target(travel, shown.map(|seconds| seconds * 1_000_000_000));
            (at_ns / 1_000_000_000, word.is_some())
        };
        assert_eq!(seconds(Travel::By(-SECOND), None), (29, false));
        assert_eq!(seconds(Travel::By(-15 * SECOND), Some(20)), (10, true));
        assert_eq!(seconds(Travel::By(15 * SECOND), Some(20)), (30, true));
        // A pause stands at the present, which may be long after the last moment.
        assert_eq!(seconds(Travel::By(-SECOND), Some(99)), (30, true));
        assert_eq!((seconds(Travel::First, Some(20)), seconds(Travel::Last, Some(20))), ((10, false), (30, false)));
        assert_eq!(seconds(Travel::To(5_000_000_000), None), (10, true));
    }
}
