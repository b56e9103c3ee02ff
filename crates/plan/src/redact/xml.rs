//! The secrets of COSBench's XML, as its reader sees them: entries of configs, with references to characters resolved.

use super::{HIDDEN, Hidden, is_secret};
use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::Event;

/// The secrets, as far as the text can be parsed.
pub(super) fn secrets(text: &str) -> Vec<Hidden> {
    let mut reader = Reader::from_str(text);
    reader.config_mut().check_end_names = false;
    let mut hidden = Vec::new();
    loop {
        match reader.read_event() {
            Ok(Event::Start(tag) | Event::Empty(tag)) => {
                for attribute in tag.attributes().with_checks(false).flatten() {
                    let value: &str = &attribute.value;
                    let Some(start) = place_of(value, text) else { continue };
                    match is_secret(attribute.key.as_ref()) {
                        true => hidden.push((start..start + value.len(), HIDDEN)),
                        false => entries(value, start, &mut hidden),
                    }
                }
            }
            Ok(Event::Eof) | Err(_) => return hidden,
            Ok(_) => {}
        }
    }
}

/// Where a part that the parser borrowed from the text stands in it.
fn place_of(part: &str, text: &str) -> Option<usize> {
    let at = part.as_ptr().addr().checked_sub(text.as_ptr().addr())?;
    (at.checked_add(part.len())? <= text.len()).then_some(at)
}

/// The secrets of `a=b;c=d`. An entry without `=` after a secret may be the rest of it.
fn entries(value: &str, start: usize, hidden: &mut Vec<Hidden>) {
    let characters = resolved(value);
    let mut after_secret = false;
    for entry in characters.split(|(_, character)| *character == ';') {
        let sign = entry.iter().position(|(_, character)| *character == '=');
        let key: String = entry[..sign.unwrap_or(0)].iter().map(|(_, character)| *character).collect();
        after_secret = if sign.is_some() { is_secret(key.trim()) } else { after_secret };
        if !after_secret {
            continue;
        }
        let rest = &entry[sign.map_or(0, |sign| sign + 1)..];
        let is_blank = |(_, character): &&(std::ops::Range<usize>, char)| character.is_whitespace();
        let blanks = rest.iter().take_while(is_blank).count();
        let rest = &rest[blanks..];
        let end = rest.len() - rest.iter().rev().take_while(is_blank).count();
        if let (Some((first, _)), Some((last, _))) = (rest.first(), rest[..end].last()) {
            hidden.push((start + first.start..start + last.end, HIDDEN));
        }
    }
}

/// The characters of an attribute, and where each stands in it.
fn resolved(value: &str) -> Vec<(std::ops::Range<usize>, char)> {
    let (mut characters, mut at) = (Vec::new(), 0);
    while let Some(character) = value[at..].chars().next() {
        let (length, character) = reference(&value[at..]).unwrap_or((character.len_utf8(), character));
        characters.push((at..at + length, character));
        at += length;
    }
    characters
}

/// The length of the reference that a text begins with, and what it stands for.
fn reference(text: &str) -> Option<(usize, char)> {
    let (name, _) = text.strip_prefix('&')?.split_once(';')?;
    let character = match name.strip_prefix('#') {
        Some(number) => {
            let code = match number.strip_prefix('x') {
                Some(digits) => u32::from_str_radix(digits, 16),
                None => number.parse(),
            };
            char::from_u32(code.ok()?)?
        }
        None => resolve_predefined_entity(name)?.chars().next()?,
    };
    Some((name.len() + 2, character))
}
