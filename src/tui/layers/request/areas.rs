//! Where the parts of the request screen stand: as many as have room.

use ratatui::layout::{Position, Rect};

use super::RequestLayer;
use crate::tui::panes::story;

/// The parts that keys can go to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    Tree,
    Evidence,
    Attributes,
    Records,
}

impl Part {
    pub(super) const ALL: [Self; 4] = [Self::Tree, Self::Evidence, Self::Attributes, Self::Records];

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Tree => "Tree",
            Self::Evidence => "Evidence",
            Self::Attributes => "Attributes",
            Self::Records => "Records",
        }
    }
}

/// Where the parts of the screen are.
pub(super) struct Areas {
    pub(super) title: Rect,
    /// Without rows where there is no room for it.
    pub(super) story: Rect,
    pub(super) tree: Rect,
    /// The lists that are shown, with their parts.
    pub(super) lists: Vec<(Part, Rect)>,
}

impl Areas {
    /// The part that stands at a place of the screen, and where.
    pub(super) fn part_at(&self, at: Position) -> Option<(Part, Rect)> {
        let all = std::iter::once((Part::Tree, self.tree)).chain(self.lists.iter().copied());
        all.into_iter().find(|(_, area)| area.contains(at))
    }
}

/// From this width on, two lists stand side by side.
const SIDE_BY_SIDE: u16 = 100;
/// From this width on, all three.
const ALL_THREE: u16 = 180;

impl RequestLayer {
    /// Where everything stands.
    pub(super) fn areas(&self, area: Rect) -> Areas {
        let titles = if area.height > 16 { 2 } else { 1 }.min(area.height);
        let title = Rect { height: titles, ..area };
        let rest = Rect { y: area.y + titles, height: area.height - titles, ..area };
        let told = match rest.height {
            ..20 => 0,
            rows => story::height(&self.story, rest.width).min(rows / 4),
        };
        let story = Rect { height: told, ..rest };
        let rest = Rect { y: rest.y + told, height: rest.height - told, ..rest };
        let shown: &[Part] = match area.width {
            ..SIDE_BY_SIDE => &[self.beside],
            SIDE_BY_SIDE..ALL_THREE if self.beside == Part::Records => &[Part::Evidence, Part::Records],
            SIDE_BY_SIDE..ALL_THREE => &[Part::Evidence, Part::Attributes],
            _ => &[Part::Evidence, Part::Attributes, Part::Records],
        };
        // With little room, only the part that has the keys.
        if rest.height < 12 {
            let none = Rect { height: 0, ..rest };
            return match self.part {
                Part::Tree => Areas { title, story, tree: rest, lists: Vec::new() },
                part => Areas { title, story, tree: none, lists: vec![(part, rest)] },
            };
        }
        let below = (rest.height * 2 / 5).max(6);
        let tree = Rect { height: rest.height - below, ..rest };
        let count = shown.len() as u16;
        let lists = (0..count).zip(shown).map(|(index, part)| {
            let (from, to) = (rest.width * index / count, rest.width * (index + 1) / count);
            (*part, Rect { x: rest.x + from, y: tree.bottom(), width: to - from, height: below })
        });
        Areas { title, story, tree, lists: lists.collect() }
    }
}
