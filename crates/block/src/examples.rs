//! The first few failures of each class, word for word.

use tidemark_load::thread_pool::EXAMPLES_PER_FAULT;
use tidemark_measure::fault::Fault;
use tidemark_measure::record::Example;

/// Keeps the first few of each class; the others cost one comparison.
pub(crate) struct Examples {
    kept: Vec<Example>,
    counts: [u8; Fault::COUNT],
}

impl Default for Examples {
    fn default() -> Self {
        Self { kept: Vec::new(), counts: [0; Fault::COUNT] }
    }
}

impl Examples {
    /// Keeps a failure's text, which is made only if there is room for it.
    pub(crate) fn keep(&mut self, fault: Fault, text: impl FnOnce() -> String) {
        let count = &mut self.counts[fault as usize];
        if usize::from(*count) < EXAMPLES_PER_FAULT {
            *count += 1;
            self.kept.push(Example { fault, text: text() });
        }
    }

    /// Gives them away.
    pub(crate) fn take(&mut self) -> Vec<Example> {
        std::mem::take(&mut self.kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_first_few_of_each_class() {
        let mut examples = Examples::default();
        for number in 0..10 {
            examples.keep(Fault::Io, || format!("{number}"));
            examples.keep(Fault::Gone, || format!("{number}"));
        }
        let kept = examples.take();
        assert_eq!(kept.len(), 2 * EXAMPLES_PER_FAULT);
        assert_eq!(kept[0].text, "0");
        assert!(examples.take().is_empty());
    }
}
