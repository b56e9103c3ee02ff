//! What the losses of pods and nodes came to: the table that HTML and Markdown share.

use crate::content::{NONE, capital};
use crate::table::{Table, Tone};
use tidemark_judge::{Loss, words};
use tidemark_measure::record::Run;
use tidemark_measure::units;

/// The phases of each loss. The numbers are those of the marks in the figures.
pub(crate) fn table(losses: &[Loss]) -> Table {
    let mut table = Table::new("Phases of losses")
        .words(["Mark", "Of", "What happened", "What Kubernetes says"])
        .numbers(["Since the run's start", "After the loss"]);
    let phases =
        losses.iter().flat_map(|loss| loss.phases.iter().map(move |phase| (loss.first().at_ns, phase)));
    for (mark, (first, phase)) in phases.enumerate() {
        let is_loss = phase.at_ns == first;
        let after =
            if is_loss { NONE.into() } else { format!("+{}", units::duration_ns(phase.at_ns - first)) };
        let detail = if phase.detail.is_empty() { NONE } else { &phase.detail };
        table.row(
            if is_loss { Tone::Bad } else { Tone::Plain },
            vec![
                (mark + 1).to_string(),
                phase.object.clone(),
                phase.what.words().to_owned(),
                detail.to_owned(),
                units::duration_ns(phase.at_ns),
                after,
            ],
        );
    }
    table
}

/// The runs of an evaluation in which something was lost, by their numbers.
pub(crate) fn of_runs(runs: &[Run]) -> impl Iterator<Item = (u64, Vec<Loss>)> {
    let lost = runs.iter().map(|run| (run.id, tidemark_judge::losses(run)));
    lost.filter(|(_, lost)| !lost.is_empty())
}

/// What the load saw of each loss: a sentence each.
pub(crate) fn service(losses: &[Loss]) -> Vec<String> {
    let told = |loss: &Loss| {
        let back = match loss.took_ns() {
            Some(took) => format!("There again after {}", units::duration_ns(took)),
            None => "Not there again before the run's end".to_owned(),
        };
        format!(
            "{}. {back}. {}.",
            capital(&words::losses::headline(loss.first())),
            capital(&words::losses::service(loss.service))
        )
    };
    losses.iter().map(told).collect()
}

/// How the times are to be read, below the table.
pub(crate) const LEGEND: &str = "Times are those at which the API server told the controller, on the run's clock: some milliseconds after it \
    knew. When the load had its last success before a loss and its first one after it is known to the second, except where it is its \
    longest time without success.";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Forms as _;
    use crate::{figures, sample};
    use tidemark_measure::record::{Happened, Happening, Part};

    #[test]
    fn a_loss_has_its_phases_in_the_table_and_as_marks_in_the_chart() {
        let mut run = sample::outage();
        let started = run.stages[2].started_ns;
        run.stages[2].works[0].started_ns = started;
        let at = |seconds: u64, what| Happening {
            at_ns: started + seconds * 1_000_000_000,
            what,
            object: "pod bench/db-0".into(),
            owner: "StatefulSet bench/db".into(),
            part: Part::Target,
            detail: String::new(),
        };
        run.happenings =
            vec![at(5, Happened::PodDeleted), at(8, Happened::ContainerStarted), at(14, Happened::PodReady)];
        let losses = tidemark_judge::losses(&run);
        let table = table(&losses).markdown();
        assert!(table.contains("+9.00 s") && table.contains("container started"), "{table}");
        let said = service(&losses);
        assert!(
            said[0].starts_with("Pod bench/db-0 was deleted. There again after 9.00 s. Last success"),
            "{said:?}"
        );
        let figure = figures::throughput_with_losses(&run.stages[2], &losses, 100).unwrap();
        assert_eq!(figure.inline("f").matches("class=\"happening\"").count(), 3);
        let page = crate::html(&run, &tidemark_judge::judge(&run));
        assert!(page.contains("id=\"losses\"") && page.contains("href=\"#losses\""));
        run.happenings.clear();
        assert!(
            figures::throughput_with_losses(&run.stages[2], &tidemark_judge::losses(&run), 100).is_none()
        );
    }
}
