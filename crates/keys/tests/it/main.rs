//! A mapping that is declared once: read, explained and described from its declaration.
#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

use serde_json::json;
use std::path::Path;
use tidemark_keys::kinds::{Duration, Flag, Text, Whole, Word};
use tidemark_keys::reference::Reference;
use tidemark_keys::schema::Definitions;
use tidemark_keys::shapes::{Kinds, Map, OneOrList, Under};
use tidemark_keys::{AnyKey, Document, Key, Mapping, OrFile, Outside, Secret, Table, tree};

static BOAT: Mapping =
    Mapping::new("boat", "A boat", &[&NAME, &CREW, &PORTS, &WAIT, &ENGINE, &CARGO, &PASS.text, &PASS.file])
        .with(&[&RIG]);
static NAME: Key<Text> = Key::new("name", "Its name", Text).required("write `name: wave`").expanded();
static CREW: Key<Whole<u32>> =
    Key::new("crew", "How many sail it", Whole(1, 9)).default("2").also(&["sailors"]);
static PORTS: Key<OneOrList<Text>> = Key::new("ports", "Where it calls", OneOrList(Text)).example("Brest");
static WAIT: Key<Duration> = Key::new("wait", "Time in port", Duration).otherwise("as long as it takes");
static ENGINE: Key<Kinds> = Key::new("engine", "What drives it", Kinds(&[&STEAM, &NONE]));
static STEAM: Mapping = Mapping::kind("steam", "Coal", &[&COAL]);
static COAL: Key<Whole<u64>> = Key::new("coal", "How much", Whole(1, u64::MAX)).required("write tons");
static NONE: Mapping = Mapping::kind("none", "The wind alone", &[]);
static CARGO: Key<OneOrList<Under>> =
    Key::new("cargo", "What it carries", OneOrList(Under(|| vec![&TEA, &RUM as &AnyKey])));
static TEA: Key<Map> = Key::of(&CHEST);
static CHEST: Mapping = Mapping::new("tea", "Tea", &[&DRY]);
static DRY: Key<Flag> = Key::new("dry", "Keep it dry", Flag).default("true");
static RUM: Key<Map> = Key::new("rum", "Rum", Map(&CHEST));
static PASS: OrFile = OrFile::new("pass", "pass_file", "Its pass");
static RIG: Mapping = Mapping::new("rig", "Its sails", &[&SAILS]);
static SAILS: Key<Word<u8>> = Key::new("sails", "How it is rigged", Word(&[("sloop", 1), ("ketch", 2)]));

/// Reads a boat with `sail`; gives what that gives, and the remarks.
fn read<T>(text: &str, sail: impl FnOnce(&mut Table<'_>) -> T) -> (T, Vec<String>) {
    let root = tree::parse(text).unwrap();
    let outside = Outside {
        variable: &|name| (name == "NAME").then(|| "wave".to_owned()),
        file: &|_: &Path| Ok("secret\n".to_owned()),
        bound: &|_| None,
    };
    let document = Document::new(text, outside);
    let mut table = Table::new("the boat", &root, &(0..0), &document).of(&BOAT);
    let value = sail(&mut table);
    table.finish();
    let print = |remark: &tidemark_keys::diagnostic::Diagnostic| {
        let (line, column) = remark.line_and_column(text);
        format!("{line}:{column} {} | {}", remark.message, remark.help)
    };
    (value, document.log.close().0.iter().map(print).collect())
}

#[test]
fn a_key_gives_its_value_or_its_default_or_says_that_it_is_missing() {
    let all = "name: ${NAME}\ncrew: 3\nports: [Brest, Cork]\nwait: 2s\nsails: Ketch\npass_file: /p\n";
    let (boat, remarks) = read(all, |table| {
        let (name, crew, ports) = (table.value(&NAME), table.value(&CREW), table.all(&PORTS));
        (name, crew, ports, table.get(&WAIT), table.get(&SAILS), table.secret(&PASS))
    });
    let ports = vec!["Brest".to_owned(), "Cork".to_owned()];
    let secret = Some(Secret::new("secret"));
    assert_eq!(boat, ("wave".to_owned(), 3, ports, Some(2_000_000_000), Some(2), secret));
    assert_eq!(remarks, Vec::<String>::new());
    let (crew, remarks) = read("x-own: 1\n", |table| (table.value(&NAME), table.value(&CREW)).1);
    assert_eq!((crew, remarks), (2, vec!["1:1 the boat has no `name` | write `name: wave`".to_owned()]));
    let (_, remarks) = read("name: a\ncrew: 10\n", |table| (table.value(&NAME), table.value(&CREW)));
    assert_eq!(remarks, ["2:7 `crew`: 10 is out of range | write a whole number from 1 to 9"]);
}

#[test]
fn a_key_without_effect_is_an_error_with_the_nearest_that_has_one() {
    let (_, remarks) = read("name: a\nsail: x\nsailors: 3\ncolour: red\nwait: 1s\n", |table| {
        table.value(&NAME);
    });
    assert_eq!(
        remarks,
        [
            "2:1 `sail` is not a key of the boat | did you mean `sails`?",
            "3:1 `sailors` is not a key of the boat | did you mean `crew`?",
            "4:1 `colour` is not a key of the boat | valid keys: name, crew, ports, wait, engine, cargo, pass, \
             pass_file, sails",
            "5:1 `wait` does not apply here: the boat does not use it | remove `wait`",
        ]
    );
}

#[test]
fn a_mapping_of_several_kinds_has_the_keys_of_its_kind() {
    let coal = |table: &mut Table<'_>| {
        let (kind, mut own) = table.table_of_kind(&ENGINE)?;
        let coal = if kind.name == "steam" { own.get(&COAL) } else { None };
        own.finish();
        coal
    };
    assert_eq!(read("engine: {kind: steam, coal: 4}", coal), (Some(4), vec![]));
    for (text, remark) in [
        ("engine: {kind: none, coal: 4}", "1:22 `coal` is not a key of `engine` | valid keys: kind"),
        (
            "engine: {kind: stem}",
            "1:16 `kind`: 'stem' is unknown | did you mean steam? Valid values: steam, none",
        ),
        ("engine: {coal: 4}", "1:1 `engine` has no `kind` | write one of steam, none"),
    ] {
        assert_eq!(read(text, coal), (None, vec![remark.to_owned()]));
    }
}

