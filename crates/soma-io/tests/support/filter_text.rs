//! Random filters, limited to those that do not crash tiledbsoma.

/// Columns, each with values in the form of a filter. The flag says whether tiledbsoma supports
/// lists of them; lists contain no signs.
const COLUMNS: [(&str, &[&str], bool); 24] = [
    ("text", &[r#""a""#, "'é'", r#""""#, r#"'a' " b""#, r#""nope""#, "b'b'"], true),
    ("text_or_none", &[r#""a""#, "'é'", r#""""#, r#""\x61""#, r#""nope""#], true),
    ("bytes_or_none", &["b'x'", r"b'\xff\x01'", "''"], true),
    ("kind", &["'k0'", "'k1'", "'é'", "'nope'"], true),
    ("kind_or_none", &["'k0'", "'k2'", "'é'", "'nope'"], true),
    ("level", &["'low'", "'mid'", "'high'", "'nope'"], true),
    ("level_or_none", &["'low'", "'mid'", "'high'", "'nope'"], true),
    ("dose", &["300", "1", "7"], true),
    ("dose_or_none", &["300", "0x1", "7"], true),
    ("ordered_share", &["0.5", "2", "2.0", "7.5"], true),
    ("truth", &["True", "False", "1", "0"], false),
    ("truth_or_none", &["True", "False", "1", "0"], false),
    ("attr('orig.ident')", &["30", "7", "0b101"], true),
    ("float32", &["0.1", "2.5", "0", "1e39", "1e400"], true),
    ("float64_or_none", &["0.1", "2.5", "0.0", ".1", "1_0.5"], true),
    ("int8", &["5", "1", "127", "0", "128"], true),
    ("int16_or_none", &["5", "1", "32767", "0"], false),
    ("int64", &["5", "1", "9223372036854775807", "0"], true),
    ("uint8_or_none", &["5", "1", "255", "128", "0"], false),
    ("uint16", &["5", "1", "65535", "32768", "0"], true),
    ("uint64_or_none", &["5", "1", "18446744073709551615", "9223372036854775808"], true),
    ("soma_joinid", &["5", "20", "60", "100"], true),
    ("moment_ms", &["0", "1", "1000000000"], true),
    ("moment_s_or_none", &["0", "1", "1000000000"], true),
];

const COMPARISONS: [&str; 6] = ["==", "!=", "<", "<=", ">", ">="];

pub(crate) struct Draw {
    state: u64,
}

impl Draw {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d }
    }

    /// A number below `n`.
    fn below(&mut self, n: usize) -> usize {
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.state >> 33) % n as u64) as usize
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    pub(crate) fn filter(&mut self) -> String {
        let depth = self.below(4);
        self.joined(depth)
    }

    fn joined(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.single();
        }
        let n_parts = 2 + self.below(2);
        // Tight operators need parentheses around every part.
        let joint = self.one(&[" and ", " or ", " & ", " | ", "\tand  ", " or\u{c}"]);
        let tight = joint.contains(['&', '|']);
        let parts: Vec<String> = (0..n_parts)
            .map(|_| {
                let inner = self.below(depth);
                let part = self.joined(inner);
                if tight || self.below(3) == 0 { format!("({part})") } else { part }
            })
            .collect();
        parts.join(joint)
    }

    fn single(&mut self) -> String {
        let (column, values, has_lists) = self.one(&COLUMNS);
        // Rarely compares order for categories without one, which is an error.
        let has_order = !["kind", "kind_or_none", "dose", "dose_or_none"].contains(&column);
        let n_comparisons = if has_order || self.below(20) == 0 { COMPARISONS.len() } else { 2 };
        let comparison = COMPARISONS[self.below(n_comparisons)];
        let value = self.one(values);
        match self.below(10) {
            0 => format!("{column} {} None", COMPARISONS[self.below(2)]),
            1 => format!("{value}{comparison}{column}"),
            2 if has_order => format!("{value} < {column} <= {}", self.one(values)),
            3 => format!("not {column} {comparison} {value}"),
            4 => format!("{column} {comparison} val({value})"),
            5 | 6 if has_lists => {
                let n_values = 1 + self.below(4);
                let list: Vec<_> = (0..n_values).map(|_| self.one(values)).collect();
                format!("{column} {} [{}]", self.one(&["in", "not in"]), list.join(", "))
            }
            _ => format!("{column} {comparison} {value}"),
        }
    }
}
