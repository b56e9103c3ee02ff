//! Pure judgement: a run's record in, findings out.