#[test]
fn what_stands_under_one_of_some_keys_is_that() {
    let cargo = |table: &mut Table<'_>| {
        let keys = (CARGO.shape.0.0)();
        let nodes = table.list(&CARGO);
        nodes
            .iter()
            .filter_map(|node| Some(table.single("a cargo", "cargo", node, &keys)?.0.name))
            .collect::<Vec<_>>()
    };
    assert_eq!(read("cargo: [tea: {}, rum: {dry: no}]", cargo), (vec!["tea", "rum"], vec![]));
    let (_, remarks) = read("cargo: [teas: {}, {tea: {}, rum: {}}, 7]", cargo);
    assert!(remarks[0].contains("`teas` is not a known cargo | did you mean `tea`? Choose from tea, rum"));
    assert!(remarks[1].contains("a cargo has 2 keys instead of one: `tea`, `rum`"), "{remarks:?}");
    assert!(remarks[2].contains("a cargo has no kind"), "{remarks:?}");
}

#[test]
#[should_panic(expected = "`dry` is read from the boat, for which it is not declared")]
#[cfg(debug_assertions)]
fn a_key_that_is_not_declared_cannot_be_read() {
    read("dry: true", |table| table.get(&DRY));
}

#[test]
fn the_schema_has_what_is_declared() {
    let mut definitions = Definitions::default();
    definitions.add(&BOAT);
    let schema = definitions.document("A boat", &CREW, &BOAT, &BOAT);
    let boat = &schema["$defs"]["boat"];
    assert_eq!(boat["required"], json!(["name"]));
    assert_eq!(
        boat["properties"]["crew"],
        json!({"description": "How many sail it", "type": "integer", "minimum": 1, "maximum": 9, "default": "2"})
    );
    assert_eq!(boat["properties"]["wait"]["description"], "Time in port; a duration such as 60s or 200ms");
    assert_eq!(boat["properties"]["ports"]["examples"], json!(["Brest"]));
    assert_eq!(boat["properties"]["sails"]["enum"], json!(["sloop", "ketch"]));
    assert_eq!(schema["$defs"]["steam"]["properties"]["kind"]["const"], "steam");
    assert_eq!(schema["$defs"]["steam"]["required"], json!(["coal", "kind"]));
    assert_eq!(schema["$defs"]["none"]["required"], json!(["kind"]));
}

#[test]
fn the_reference_is_renewed_between_its_marks_and_misses_nothing() {
    let mut reference = Reference::default();
    reference.mapping(&BOAT);
    let marks = |name: &str| format!("<!-- keys: {name} -->\nold\n<!-- end of keys -->\n");
    let text = ["boat", "rig", "engine", "cargo"].map(marks).join("between\n");
    let renewed = reference.renew(&text).unwrap();
    assert!(renewed.contains("| `crew` | 1 to 9 | `2` | How many sail it |\n"), "{renewed}");
    assert!(renewed.contains("| `name` | text with `${NAME}` | required | Its name |\n"), "{renewed}");
    assert!(renewed.contains("| `ports` | text or list | none | Where it calls, such as `Brest` |"));
    assert!(
        renewed.contains("| `steam` | | | | Coal |\n| | `coal` | whole number | required |"),
        "{renewed}"
    );
    assert_eq!(renewed.matches("between").count(), 3);
    assert_eq!(reference.renew(&renewed).unwrap(), renewed);
    let wrong = reference.renew(&text.replace("keys: rig", "keys: rug")).unwrap_err();
    assert_eq!(wrong, ["there are no keys `rug`, or twice", "the keys `rig` are missing"]);
}
