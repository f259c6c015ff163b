//! A router's queue: policy classes with bounds of their own, served in turn by weight. Keeps out: capacity (`pool`).

use std::collections::VecDeque;

use super::load::Class;

/// Why a request had to wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deferral {
    /// No rank of the pool had room.
    PrefillCapacity,
    /// Others of its class were waiting already.
    ClassBacklog,
}

impl Deferral {
    /// `dynamo.router.queue.reason`.
    pub fn word(self) -> &'static str {
        match self {
            Self::PrefillCapacity => "prefill_capacity",
            Self::ClassBacklog => "class_backlog",
        }
    }
}

/// What a class's queue does with those who wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    /// First come, first served.
    Fcfs,
    /// Least work first.
    Wspt,
}

impl Policy {
    /// The policy of a class.
    pub fn of(class: Class) -> Self {
        match class {
            Class::Default | Class::Latency => Self::Fcfs,
            Class::Batch => Self::Wspt,
        }
    }

    /// `dynamo.router.queue.policy`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Fcfs => "fcfs",
            Self::Wspt => "wspt",
        }
    }
}

/// How much may wait in a class.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Requests.
    pub requests: usize,
    /// Prompt tokens over all of them.
    pub tokens: u64,
}

#[derive(Clone, Copy)]
struct Waiting {
    request: u64,
    work: u64,
    tokens: u64,
}

struct ClassQueue {
    class: Class,
    bounds: Bounds,
    weight: u64,
    served: u64,
    waiting: VecDeque<Waiting>,
}

/// The queue of one router, all classes together.
pub struct RouterQueue {
    classes: [ClassQueue; 3],
}

impl RouterQueue {
    /// An empty queue for a pool that `scale` workers' worth of requests may wait for.
    pub fn new(scale: usize) -> Self {
        let classes = Class::ALL.map(|class| {
            let (requests, tokens, weight) = match class {
                Class::Default => (6, 24_000, 4),
                Class::Latency => (4, 24_000, 6),
                Class::Batch => (5, 9_000, 1),
            };
            let bounds = Bounds { requests: requests * scale, tokens: tokens * scale as u64 };
            ClassQueue { class, bounds, weight, served: 0, waiting: VecDeque::new() }
        });
        Self { classes }
    }

    /// Everything waiting, all classes.
    pub fn depth(&self) -> u64 {
        self.classes.iter().map(|queue| queue.waiting.len() as u64).sum()
    }

    /// How many of this class wait.
    pub fn waiting(&self, class: Class) -> usize {
        self.classes[class as usize].waiting.len()
    }

    /// Which limit of its class a request of so many prompt tokens would break.
    pub fn limit(&self, class: Class, tokens: u64) -> Option<&'static str> {
        let queue = &self.classes[class as usize];
        let waiting: u64 = queue.waiting.iter().map(|one| one.tokens).sum();
        if queue.waiting.len() >= queue.bounds.requests {
            Some("request_limit")
        } else if waiting + tokens > queue.bounds.tokens {
            Some("raw_isl_token_limit")
        } else {
            None
        }
    }

    /// Lets a request wait. `work` is what the policy orders by.
    pub fn push(&mut self, class: Class, request: u64, work: u64, tokens: u64) {
        // A class that was empty starts level with the others instead of calling in what it did not use.
        let level = self.classes.iter().filter(|queue| !queue.waiting.is_empty()).map(|q| q.served / q.weight).min();
        let queue = &mut self.classes[class as usize];
        if let (true, Some(level)) = (queue.waiting.is_empty(), level) {
            queue.served = queue.served.max(level * queue.weight);
        }
        queue.waiting.push_back(Waiting { request, work, tokens });
    }

    /// Takes the next request out: the class served least for its weight, then the class's policy.
    pub fn pop(&mut self) -> Option<u64> {
        let queue = self
            .classes
            .iter_mut()
            .filter(|queue| !queue.waiting.is_empty())
            .min_by_key(|queue| (queue.served * 100 / queue.weight, queue.class as u8))?;
        queue.served += 1;
        match Policy::of(queue.class) {
            Policy::Fcfs => queue.waiting.pop_front(),
            Policy::Wspt => {
                let least = (0..queue.waiting.len()).min_by_key(|at| queue.waiting[*at].work)?;
                queue.waiting.remove(least)
            }
        }
        .map(|one| one.request)
    }

    /// Takes out a request whose client left.
    pub fn remove(&mut self, request: u64) {
        for queue in &mut self.classes {
            queue.waiting.retain(|one| one.request != request);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_served_by_weight_and_batch_by_least_work() {
        let mut queue = RouterQueue::new(2);
        for request in 0..8 {
            queue.push(Class::Latency, request, 1, 10);
        }
        queue.push(Class::Batch, 100, 50, 10);
        queue.push(Class::Batch, 101, 5, 10);
        let order: Vec<u64> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(order.iter().filter(|request| **request < 100).count(), 8);
        let batch: Vec<u64> = order.into_iter().filter(|request| *request >= 100).collect();
        assert_eq!(batch, [101, 100]);
    }

    #[test]
    fn a_full_class_names_the_limit_that_is_broken() {
        let mut queue = RouterQueue::new(1);
        assert_eq!(queue.limit(Class::Batch, 10_000), Some("raw_isl_token_limit"));
        for request in 0..5 {
            assert_eq!(queue.limit(Class::Batch, 10), None);
            queue.push(Class::Batch, request, 1, 10);
        }
        assert_eq!(queue.limit(Class::Batch, 10), Some("request_limit"));
        queue.remove(3);
        assert_eq!((queue.limit(Class::Batch, 10), queue.depth()), (None, 4));
    }
}
