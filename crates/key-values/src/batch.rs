//! Commands in the form of the wire, many in a row.

use crate::slot::{Key, KeyText};

/// A command of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Command {
    /// The key.
    pub(crate) key: Key,
    /// Its slot.
    pub(crate) slot: u16,
    /// The caller's number.
    pub(crate) tag: usize,
    /// Bytes of the value that it writes.
    pub(crate) n_value_bytes: usize,
    /// End of the command in the bytes of the batch.
    end: usize,
}

/// Commands that are sent together, each for one key.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    bytes: Vec<u8>,
    commands: Vec<Command>,
}

/// Commands with a key and nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyCommand {
    /// Reads the value.
    Get,
    /// 1 if there is a value, otherwise 0.
    Exists,
    /// Bytes of the value.
    Strlen,
    /// Removes the value.
    Unlink,
}

impl KeyCommand {
    /// The command up to its key: an array of two texts, the first of which is the name.
    const fn head(self) -> &'static [u8] {
        match self {
            Self::Get => b"*2\r\n$3\r\nGET\r\n",
            Self::Exists => b"*2\r\n$6\r\nEXISTS\r\n",
            Self::Strlen => b"*2\r\n$6\r\nSTRLEN\r\n",
            Self::Unlink => b"*2\r\n$6\r\nUNLINK\r\n",
        }
    }
}

impl Batch {
    /// The command that [`asking`](Self::asking) appends.
    pub(crate) const ASKING: &'static [u8] = b"*1\r\n$6\r\nASKING\r\n";

    /// Appends a command that writes `value`.
    pub(crate) fn set(&mut self, tag: usize, key: Key, text: &KeyText, value: &[u8]) {
        self.bytes.extend_from_slice(b"*3\r\n$3\r\nSET\r\n");
        self.text(text.as_bytes());
        self.text(value);
        self.end(tag, key, text.slot, value.len());
    }

    /// Appends a command that writes `value` if there is none yet. The answer is nil if there is.
    pub(crate) fn set_new(&mut self, tag: usize, key: Key, text: &KeyText, value: &[u8]) {
        self.bytes.extend_from_slice(b"*4\r\n$3\r\nSET\r\n");
        self.text(text.as_bytes());
        self.text(value);
        self.text(b"NX");
        self.end(tag, key, text.slot, value.len());
    }

    /// Appends a command without a value.
    pub(crate) fn key_command(
        &mut self,
        command: KeyCommand,
        tag: usize,
        key: Key,
        text: &KeyText,
    ) {
        self.bytes.extend_from_slice(command.head());
        self.text(text.as_bytes());
        self.end(tag, key, text.slot, 0);
    }

    /// Appends a command of another batch.
    pub(crate) fn copy(&mut self, command: &Command, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.commands.push(Command { end: self.bytes.len(), ..*command });
    }

    /// Appends the command by which the next one is served by a node that does not own its slot
    /// yet. It has an answer of its own.
    pub(crate) fn asking(&mut self) {
        self.bytes.extend_from_slice(Self::ASKING);
    }

    /// Removes all commands and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.commands.clear();
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn commands(&self) -> &[Command] {
        &self.commands
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// The commands from `first` on, each with its bytes.
    pub(crate) fn iter_from(&self, first: usize) -> impl Iterator<Item = (&Command, &[u8])> {
        let start = first.checked_sub(1).and_then(|before| self.commands.get(before));
        let mut start = start.map_or(0, |before| before.end);
        self.commands.iter().skip(first).map(move |command| {
            let bytes = &self.bytes[start..command.end];
            start = command.end;
            (command, bytes)
        })
    }

    fn text(&mut self, text: &[u8]) {
        self.bytes.push(b'$');
        self.number(text.len());
        self.bytes.extend_from_slice(b"\r\n");
        self.bytes.extend_from_slice(text);
        self.bytes.extend_from_slice(b"\r\n");
    }

    fn number(&mut self, number: usize) {
        if 10 <= number {
            self.number(number / 10);
        }
        self.bytes.push(b'0' + (number % 10) as u8);
    }

    fn end(&mut self, tag: usize, key: Key, slot: u16, n_value_bytes: usize) {
        self.commands.push(Command { key, slot, tag, n_value_bytes, end: self.bytes.len() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slot::Namespace;

    #[test]
    fn commands_are_those_of_the_redis_crate() {
        let namespace = Namespace::new("n").unwrap();
        let mut batch = Batch::default();
        let mut expect = Vec::new();
        for (tag, value) in [(0_usize, vec![b'x'; 1040]), (1, Vec::new()), (2, vec![0, 13, 10])] {
            let key = Key::Value(tag as u64);
            batch.set(tag, key, &namespace.key(key), &value);
            expect
                .extend(redis::cmd("SET").arg(format!("n:{tag}")).arg(value).get_packed_command());
        }
        batch.set_new(9, Key::Manifest, &namespace.key(Key::Manifest), b"new");
        expect
            .extend(redis::cmd("SET").arg("n:manifest").arg("new").arg("NX").get_packed_command());
        for (name, command) in [
            ("GET", KeyCommand::Get),
            ("EXISTS", KeyCommand::Exists),
            ("STRLEN", KeyCommand::Strlen),
            ("UNLINK", KeyCommand::Unlink),
        ] {
            batch.key_command(command, 3, Key::Manifest, &namespace.key(Key::Manifest));
            expect.extend(redis::cmd(name).arg("n:manifest").get_packed_command());
        }
        assert_eq!(batch.bytes(), expect);
        batch.asking();
        assert!(batch.bytes().ends_with(&redis::cmd("ASKING").get_packed_command()));
        batch.clear();
        assert!(batch.is_empty() && batch.bytes().is_empty());
    }

    #[test]
    fn each_command_has_its_bytes() {
        let namespace = Namespace::new("n").unwrap();
        let mut batch = Batch::default();
        for number in 0..3 {
            let key = Key::Value(number);
            batch.set(number as usize, key, &namespace.key(key), &vec![b'v'; number as usize]);
        }
        let whole: Vec<u8> = batch.iter_from(0).flat_map(|(_, bytes)| bytes.to_vec()).collect();
        assert_eq!(whole, batch.bytes());
        let mut other = Batch::default();
        for (command, bytes) in batch.iter_from(1) {
            other.copy(command, bytes);
        }
        assert_eq!(other.commands().iter().map(|c| c.tag).collect::<Vec<_>>(), [1, 2]);
        assert!(batch.bytes().ends_with(other.bytes()));
        assert_eq!(other.iter_from(1).count(), 1);
    }
}
