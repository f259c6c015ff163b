//! Where hashes of token blocks stood in records. A hash covers everything before it, so it has one place in all of them.
//!
//! Owns: which hashes are remembered: of very many, the latest. Keeps out: what a hash in two places means (`record`).

use hashbrown::HashMap;

use super::around::{Place, Stood};
use crate::lifecycle::account::entry;
use crate::lifecycle::record::Replay;

/// The hashes of a record with their places.
pub(super) fn places(replay: &Replay) -> impl Iterator<Item = (u64, Place)> + '_ {
    let hashes = &replay.input_sequence_hashes;
    let before = std::iter::once(0).chain(hashes.iter().copied());
    hashes.iter().zip(before).enumerate().map(|(index, (hash, before))| (*hash, Place { index: index as u32, before }))
}

/// The part of a store's memory that hashes may take: one in so many bytes, half of it for the older half.
const SHARE: usize = 32;

/// A place, and by how many records it leads over others.
#[derive(Clone, Copy)]
struct Vote {
    place: Place,
    lead: u32,
}

/// The places of the hashes that were seen last.
pub(super) struct Places {
    /// Seen since `old` was what is `young` now.
    young: HashMap<u64, Vote>,
    old: HashMap<u64, Vote>,
    /// How many each of them may hold.
    most: usize,
    /// Whether any was let go.
    forgot: bool,
}

impl Places {
    /// Beside a store of this many bytes.
    pub fn beside(memory: usize) -> Self {
        let most = memory / SHARE / 2 / entry::<(u64, Vote)>();
        Self { young: HashMap::new(), old: HashMap::new(), most, forgot: false }
    }

    /// A record has this hash at this place.
    pub fn vote(&mut self, hash: u64, place: Place) {
        if let Some(vote) = self.young.get_mut(&hash) {
            vote.count(place);
            return;
        }
        if self.most == 0 {
            self.forgot = true;
            return;
        }
        let mut vote = self.old.remove(&hash).unwrap_or(Vote { place, lead: 0 });
        vote.count(place);
        if self.young.len() >= self.most {
            self.forgot |= !self.old.is_empty();
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(hash, vote);
    }

    /// Whether this place, which has been voted for, is that of most records.
    pub fn stood(&self, hash: u64, place: Place) -> Stood {
        match self.young.get(&hash).or_else(|| self.old.get(&hash)) {
            Some(vote) if vote.place != place => Stood::Elsewhere(vote.place),
            // Known from one record alone, others may have been let go.
            Some(vote) if vote.lead <= 1 && self.forgot => Stood::Forgotten,
            None if self.forgot => Stood::Forgotten,
            _ => Stood::Fits,
        }
    }

    /// Lets go of all.
    pub fn forget(&mut self) {
        self.forgot |= !self.young.is_empty() || !self.old.is_empty();
        (self.young, self.old) = (HashMap::new(), HashMap::new());
    }

    /// The bytes it takes.
    pub fn memory(&self) -> usize {
        (self.young.len() + self.old.len()) * entry::<(u64, Vote)>()
    }
}

impl Vote {
    fn count(&mut self, place: Place) {
        if self.place == place {
            self.lead = self.lead.saturating_add(1);
        } else if self.lead > 1 {
            self.lead -= 1;
        } else {
            *self = Self { place, lead: 1 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_has_the_place_of_most_records_and_what_was_let_go_is_unknown() {
        let place = |index: u32| Place { index, before: 9 };
        let mut places = Places::beside(SHARE * 2 * entry::<(u64, Vote)>() * 3);
        for hash in 1..=3 {
            places.vote(hash, place(hash as u32));
            places.vote(hash, place(hash as u32));
        }
        places.vote(1, place(7));
        assert_eq!(places.stood(1, place(1)), Stood::Fits);
        assert_eq!(places.stood(1, place(7)), Stood::Elsewhere(place(1)));
        assert_eq!(places.stood(4, place(1)), Stood::Fits, "nothing was let go");
        for hash in 4..=6 {
            places.vote(hash, place(1));
        }
        assert_eq!((places.stood(1, place(1)), places.stood(4, place(1))), (Stood::Fits, Stood::Fits));
        // What is seen again stays, what is not goes.
        places.vote(2, place(2));
        assert_eq!((places.stood(2, place(2)), places.stood(1, place(1))), (Stood::Fits, Stood::Forgotten));
        assert_eq!(places.stood(4, place(1)), Stood::Forgotten, "one record alone");
        assert_eq!(places.stood(4, place(2)), Stood::Elsewhere(place(1)));
        assert!(places.young.len() + places.old.len() <= 6);
        places.forget();
        assert_eq!((places.memory(), places.stood(2, place(2))), (0, Stood::Forgotten));
        let mut none = Places::beside(0);
        none.vote(1, place(1));
        assert_eq!((none.memory(), none.stood(1, place(1))), (0, Stood::Forgotten));
    }
}
