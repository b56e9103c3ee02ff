//! The texts in a driver's messages, cut to a bounded length: they end up in sentences, in lists and in the store.

use crate::protocol::{Opened, Up};
use tidemark_load::thread_pool::{self, Ending};
use tidemark_measure::host::Host;
use tidemark_measure::line::one_line;
use tidemark_measure::observation::Node;
use tidemark_measure::record::{Example, Note, Proof};
use tidemark_plan::engine::Holding;

/// Most characters of a text: more than the endpoints of a large target have.
const TEXT_MOST: usize = 2_000;

/// Most characters of what describes a machine.
const HOST_MOST: usize = 128;

/// Most texts of one kind in a message.
const TEXTS_MOST: usize = 10_000;

impl Up {
    /// The message with all its texts cut.
    pub(crate) fn cut(mut self) -> Self {
        match &mut self {
            Self::Prepared { targets, holdings, .. } => {
                texts(targets);
                holdings.truncate(TEXTS_MOST);
                for Holding { name, identity, .. } in holdings {
                    [name, identity].into_iter().for_each(text);
                }
            }
            Self::Refused { reason, .. } => text(reason),
            Self::Ready { opened, notes, done, .. } => {
                if let Opened::Nothing(why) | Opened::Failed(why) = opened {
                    text(why);
                }
                notes.truncate(TEXTS_MOST);
                for Note { topic, text: own } in notes {
                    [topic, own].into_iter().for_each(text);
                }
                done.truncate(TEXTS_MOST);
                done.iter_mut().for_each(|(_, why)| text(why));
            }
            Self::Ended { ending: Ok(own), .. } => ending(own),
            Self::Ended { ending: Err(why), .. } => text(why),
            Self::StageEnded { proof, .. } => proof.iter_mut().for_each(|own| cut_proof(own)),
            Self::Released { nodes, .. } => nodes.iter_mut().for_each(node),
            Self::Leaving => {}
        }
        self
    }
}

fn text(text: &mut String) {
    *text = one_line(text, TEXT_MOST);
}

fn texts(texts: &mut Vec<String>) {
    texts.truncate(TEXTS_MOST);
    texts.iter_mut().for_each(text);
}

fn ending(ending: &mut Ending) {
    examples(&mut ending.examples);
    ending.endpoints.iter_mut().for_each(|one| text(&mut one.endpoint));
    if let Some(thread_pool::Result { endpoints, examples: own, given_up, remarks, .. }) =
        ending.whole.as_deref_mut()
    {
        endpoints.iter_mut().for_each(|one| text(&mut one.endpoint));
        examples(own);
        text(given_up);
        texts(remarks);
    }
}

fn examples(examples: &mut Vec<Example>) {
    examples.truncate(TEXTS_MOST);
    examples.iter_mut().for_each(|one| text(&mut one.text));
}

fn cut_proof(proof: &mut Proof) {
    [&mut proof.setup, &mut proof.unchecked].into_iter().for_each(texts);
}

fn node(node: &mut Node) {
    [&mut node.name, &mut node.source].into_iter().for_each(text);
    node.facts.truncate(TEXTS_MOST);
    node.facts.iter_mut().for_each(|(name, value)| [name, value].into_iter().for_each(text));
    texts(&mut node.gaps);
    node.series
        .iter_mut()
        .for_each(|series| [&mut series.subject, &mut series.metric].into_iter().for_each(text));
}

/// What describes a driver's machine, cut.
pub(crate) fn cut_host(host: &mut Host) {
    [&mut host.name, &mut host.kernel, &mut host.cpu]
        .into_iter()
        .for_each(|text| *text = one_line(text, HOST_MOST));
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_measure::fault::Fault;
    use tidemark_measure::observation::Series;

    /// The longest text in a message, characters.
    fn longest(value: &serde_json::Value) -> usize {
        match value {
            serde_json::Value::String(text) => text.chars().count(),
            serde_json::Value::Array(all) => all.iter().map(longest).max().unwrap_or(0),
            serde_json::Value::Object(all) => all.values().map(longest).max().unwrap_or(0),
            _ => 0,
        }
    }

    #[test]
    fn no_text_of_a_driver_is_longer_than_a_line_of_a_message() {
        let long = || "é\n".repeat(TEXT_MOST);
        let example = || Example { fault: Fault::Timeout, text: long() };
        let whole = thread_pool::Result { given_up: long(), remarks: vec![long()], ..Default::default() };
        let ended = Ending { examples: vec![example()], whole: Some(Box::new(whole)), ..Ending::default() };
        let holding = Holding {
            name: long(),
            identity: long(),
            is_local: true,
            changes: true,
            removes: true,
            each: true,
        };
        let series = Series { subject: long(), metric: long(), ..Series::default() };
        let node = Node {
            name: long(),
            source: long(),
            facts: vec![(long(), long())],
            gaps: vec![long()],
            series: vec![series],
            ..Node::default()
        };
        let proof = Proof { setup: vec![long()], unchecked: vec![long()], ..Proof::default() };
        let (run, stage, work) = (1, 2, 3);
        let notes = vec![Note { topic: long(), text: long() }];
        let done = vec![(0, long())];
        let messages = [
            Up::Prepared { run, targets: vec![long()], holdings: vec![holding] },
            Up::Refused { run, reason: long() },
            Up::Ready { run, stage, opened: Opened::Failed(long()), notes, done },
            Up::Ready { run, stage, opened: Opened::Nothing(long()), notes: Vec::new(), done: Vec::new() },
            Up::Ended { run, stage, work, ending: Err(long()) },
            Up::Ended { run, stage, work, ending: Ok(Box::new(ended)) },
            Up::StageEnded { run, stage, proof: Some(Box::new(proof)) },
            Up::Released { run, nodes: vec![node], origin_ns: 0 },
        ];
        for message in messages {
            let json = serde_json::to_value(message.cut()).unwrap();
            assert_eq!(longest(&json), TEXT_MOST + 1, "{}", &json.to_string()[..80]);
        }
        let many = Up::Prepared { run, targets: vec!["t".into(); TEXTS_MOST + 5], holdings: Vec::new() };
        assert!(matches!(many.cut(), Up::Prepared { targets, .. } if targets.len() == TEXTS_MOST));
    }
}
