//! What is put into the queries: the values with which answers are known, or drawn ones (clauses 2.4.1.3 to 2.4.22.3).

use tidemark_measure::rng::Rng;

/// The values of a query's parameters, in the order in which its text numbers them.
pub type Parameters = Vec<String>;

const REGIONS: [&str; 5] = ["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"];

/// Nations, each with the place of its region (clause 4.2.3).
const NATIONS: [(&str, usize); 25] = [
    ("ALGERIA", 0),
    ("ARGENTINA", 1),
    ("BRAZIL", 1),
    ("CANADA", 1),
    ("EGYPT", 4),
    ("ETHIOPIA", 0),
    ("FRANCE", 3),
    ("GERMANY", 3),
    ("INDIA", 2),
    ("INDONESIA", 2),
    ("IRAN", 4),
    ("IRAQ", 4),
    ("JAPAN", 2),
    ("JORDAN", 4),
    ("KENYA", 0),
    ("MOROCCO", 0),
    ("MOZAMBIQUE", 0),
    ("PERU", 1),
    ("CHINA", 2),
    ("ROMANIA", 3),
    ("SAUDI ARABIA", 4),
    ("VIETNAM", 2),
    ("RUSSIA", 3),
    ("UNITED KINGDOM", 3),
    ("UNITED STATES", 1),
];

const SEGMENTS: [&str; 5] = ["AUTOMOBILE", "BUILDING", "FURNITURE", "MACHINERY", "HOUSEHOLD"];
const MODES: [&str; 7] = ["REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"];
const TYPES: [[&str; 6]; 2] = [
    ["STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"],
    ["ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED", ""],
];
const METALS: [&str; 5] = ["TIN", "NICKEL", "BRASS", "STEEL", "COPPER"];
const CONTAINERS: ([&str; 5], [&str; 8]) =
    (["SM", "LG", "MED", "JUMBO", "WRAP"], ["CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM"]);
const WORDS: ([&str; 4], [&str; 4]) =
    (["special", "pending", "unusual", "express"], ["packages", "requests", "accounts", "deposits"]);

/// Colours that names of parts are made of.
const COLOURS: [&str; 92] = [
    "almond",
    "antique",
    "aquamarine",
    "azure",
    "beige",
    "bisque",
    "black",
    "blanched",
    "blue",
    "blush",
    "brown",
    "burlywood",
    "burnished",
    "chartreuse",
    "chiffon",
    "chocolate",
    "coral",
    "cornflower",
    "cornsilk",
    "cream",
    "cyan",
    "dark",
    "deep",
    "dim",
    "dodger",
    "drab",
    "firebrick",
    "floral",
    "forest",
    "frosted",
    "gainsboro",
    "ghost",
    "goldenrod",
    "green",
    "grey",
    "honeydew",
    "hot",
    "indian",
    "ivory",
    "khaki",
    "lace",
    "lavender",
    "lawn",
    "lemon",
    "light",
    "lime",
    "linen",
    "magenta",
    "maroon",
    "medium",
    "metallic",
    "midnight",
    "mint",
    "misty",
    "moccasin",
    "navajo",
    "navy",
    "olive",
    "orange",
    "orchid",
    "pale",
    "papaya",
    "peach",
    "peru",
    "pink",
    "plum",
    "powder",
    "puff",
    "purple",
    "red",
    "rose",
    "rosy",
    "royal",
    "saddle",
    "salmon",
    "sandy",
    "seashell",
    "sienna",
    "sky",
    "slate",
    "smoke",
    "snow",
    "spring",
    "steel",
    "tan",
    "thistle",
    "tomato",
    "turquoise",
    "violet",
    "wheat",
    "white",
    "yellow",
];

