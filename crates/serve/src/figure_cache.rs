//! Figures that were asked for lately: a page shows twenty of a run, one request each, and reading a run anew for each
//! of them would cost twenty times as much.

use crate::answer::ApiError;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use tidemark_report::figures::Figure;

/// Runs whose figures are kept: some megabytes.
const MOST: usize = 8;

/// The figures of a few runs, the one asked for last at the end.
#[derive(Default)]
pub(crate) struct FigureCache {
    runs: Mutex<VecDeque<(String, Arc<Vec<Figure>>)>>,
}

impl FigureCache {
    /// The figures of the run with this tag, drawn now unless they are here.
    pub(crate) fn figures(
        &self,
        tag: &str,
        draw: impl FnOnce() -> Result<Vec<Figure>, ApiError>,
    ) -> Result<Arc<Vec<Figure>>, ApiError> {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = runs.iter().position(|(own, _)| own == tag)
            && let Some(found) = runs.remove(place)
        {
            runs.push_back(found.clone());
            return Ok(found.1);
        }
        // Not while the others wait.
        drop(runs);
        let drawn = Arc::new(draw()?);
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        if runs.len() >= MOST {
            runs.pop_front();
        }
        runs.push_back((tag.to_owned(), drawn.clone()));
        Ok(drawn)
    }
}
