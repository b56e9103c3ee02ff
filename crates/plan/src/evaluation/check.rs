//! What can be known of the cells before anything is set up: their plans are made with stand-ins.

use super::{Arm, Evaluation};
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::plan::{Plan, WorkKind};
use crate::yaml::{Environment, environment};
use std::cell::RefCell;
use tidemark_measure::record::Note;

/// More cells than this are not looked at beforehand: the rest differs in what the first ones do not.
const MOST_CHECKED: usize = 5_000;

/// The limit of remarks: nobody reads more.
const MOST_REMARKS: usize = 100;

/// Where a variable of an arm's documents comes from before the arm is set up.
pub(super) struct Variables<'a> {
    arm: Option<&'a Arm>,
    base: Environment<'a>,
    /// Whether what the set-up may bring is made up.
    guesses: bool,
    /// Variables that were requested and are not set anywhere.
    missing: RefCell<Vec<String>>,
}

impl<'a> Variables<'a> {
    pub(super) fn new(arm: Option<&'a Arm>, base: &Environment<'a>, guesses: bool) -> Self {
        Self { arm, base: *base, guesses, missing: RefCell::default() }
    }

    /// Lends them as an environment.
    pub(super) fn lend<T>(&self, to: impl FnOnce(&Environment<'_>) -> T) -> T {
        to(&Environment { variable: &|name| self.value(name), ..self.base })
    }

    fn value(&self, name: &str) -> Option<String> {
        let own = self.arm.and_then(|arm| arm.environment.iter().find(|(known, _)| known == name));
        if let Some((_, value)) = own {
            return Some(value.clone());
        }
        let mut kinds = self.arm.iter().flat_map(|arm| &arm.requests);
        let brought = kinds.find_map(|request| {
            let kind = self.base.registry.provisioner(request.key())?;
            kind.stand_in(request, name)
        });
        if brought.is_some() {
            return brought;
        }
        let found = (self.base.variable)(name).filter(|value| !value.is_empty());
        if found.is_some() {
            return found;
        }
        self.missing.borrow_mut().push(name.to_owned());
        let is_brought = self.arm.is_some_and(|arm| !arm.set_up.is_empty() || !arm.requests.is_empty());
        (self.guesses && is_brought).then(|| stand_in(name).to_owned())
    }

    /// Whether a remark only says that the set-up has not brought a variable yet.
    fn excuses(&self, remark: &Diagnostic) -> bool {
        let Code::UnsetVariable(name) = &remark.code else { return false };
        self.arm.is_some_and(|arm| !arm.set_up.is_empty()) && self.missing.borrow().contains(name)
    }
}

/// A value that a variable of this name may have.
fn stand_in(name: &str) -> &'static str {
    let is = |words: &[&str]| words.iter().any(|word| name.to_ascii_uppercase().ends_with(word));
    match () {
        () if is(&["HOST", "IP", "KEY", "USER", "PASSWORD", "TOKEN", "POOL", "IMAGE", "REGION"]) => {
            "127.0.0.1"
        }
        () if is(&["PORT"]) => "1",
        () if is(&["CONF", "FILE", "PATH", "DIR", "DIRECTORY", "DEVICE"]) => "/nonexistent/path",
        () => "http://127.0.0.1:1",
    }
}

/// Makes the plans of the cells that show most, and gives all remarks: each load on each arm, and each level on the
/// first one.
///
/// # Errors
/// All remarks, if one of them is an error.
pub(super) fn check(
    evaluation: &mut Evaluation,
    environment: &Environment<'_>,
    remarks: Vec<Diagnostic>,
) -> Result<Vec<Diagnostic>, Vec<Diagnostic>> {
    let mut seen = Seen { evaluation, found: Vec::new(), brought: Vec::new(), left: MOST_CHECKED };
    for arm in 0..seen.evaluation.arms.len() {
        if seen.targets(arm, environment) {
            seen.loads(arm, environment);
        }
    }
    let (found, brought) = (seen.remarks(), seen.brought);
    evaluation.notes.extend(brought.into_iter().map(|(arm, names)| Note {
        topic: "set-up".into(),
        text: format!(
            "{} not set: the set-up of the arm `{}` must print {}.",
            names.join(", ") + if names.len() == 1 { " is" } else { " are" },
            evaluation.arms[arm].name,
            if names.len() == 1 { "it" } else { "them" },
        ),
    }));
    let mut all: Vec<Diagnostic> = remarks.into_iter().chain(found).collect();
    all.sort_by_key(|remark| (std::cmp::Reverse(remark.severity), remark.span.start));
    all.truncate(MOST_REMARKS);
    all.sort_by_key(|remark| remark.span.start);
    match all.iter().any(|remark| remark.severity == Severity::Error) {
        true => Err(all),
        false => Ok(all),
    }
}

fn all_arms(evaluation: &Evaluation) -> Vec<usize> {
    (0..evaluation.arms.len()).collect()
}

/// What the plans said.
struct Seen<'a> {
    evaluation: &'a Evaluation,
    /// Remarks, each once, and the arms on which they were made.
    found: Vec<(Diagnostic, Vec<usize>)>,
    /// Arms, and the variables that their set-up must bring.
    brought: Vec<(usize, Vec<String>)>,
    /// Cells that are still looked at.
    left: usize,
}

