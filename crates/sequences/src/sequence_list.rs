//! Sequences one after another in memory.

/// Sequences of different lengths, in one piece of memory, and their names if they were read.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct SequenceList {
    letters: Ragged,
    names: Ragged,
}

/// Byte strings one after another.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Ragged {
    bytes: Vec<u8>,
    /// The end of each.
    ends: Vec<usize>,
}

impl Ragged {
    fn get(&self, idx: usize) -> Option<&[u8]> {
        let end = *self.ends.get(idx)?;
        let start = idx.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.bytes.get(start..end)
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.ends.push(self.bytes.len());
    }

    fn reserve(&mut self, n: usize, n_bytes: usize) {
        self.ends.reserve(n);
        self.bytes.reserve(n_bytes);
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> + Clone {
        (0..self.ends.len()).filter_map(|idx| self.get(idx))
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    fn capacity_bytes(&self) -> usize {
        self.bytes.capacity() + size_of::<usize>() * self.ends.capacity()
    }

    fn extend<E>(
        &mut self,
        lengths: impl IntoIterator<Item = usize>,
        fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let start = self.bytes.len();
        let mut end = start;
        self.ends.extend(lengths.into_iter().map(|length| {
            end += length;
            end
        }));
        self.bytes.resize(end, 0);
        fill(&mut self.bytes[start..])
    }
}

impl SequenceList {
    /// The number of sequences.
    pub fn len(&self) -> usize {
        self.letters.ends.len()
    }

    /// Whether there is no sequence.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The letters of a sequence.
    pub fn get(&self, idx: usize) -> Option<&[u8]> {
        self.letters.get(idx)
    }

    /// The name of a sequence; `None` if names were not read.
    pub fn name(&self, idx: usize) -> Option<&[u8]> {
        self.names.get(idx)
    }

    /// The letters of all sequences, in their order.
    pub fn letters(&self) -> impl Iterator<Item = &[u8]> + Clone {
        self.letters.iter()
    }

    /// The letters of all sequences one after another, and the end of each in them.
    pub fn letters_and_ends(&self) -> (&[u8], &[usize]) {
        (&self.letters.bytes, &self.letters.ends)
    }

    /// Takes the letters of all sequences one after another, and the end of each in them.
    pub fn into_letters_and_ends(self) -> (Vec<u8>, Vec<usize>) {
        (self.letters.bytes, self.letters.ends)
    }

    /// The names of all sequences, in their order; none if names were not read.
    pub fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.names.iter()
    }

    /// Appends a sequence. Either all sequences of a list have names or none has.
    pub fn push(&mut self, letters: &[u8], name: Option<&[u8]>) {
        self.push_parts(Some(letters), name);
    }

    /// Makes room for the letters and names of more sequences, as far as there are any.
    pub(crate) fn reserve(
        &mut self,
        letters: Option<(usize, usize)>,
        names: Option<(usize, usize)>,
    ) {
        for (list, room) in [(&mut self.letters, letters), (&mut self.names, names)] {
            if let Some((n, n_bytes)) = room {
                list.reserve(n, n_bytes);
            }
        }
    }

    /// Appends what there is of a sequence.
    pub(crate) fn push_parts(&mut self, letters: Option<&[u8]>, name: Option<&[u8]>) {
        for (list, bytes) in [(&mut self.letters, letters), (&mut self.names, name)] {
            if let Some(bytes) = bytes {
                list.push(bytes);
            }
        }
    }

    /// Appends the letters of sequences with these lengths, as `fill` writes them.
    pub(crate) fn extend_letters<E>(
        &mut self,
        lengths: impl IntoIterator<Item = usize>,
        fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.letters.extend(lengths, fill)
    }

    /// Appends names with these lengths, as `fill` writes them.
    pub(crate) fn extend_names<E>(
        &mut self,
        lengths: impl IntoIterator<Item = usize>,
        fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.names.extend(lengths, fill)
    }

    /// Removes all sequences, and keeps the memory.
    pub fn clear(&mut self) {
        self.letters.clear();
        self.names.clear();
    }

    /// Frees the letters, and keeps the names.
    pub(crate) fn clear_letters(&mut self) {
        self.letters = Ragged::default();
    }

    /// Bytes that the list keeps allocated.
    pub fn capacity_bytes(&self) -> usize {
        self.letters.capacity_bytes() + self.names.capacity_bytes()
    }
}
