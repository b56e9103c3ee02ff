#!/usr/bin/env python3
"""The answers of DuckDB to queries on the tables of TPC-DS, as crates/tpc/src/ds/answers.txt has them: a line for each.

    pip install duckdb
    scripts/tpcds-answers.py QUERIES TABLES/tpcds-0.01 TABLES/tpcds-0.1 TABLES/tpcds-1 >crates/tpc/src/ds/answers.txt

QUERIES is the directory that `tidemark lab queries` writes; TABLES is that of a target with `storage: {kind: files}`. Each answer is
asked for a second time with rows that tie sorted the other way: one that differs then is not determined by its query, and is left out
with a word. The digest is that of crates/tpc/src/answer.rs.
"""

import math
import pathlib
import re
import sys

import duckdb

MASK = (1 << 64) - 1


def finalise(value):
    """The finaliser of SplitMix64, as in crates/measure/src/rng.rs."""
    z = (value + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


STEPS = [finalise(byte) for byte in range(256)]


def fold(data):
    state = 0
    for byte in data:
        # A fold of `mix`, each of which finalises the state before its step.
        state = finalise(finalise(state) ^ STEPS[byte])
    return state


def number(cell):
    digits = cell[1:] if cell[:1] in "+-" else cell
    if not digits[:1] or not (digits[0] in "0123456789" or digits[0] == ".") or "_" in cell:
        return None
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def spelling(cell):
    """What a quotient by 0 has one spelling for."""
    try:
        value = float(cell) if cell == cell.strip() else 0.0
    except ValueError:
        return cell
    if math.isnan(value):
        return "NaN"
    return ("inf" if value > 0 else "-inf") if math.isinf(value) else cell


class Column:
    def __init__(self):
        self.nulls = self.numbers = self.hash = 0
        self.values = []

    def add(self, cell):
        if cell is None:
            self.nulls += 1
            return
        cell = str(cell).rstrip()
        value = number(cell)
        if value is None:
            self.hash = (self.hash + fold(spelling(cell).encode())) & MASK
        else:
            self.values.append(value)

    def figures(self):
        return (self.nulls, len(self.values), math.fsum(self.values), math.fsum(map(abs, self.values)), self.hash)

    def agrees(self, other):
        own, others = self.figures(), other.figures()
        near = abs(own[2] - others[2]) <= 1e-6 * max(own[3], others[3])
        return near and (own[0], own[1], own[4]) == (others[0], others[1], others[4])

    def __str__(self):
        nulls, numbers, total, magnitude, texts = self.figures()
        return f"{nulls}/{numbers}/{scientific(total)}/{scientific(magnitude)}/{texts:016x}"


def scientific(value):
    """A number as Rust's `{:.9e}` writes it."""
    mantissa, exponent = f"{value:.9e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def digest(rows):
    columns = [Column() for _ in (rows[0] if rows else ())]
    for row in rows:
        for column, cell in zip(columns, row):
            column.add(cell)
    return len(rows), columns


def the_other_way(sql, columns):
    """The same query with the rows that tie in the other order of each of two; nothing if no rows are cut off."""
    cut = re.search(r"\nLIMIT \d+\s*$", sql)
    if not cut:
        return []
    body = sql[: cut.start()]
    # The order of the whole is what begins a line.
    joint = ", " if "\nORDER BY " in body else "\nORDER BY "
    orders = [", ".join(f"{place} {way}" for place in range(1, columns + 1)) for way in ("ASC", "DESC")]
    return [body + joint + order + cut.group() for order in orders]


def main():
    queries, *places = map(pathlib.Path, sys.argv[1:])

    def natural(path):
        digits, part = re.fullmatch(r"q(\d+)(\w*)", path.stem).groups()
        return int(digits), part

    for place in places:
        scale = round(float(place.name.rsplit("-", 1)[1]) * 1000)
        connection = duckdb.connect()
        for table in sorted(path for path in place.iterdir() if path.is_dir()):
            connection.execute(f"CREATE VIEW {table.name} AS SELECT * FROM read_parquet('{table}/*.parquet')")
        for path in sorted(queries.glob("q*.sql"), key=natural):
            sql = path.read_text().strip()
            count, columns = digest(connection.execute(sql).fetchall())
            for other in the_other_way(sql, len(connection.description)):
                others, other_columns = digest(connection.execute(other).fetchall())
                if others != count or not all(map(Column.agrees, columns, other_columns)):
                    print(f"{path.stem} at {place.name}: its answer is not determined", file=sys.stderr)
                    break
            else:
                print(scale, path.stem, f"{fold(sql.encode()):016x}", count, *columns)


main()
