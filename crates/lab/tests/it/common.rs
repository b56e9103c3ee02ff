//! What the tests of labs share.

use std::path::PathBuf;

/// Takes a lab down when the test ends, however it ends.
pub(crate) struct Down(pub(crate) PathBuf);

impl Drop for Down {
    fn drop(&mut self) {
        if let Err(error) = tidemark_lab::down(&self.0, true, &mut say) {
            eprintln!("{error}");
        }
    }
}

/// Shows what a lab does.
pub(crate) fn say(text: &str) {
    eprintln!("  {text}");
}
