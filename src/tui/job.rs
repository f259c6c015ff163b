//! Stopping the job that this process belongs to so that its shell can wake it, and not where nobody would.
//!
//! A process group is orphaned when no parent of one of its processes is in another group of the same session: no shell
//! knows it as a job. The kernel stops none such at the terminal's key, for it would stand for ever; neither does this.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::{Signal, getpid, getsid, kill_current_process_group};
use signal_hook::consts::SIGCONT;

/// How often, and how far apart, it is asked whether the process has been woken: the word may come after it goes on.
const LOOKS: (u32, Duration) = (20, Duration::from_millis(5));

/// Whether it is certain that nobody would wake this process: it leads its session, as on a terminal made for it.
pub fn is_alone() -> bool {
    getsid(None).is_ok_and(|session| session == getpid())
}

/// Stops every process of the job here, as the terminal's key does, until SIGCONT; gives whether it did.
///
/// # Errors
/// The system refused.
pub fn stop() -> io::Result<bool> {
    let woken = Arc::new(AtomicBool::new(false));
    let heard = signal_hook::flag::register(SIGCONT, Arc::clone(&woken))?;
    // The kernel alone knows of orphans, and heeds this one, too, only where somebody can wake. SIGTSTP itself is heard
    // here, as a wish to stop.
    let sent = kill_current_process_group(Signal::TTIN);
    for _ in 0..LOOKS.0 {
        if woken.load(Ordering::SeqCst) {
            break;
        }
        std::thread::park_timeout(LOOKS.1);
    }
    signal_hook::low_level::unregister(heard);
    sent?;
    Ok(woken.load(Ordering::SeqCst))
}