impl Seen<'_> {
    /// Checks an arm's own targets; false if no load can run against them.
    fn targets(&mut self, arm: usize, environment: &Environment<'_>) -> bool {
        let variables = Variables::new(self.evaluation.arms.get(arm), environment, false);
        let remarks = variables.lend(|lent| self.evaluation.documents.check_targets(arm, lent));
        let is_wrong = |remark: &Diagnostic| remark.severity == Severity::Error && !variables.excuses(remark);
        let failed = remarks.iter().any(is_wrong);
        self.keep(arm, remarks, &variables);
        self.bring(arm, environment, |seen, lent| drop(seen.evaluation.documents.check_targets(arm, lent)));
        !failed
    }

    /// Looks at all loads on an arm.
    fn loads(&mut self, arm: usize, environment: &Environment<'_>) {
        for load in 0..self.evaluation.loads.len() {
            let found = &self.evaluation.loads[load].levels;
            // What an arm does to a load it does at all levels.
            let shown = if arm == 0 { found.count() } else { 1 };
            let levels = found.known().into_iter().take(shown).collect::<Vec<_>>();
            if let (0, Some(level)) = (arm, levels.first())
                && let Ok(plan) = self.evaluation.sketch(arm, load, level, 1, environment)
            {
                self.found.extend(
                    self.service_level(load, &plan).map(|remark| (remark, all_arms(self.evaluation))),
                );
            }
            for level in &levels {
                let Some(left) = self.left.checked_sub(1) else { return };
                self.left = left;
                if !(environment.waited_for)() {
                    return self.found.push((environment::given_up(), all_arms(self.evaluation)));
                }
                let variables = Variables::new(self.evaluation.arms.get(arm), environment, false);
                let plan = variables.lend(|lent| self.evaluation.plan(arm, load, level, 1, lent));
                let mut remarks = plan.map_or_else(|remarks| remarks, |(_, warnings)| warnings);
                self.place(load, &mut remarks);
                self.keep(arm, remarks, &variables);
                self.bring(arm, environment, |seen, lent| {
                    drop(seen.evaluation.plan(arm, load, level, 1, lent));
                });
            }
        }
    }

    /// Records what `ask` requests and only the arm's set-up can provide.
    fn bring(
        &mut self,
        arm: usize,
        environment: &Environment<'_>,
        ask: impl FnOnce(&Self, &Environment<'_>),
    ) {
        let found = self.evaluation.arms.get(arm).filter(|arm| !arm.set_up.is_empty());
        // With guesses: reading a value ends at the first variable that is not set.
        let variables = Variables::new(found, environment, true);
        if found.is_some() {
            variables.lend(|lent| ask(self, lent));
        }
        for name in variables.missing.into_inner() {
            match self.brought.iter_mut().find(|(known, _)| *known == arm) {
                Some((_, names)) if names.contains(&name) => {}
                Some((_, names)) => names.push(name),
                None => self.brought.push((arm, vec![name])),
            }
        }
    }

    /// Whether the operations that a service level names exist.
    fn service_level(&self, load: usize, plan: &Plan) -> Option<Diagnostic> {
        let level = self.evaluation.loads[load].service_level.as_ref()?;
        let works = plan.stages.iter().flat_map(|stage| &stage.works);
        let labels =
            || works.clone().filter(|work| work.kind == WorkKind::Normal).flat_map(|work| &work.labels);
        let known = |name: &str| labels().any(|label| label.label == name || label.kind == name);
        let limits = || level.limits.iter().map(|limit| limit.operation.as_str());
        let unknown = limits().find(|name| !name.is_empty() && !known(name))?;
        let names: Vec<_> = labels().map(|label| label.label.as_str()).collect();
        let message = format!(
            "`service_level`: the load `{}` has no operation '{unknown}'",
            self.evaluation.loads[load].name
        );
        let place = self.evaluation.documents.service_level_place(load);
        Some(Diagnostic::error(place, message, format!("choose from {}", names.join(", "))))
    }

    /// Moves remarks on another document to where the evaluation names it.
    fn place(&self, load: usize, remarks: &mut [Diagnostic]) {
        let Some((text, path)) = self.evaluation.documents.source(load) else { return };
        for remark in remarks {
            let line = match remark.span.is_empty() && remark.span.start == 0 {
                true => String::new(),
                false => format!(", line {}", remark.line_and_column(text).0),
            };
            remark.message = format!("{path}{line}: {}", remark.message);
            remark.span = self.evaluation.documents.place_of(load, &remark.code);
        }
    }

    fn keep(&mut self, arm: usize, remarks: Vec<Diagnostic>, variables: &Variables<'_>) {
        for remark in remarks.into_iter().filter(|remark| !variables.excuses(remark)) {
            let has_room = self.found.len() < 10 * MOST_REMARKS;
            match self.found.iter_mut().find(|(known, _)| *known == remark) {
                Some((_, arms)) if arms.last() != Some(&arm) => arms.push(arm),
                Some(_) => {}
                None if has_room => self.found.push((remark, vec![arm])),
                None => {}
            }
        }
    }

    /// The remarks, each with the arm that it is about if it is not about all.
    fn remarks(&mut self) -> Vec<Diagnostic> {
        let (all, names) = (self.evaluation.arms.len(), &self.evaluation.arms);
        let told = |(mut remark, arms): (Diagnostic, Vec<usize>)| {
            if let (true, Some(arm)) = (arms.len() < all, arms.first())
                && remark.severity == Severity::Error
            {
                let help = std::mem::take(&mut remark.help);
                let separator = if help.is_empty() { "" } else { "; " };
                remark.help = format!("{help}{separator}found on the arm `{}`", names[*arm].name);
            }
            remark
        };
        std::mem::take(&mut self.found).into_iter().map(told).collect()
    }
}
