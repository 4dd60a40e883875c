//! Parser of Markdown pages for tests: fenced blocks, and the commands in shell blocks.

/// Fenced block of a page.
#[derive(Debug)]
pub(crate) struct Block {
    /// Text after the opening fence: `sh`, `sh no-run`, `rust`.
    pub(crate) kind: String,
    pub(crate) text: String,
    /// Line number of the first line of `text`, from 1.
    pub(crate) line: usize,
}

/// Command of a shell block, split into words.
#[derive(Debug, PartialEq)]
pub(crate) struct Command {
    /// Variables set for this command only, like `RANK=0` before the program.
    pub(crate) variables: Vec<(String, String)>,
    pub(crate) words: Vec<String>,
}

/// Returns the fenced blocks of a page, in order. Fences may be indented. Fails if a block does not
/// end.
pub(crate) fn blocks(markdown: &str) -> Result<Vec<Block>, String> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (line, text) in (1..).zip(markdown.lines()) {
        match (text.trim_start().strip_prefix("```"), &mut open) {
            (Some(kind), None) => {
                let kind = kind.trim().to_owned();
                open = Some(Block { kind, text: String::new(), line: line + 1 });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some(block)) => {
                block.text.push_str(text);
                block.text.push('\n');
            }
            (None, None) => {}
        }
    }
    match open {
        Some(block) => Err(format!("the block in line {} does not end", block.line)),
        None => Ok(blocks),
    }
}

/// Returns the commands of a shell block.
///
/// Supports words, quotes, comments and continued lines; fails on other shell syntax.
pub(crate) fn commands(block: &Block) -> Result<Vec<Command>, String> {
    let mut commands = Vec::new();
    for line in block.text.replace("\\\n", " ").lines() {
        let words = words(line).map_err(|why| format!("`{line}`: {why}"))?;
        let is_variable = |word: &&String| {
            let name = word.split_once('=').map_or("", |(name, _)| name);
            !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c == '_')
        };
        let n_variables = words.iter().take_while(is_variable).count();
        let (variables, words) = words.split_at(n_variables);
        if words.is_empty() {
            continue;
        }
        let variables = variables.iter().filter_map(|word| word.split_once('='));
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        commands.push(Command { variables: variables.map(owned).collect(), words: words.to_vec() });
    }
    Ok(commands)
}

fn words(line: &str) -> Result<Vec<String>, String> {
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        match c {
            ' ' | '\t' => words.extend(word.take()),
            '#' if word.is_none() => break,
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match rest.next() {
                        Some(end) if end == c => break,
                        Some('$' | '`' | '\\') if c == '"' => {
                            return Err("a shell would put something else there".to_owned());
                        }
                        Some(other) => word.push(other),
                        None => return Err("a quote does not end".to_owned()),
                    }
                }
            }
            '|' | '&' | ';' | '<' | '>' | '(' | ')' | '$' | '`' | '*' | '?' | '[' | '\\' => {
                return Err(format!("{c} is a shell's own, and is not known here"));
            }
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Ok(words)
}

#[test]
fn a_page_is_taken_apart_as_a_shell_would() {
    let page = "text\n```sh\n# a comment\nA=1 run -b \"4 / [1,2]\" 'x > 1' \\\n  --y=z   # why\n\n```\n```sh no-run\nr\n```\n";
    let blocks = blocks(page).unwrap();
    let kinds: Vec<_> = blocks.iter().map(|block| (block.kind.as_str(), block.line)).collect();
    assert_eq!(kinds, [("sh", 3), ("sh no-run", 9)]);
    let command = Command {
        variables: vec![("A".to_owned(), "1".to_owned())],
        words: ["run", "-b", "4 / [1,2]", "x > 1", "--y=z"].map(str::to_owned).into(),
    };
    assert_eq!(commands(&blocks[0]).unwrap(), [command]);
    for line in ["a | b", "a > b", "echo $HOME", "a 'b", "a \"$b\"", "rm *"] {
        assert!(words(line).is_err(), "{line}");
    }
}

#[test]
fn a_block_without_an_end_is_refused() {
    assert!(blocks("```sh\nrun\n").unwrap_err().contains("line 2"));
}
