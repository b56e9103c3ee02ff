//! Inputs that are nearly seeds. Each has a number and is always the same.

use tidemark_measure::rng::Rng;

/// What readers stumble over.
const TOKENS: &[&str] = &[
    "0",
    "-1",
    "1e999",
    "0x10",
    "18446744073709551615",
    "18446744073709551616",
    "9223372036854775808",
    "NaN",
    "1GiB",
    "c(1)KB",
    "r(1,32)",
    "zipf(1,9,1.2)",
    "${x}",
    "${x:-y}",
    "~",
    "null",
    "true",
    "[]",
    "{}",
    "&a",
    "*a",
    "!!str",
    "<<: *a",
    "- ",
    ": ",
    "? ",
    "\n",
    "\r\n",
    "\t",
    "\0",
    "\"",
    "'",
    "#",
    "|\n  ",
    ">-\n",
    "---\n",
    "...\n",
    "<![CDATA[",
    "]]>",
    "&amp;",
    "&#0;",
    "<!DOCTYPE x>",
    "../",
    "/",
    "\u{202e}",
    "\u{feff}",
    "é",
    ";",
    ",",
    "=",
    "chunked",
    "Content-Length: 5\r\n",
    "Transfer-Encoding: chunked\r\n",
];

/// Longest input.
const LONGEST: usize = 64 << 10;

/// All mutations of seeds.
pub(crate) struct Mutations<'a> {
    seeds: &'a [&'a [u8]],
}

impl<'a> Mutations<'a> {
    pub(crate) fn of(seeds: &'a [&'a [u8]]) -> Self {
        Self { seeds }
    }

    /// The mutation with this number: one to three changes of a seed.
    pub(crate) fn number(&self, number: u64) -> Vec<u8> {
        let mut rng = Rng::new(1, &[number]);
        let mut input = self.seed(&mut rng).to_vec();
        for _ in 0..=rng.below(3) {
            self.change(&mut input, &mut rng);
        }
        input.truncate(LONGEST);
        input
    }

    fn seed(&self, rng: &mut Rng) -> &'a [u8] {
        self.seeds[rng.below(self.seeds.len() as u64) as usize]
    }

    fn change(&self, input: &mut Vec<u8>, rng: &mut Rng) {
        let at = rng.below(input.len() as u64 + 1) as usize;
        let length = (rng.below(32) as usize).min(input.len() - at);
        match rng.below(8) {
            0 => input.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << rng.below(8)),
            1 => input.iter_mut().skip(at).take(1).for_each(|byte| *byte = rng.below(256) as u8),
            2 => drop(input.drain(at..at + length)),
            3 => drop(input.splice(at..at, input[at..at + length].to_vec())),
            4 => drop(
                input.splice(at..at, (0..rng.below(9)).map(|_| rng.below(256) as u8).collect::<Vec<_>>()),
            ),
            5 | 6 => {
                let token = TOKENS[rng.below(TOKENS.len() as u64) as usize];
                // In the place of a word, or before it.
                let word = input[at..].iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
                let length = if rng.below(2) == 0 { word } else { 0 };
                input.splice(at..at + length, token.bytes());
            }
            _ => {
                // Some lines of another seed.
                let other = self.seed(rng);
                let from = rng.below(other.len() as u64 + 1) as usize;
                let lines = other[from..].split_inclusive(|byte| *byte == b'\n').skip(1).take(3);
                let at = input[at..]
                    .iter()
                    .position(|byte| *byte == b'\n')
                    .map_or(input.len(), |end| at + end + 1);
                input.splice(at..at, lines.flatten().copied());
            }
        }
    }
}
