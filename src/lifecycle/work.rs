//! Steps of work, counted in tests alone: costs are promised by what they grow with, which a clock on a busy machine cannot
//! tell.

#[cfg(test)]
thread_local! {
    static STEPS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// One step: a trace looked at for a join, a row moved or read, a group compared with.
#[inline(always)]
pub fn step() {
    #[cfg(test)]
    STEPS.with(|steps| steps.set(steps.get() + 1));
}

/// The steps of this thread since the last call.
#[cfg(test)]
pub fn taken() -> u64 {
    STEPS.with(|steps| steps.replace(0))
}
