//! Other settings for servers that are there, and what is in effect.

use tidemark_measure::in_effect::InEffect;

use super::record::Shape;
use super::{DatabaseOptions, Databases, Record, settings, start};
use crate::error::LabError;

impl Databases {
    /// Puts settings into effect besides those that the servers have: they are stopped and started again. If they do not start, they
    /// are started with the settings that they had. Nothing is done if they have these settings already.
    ///
    /// # Errors
    /// [`LabError::BadSetting`], [`LabError::Busy`], and servers that do not start.
    pub fn set(
        &mut self,
        wanted: &[(String, String)],
        progress: &mut dyn FnMut(&str),
    ) -> Result<(), LabError> {
        let options = DatabaseOptions {
            settings: wanted.to_vec(),
            ..DatabaseOptions::new(self.database(), self.dir())
        };
        settings::check(&options, &self.site.programs)?;
        let before = self.site.shape.clone();
        let mut shape = before.clone();
        shape.settings.extend(wanted.iter().cloned());
        if shape == before {
            return Ok(());
        }
        let home = self.site.home.clone();
        let _lock = home.lock()?;
        self.site.stop_servers(progress)?;
        let set = self.start_as(shape, progress);
        if set.is_err() {
            progress("starting the servers with the settings that they had");
            // What failed first is what is reported.
            let _ = self.start_as(before, progress);
        }
        self.ask_facts()?;
        set
    }

    fn start_as(&mut self, shape: Shape, progress: &mut dyn FnMut(&str)) -> Result<(), LabError> {
        self.site.shape = shape.clone();
        Record { shape, credentials: Some(self.credentials.clone()) }.save(&self.site.home)?;
        start::resume(&self.site, &self.credentials, progress)
    }

    /// The settings that are in effect, as the servers say.
    ///
    /// # Errors
    /// A server that does not answer.
    pub fn in_effect(&self) -> Result<InEffect, LabError> {
        let mut all = InEffect::default();
        for instance in self.site.shape.instances() {
            let answer = self.ask(instance, self.database().server().in_effect())?;
            let several = self.instances() > 1;
            for (name, value) in answer.lines().filter_map(|line| line.split_once('\t')) {
                let name = if several { format!("server {instance}: {name}") } else { name.to_owned() };
                all.add(&name, value);
            }
        }
        Ok(all)
    }

    /// Whether the servers answer, and keep what they acknowledge as they did when they were started: why not, and whether data are
    /// at risk.
    pub(crate) fn ill(&self) -> Option<(String, bool)> {
        let mut now = self.clone();
        for instance in self.site.shape.instances() {
            if let Err(error) = self.ask(instance, "SELECT 1") {
                return Some((format!("server {instance} does not answer: {error}"), false));
            }
        }
        if let Err(error) = now.ask_facts() {
            return Some((error.to_string(), false));
        }
        let durable = |name: &str| tidemark_measure::tuning::refused(name).is_some();
        let differs =
            self.facts.iter().zip(&now.facts).find(|(before, after)| durable(&before.0) && before != after);
        differs.map(|(before, after)| (format!("{} was {} and is {}", before.0, before.1, after.1), true))
    }
}