/// Those with which answers are known; nothing for a number that no query has. Query 11 has its fraction at `scale`.
pub fn qualification(query: u8, scale: f64) -> Parameters {
    let date = |text: &str| text.to_owned();
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    match query {
        1 => vec![days_before_december_1998(90)],
        2 => texts(&["15", "BRASS", "EUROPE"]),
        3 => texts(&["BUILDING", "1995-03-15"]),
        4 => from(1993, 7, 3),
        5 => [texts(&["ASIA"]), from(1994, 1, 12)].concat(),
        6 => [from(1994, 1, 12), texts(&["0.05", "0.07", "24"])].concat(),
        7 => texts(&["FRANCE", "GERMANY"]),
        8 => texts(&["BRAZIL", "AMERICA", "ECONOMY ANODIZED STEEL"]),
        9 => texts(&["green"]),
        10 => from(1993, 10, 3),
        11 => vec!["GERMANY".into(), fraction(scale)],
        12 => [texts(&["MAIL", "SHIP"]), from(1994, 1, 12)].concat(),
        13 => texts(&["special", "requests"]),
        14 => from(1995, 9, 1),
        15 => from(1996, 1, 3),
        16 => texts(&["Brand#45", "MEDIUM POLISHED", "49", "14", "23", "45", "19", "3", "36", "9"]),
        17 => texts(&["Brand#23", "MED BOX"]),
        18 => texts(&["300"]),
        19 => texts(&["Brand#12", "1", "11", "Brand#23", "10", "20", "Brand#34", "20", "30"]),
        20 => [texts(&["forest"]), from(1994, 1, 12), vec![date("CANADA")]].concat(),
        21 => texts(&["SAUDI ARABIA"]),
        22 => texts(&["13", "31", "23", "29", "30", "18", "17"]),
        _ => Vec::new(),
    }
}

/// Drawn ones.
pub fn random(query: u8, scale: f64, rng: &mut Rng) -> Parameters {
    let one = |rng: &mut Rng, from: &[&str]| from[rng.below(from.len() as u64) as usize].to_owned();
    let between = |rng: &mut Rng, low: u64, high: u64| low + rng.below(high - low + 1);
    let nation = |rng: &mut Rng| NATIONS[rng.below(NATIONS.len() as u64) as usize];
    let brand = |rng: &mut Rng| format!("Brand#{}{}", between(rng, 1, 5), between(rng, 1, 5));
    let year = |rng: &mut Rng| between(rng, 1993, 1997) as i32;
    // A month from the first to the last, counted from January 1993.
    let month = |rng: &mut Rng, first: u64, last: u64, length: u32| {
        let month = between(rng, first, last);
        from(1993 + (month / 12) as i32, (month % 12) as u32 + 1, length)
    };
    let adjectives = |rng: &mut Rng| format!("{} {}", one(rng, &TYPES[0]), one(rng, &TYPES[1][..5]));
    match query {
        1 => vec![days_before_december_1998(between(rng, 60, 120) as u32)],
        2 => vec![between(rng, 1, 50).to_string(), one(rng, &METALS), one(rng, &REGIONS)],
        3 => vec![one(rng, &SEGMENTS), format!("1995-03-{:02}", between(rng, 1, 31))],
        4 | 15 => month(rng, 0, 57, 3),
        5 => [vec![one(rng, &REGIONS)], from(year(rng), 1, 12)].concat(),
        6 => {
            let hundredths = between(rng, 2, 9);
            let discounts = [hundredths - 1, hundredths + 1].map(|number| format!("0.{number:02}"));
            let quantity = between(rng, 24, 25).to_string();
            [from(year(rng), 1, 12), discounts.to_vec(), vec![quantity]].concat()
        }
        7 => distinct(2, NATIONS.len() as u64, rng)
            .into_iter()
            .map(|place| NATIONS[place as usize].0.into())
            .collect(),
        8 => {
            let (name, region) = nation(rng);
            let type_of = format!("{} {}", adjectives(rng), one(rng, &METALS));
            vec![name.into(), REGIONS[region].into(), type_of]
        }
        9 => vec![one(rng, &COLOURS)],
        10 => month(rng, 1, 24, 3),
        11 => vec![nation(rng).0.into(), fraction(scale)],
        12 => {
            let modes = distinct(2, MODES.len() as u64, rng);
            [modes.into_iter().map(|place| MODES[place as usize].into()).collect(), from(year(rng), 1, 12)]
                .concat()
        }
        13 => vec![one(rng, &WORDS.0), one(rng, &WORDS.1)],
        14 => month(rng, 0, 59, 1),
        16 => {
            let sizes = distinct(8, 50, rng).into_iter().map(|size| (size + 1).to_string());
            [brand(rng), adjectives(rng)].into_iter().chain(sizes).collect()
        }
        17 => vec![brand(rng), format!("{} {}", one(rng, &CONTAINERS.0), one(rng, &CONTAINERS.1))],
        18 => vec![between(rng, 312, 315).to_string()],
        19 => [(1, 10), (10, 20), (20, 30)]
            .into_iter()
            .flat_map(|(low, high)| {
                let quantity = between(rng, low, high);
                [brand(rng), quantity.to_string(), (quantity + 10).to_string()]
            })
            .collect(),
        20 => [vec![one(rng, &COLOURS)], from(year(rng), 1, 12), vec![nation(rng).0.into()]].concat(),
        21 => vec![nation(rng).0.into()],
        22 => distinct(7, 25, rng).into_iter().map(|code| (code + 10).to_string()).collect(),
        _ => Vec::new(),
    }
}

