//! A host without a terminal: for frames that nobody sees.

use reqtop::tui::app::Host;

pub struct Nobody;

impl Host for Nobody {
    fn suspend(&mut self) -> std::io::Result<bool> {
        Ok(true)
    }
    fn retake(&mut self) -> std::io::Result<()> {
        Ok(())
    }
    fn copy(&mut self, what: &str, _: &str) -> String {
        what.to_owned()
    }
    fn is_there(&self) -> bool {
        true
    }
}
