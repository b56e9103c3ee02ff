//! The search for better settings: a space and what was measured so far in; what to measure next, or the conclusion, out. No I/O,
//! no clock.
//!
//! [`look`] is a function of what was seen, as `tidemark_judge::knee::next` is: a search that was interrupted is resumed by
//! giving it the same runs again. Its steps:
//!
//! 1. **Screening** (`design`, `effects`): a two-level fractional factorial design with its fold-over, the baseline in
//!    between. What does not matter is left at the baseline's value from then on, and if nothing does, the search is over.
//! 2. **Halving**: settings spread over what is left; the better half of them is measured again and again, so that runs go to those
//!    that may win.
//! 3. **Refining** (`gaussian`): Bayesian optimisation with a Gaussian process that knows how noisy its means are.
//! 4. **Proof**: the winner and the baseline are set up afresh and measured in turns, with seeds that no run before has used. Only
//!    these runs say whether it is better, and by how much: the others have been looked at in order to choose, and the chosen one is
//!    better among them than it is.
//!
//! | module | what it holds |
//! |---|---|
//! | [`conclusion`] | what is asked, seen and concluded |
//! | `design` | which ends of which settings the screening puts together |
//! | [`effects`] | what each setting does, with intervals |
//! | [`front`] | which of what was measured is not dominated, of two objectives |
//! | `goal` | what a search goes by: an objective, or two in one number |
//! | `gaussian` | what is believed of settings that were not measured |
//! | `search` | the steps above |
//! | [`time`] | how far the time of a search goes |
//! | `history` | the runs of an evaluation as what a search has seen |
//! | [`words`] | what it comes to, in words |

pub mod conclusion;
mod design;
pub mod effects;
pub mod front;
mod gaussian;
mod goal;
mod history;
mod search;
pub mod time;
pub mod words;

pub use conclusion::{
    Compared, Conclusion, End, Extreme, Failing, FewSamples, Front, Outcome, Phase, Problem, Proof, Seen,
    Standing, Trial,
};
pub use history::look_at;
pub use search::{least_runs, look};