/// So many different numbers below a bound.
fn distinct(count: usize, bound: u64, rng: &mut Rng) -> Vec<u64> {
    let mut drawn = Vec::with_capacity(count);
    while drawn.len() < count {
        let number = rng.below(bound);
        if !drawn.contains(&number) {
            drawn.push(number);
        }
    }
    drawn
}

/// The first day of a month, and that of the month so many later.
fn from(year: i32, month: u32, length: u32) -> Parameters {
    let first = |months: u32| format!("{}-{:02}-01", year + (months / 12) as i32, months % 12 + 1);
    vec![first(month - 1), first(month - 1 + length)]
}

/// The date so many days, up to 120, before 1 December 1998.
fn days_before_december_1998(days: u32) -> String {
    let mut left = days;
    for (month, length) in [(11, 30), (10, 31), (9, 30), (8, 31)] {
        if left <= length {
            return format!("1998-{month:02}-{:02}", length + 1 - left.max(1));
        }
        left -= length;
    }
    "1998-08-01".into()
}

/// The fraction of query 11: 0.0001 over the scale factor.
fn fraction(scale: f64) -> String {
    format!("{:.12}", 1e-4 / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(days_before_december_1998(90), "1998-09-02");
        assert_eq!(days_before_december_1998(60), "1998-10-02");
        assert_eq!(days_before_december_1998(120), "1998-08-03");
        assert_eq!(from(1993, 10, 3), ["1993-10-01", "1994-01-01"]);
        assert_eq!(from(1994, 1, 12), ["1994-01-01", "1995-01-01"]);
        assert_eq!(from(1995, 12, 1), ["1995-12-01", "1996-01-01"]);
    }

    #[test]
    fn drawn_parameters_are_as_many_as_those_of_the_qualification_and_vary() {
        for query in 1..=22 {
            let mut rng = Rng::new(7, &[u64::from(query)]);
            let drawn: Vec<_> = (0..200).map(|_| random(query, 10.0, &mut rng)).collect();
            let known = qualification(query, 10.0);
            assert!(drawn.iter().all(|one| one.len() == known.len() && !known.is_empty()), "query {query}");
            assert!(drawn.iter().any(|one| *one != drawn[0]), "query {query}");
            let again = random(query, 10.0, &mut Rng::new(7, &[u64::from(query)]));
            assert_eq!(again, drawn[0], "the same numbers give the same parameters");
        }
        assert_eq!(qualification(11, 10.0)[1], "0.000010000000");
    }
}
