//! A strict reader of pickles of tuples, integers, text, a dictionary and numpy types.
//!
//! Nothing is ever run: a pickle that names anything but `numpy.dtype`, or uses an operation that
//! such pickles do not need, is refused. Protocols 2 to 5 are read. Source: `Lib/pickletools.py` of
//! CPython, and `numpy.dtype.__reduce__`.

use std::collections::BTreeMap;

use crate::files::FileError;

/// Longest pickle. It describes some arrays, so this is plenty.
const MAX_BYTES: usize = 1 << 20;

/// A value of a pickle. Compound ones are places in the [`Unpickled`] values, so that dropping
/// deeply nested ones takes no stack.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value<'a> {
    None,
    Bool,
    Integer(i64),
    Text(&'a str),
    /// Place of the first element, and number of elements.
    Tuple(usize, usize),
    /// The dictionary. There is at most one.
    Dictionary,
    /// The class `numpy.dtype`.
    TypeClass,
    /// Place among the types.
    Type(usize),
}

/// A `numpy.dtype`.
#[derive(Clone, Copy, Debug)]
pub(super) struct NumpyType<'a> {
    /// Kind and bytes, `f4` for example.
    pub(super) code: &'a str,
    /// `<`, `>`, or `|` for a single byte; `None` if the pickle does not say.
    pub(super) order: Option<&'a str>,
}

/// All values of a pickle.
#[derive(Debug)]
pub(super) struct Unpickled<'a> {
    /// The value that was pickled.
    pub(super) top: Value<'a>,
    /// Bytes of the pickle.
    pub(super) n_bytes: usize,
    /// Keys and values of the dictionary.
    pub(super) entries: Vec<(Value<'a>, Value<'a>)>,
    elements: Vec<Value<'a>>,
    types: Vec<NumpyType<'a>>,
}

impl<'a> Unpickled<'a> {
    /// The elements of a tuple; `None` if `value` is not a tuple.
    pub(super) fn tuple(&self, value: Value<'a>) -> Option<&[Value<'a>]> {
        let Value::Tuple(first, n_elements) = value else { return None };
        self.elements.get(first..first + n_elements)
    }

    /// A numpy type; `None` if `value` is not one.
    pub(super) fn numpy_type(&self, value: Value<'a>) -> Option<NumpyType<'a>> {
        let Value::Type(place) = value else { return None };
        self.types.get(place).copied()
    }
}

/// Reads the pickle at the beginning of `file`.
pub(super) fn read(file: &[u8]) -> Result<Unpickled<'_>, FileError> {
    let machine = Machine {
        file,
        at: 0,
        begun: 0,
        stack: Vec::new(),
        marks: Vec::new(),
        memo: BTreeMap::new(),
        has_dictionary: false,
        read: Unpickled {
            top: Value::None,
            n_bytes: 0,
            entries: Vec::new(),
            elements: Vec::new(),
            types: Vec::new(),
        },
    };
    machine.run()
}

/// The stack machine that a pickle is a program for.
struct Machine<'a> {
    file: &'a [u8],
    at: usize,
    /// Where the current operation begins.
    begun: usize,
    stack: Vec<Value<'a>>,
    /// Lengths of the stack that are marked.
    marks: Vec<usize>,
    memo: BTreeMap<u32, Value<'a>>,
    has_dictionary: bool,
    read: Unpickled<'a>,
}

impl<'a> Machine<'a> {
    fn run(mut self) -> Result<Unpickled<'a>, FileError> {
        if self.file.get(2..9) == Some(b"b2frame") {
            let reason = "the file is a frame of Blosc2; the format is a pickle and c-blosc 1, as \
                          Python's package `blosc` writes it: write it again, or to a Zarr array";
            return Err(FileError::unsupported(0, reason));
        }
        if self.bytes(1)? != [0x80] {
            return Err(FileError::damaged(0, "a file of this format begins with a pickle"));
        }
        let protocol = self.number(1)?;
        if !(2..=5).contains(&protocol) {
            let reason = format!("protocol {protocol} of pickle: 2 to 5 are");
            return Err(FileError::unsupported(1, reason));
        }
        loop {
            if self.at > MAX_BYTES {
                let reason = format!("a pickle of more than {MAX_BYTES} bytes");
                return Err(FileError::unsupported(self.at, reason));
            }
            self.begun = self.at;
            let operation = self.bytes(1)?[0];
            if operation == b'.' {
                self.read.top = self.pop()?;
                self.read.n_bytes = self.at;
                return Ok(self.read);
            }
            self.step(operation)?;
        }
    }

    fn step(&mut self, operation: u8) -> Result<(), FileError> {
        match operation {
            // A frame is a hint of how much to read at once.
            0x95 => {
                self.bytes(8)?;
            }
            b'N' => self.stack.push(Value::None),
            0x88 | 0x89 => self.stack.push(Value::Bool),
            b'K' | b'M' | b'J' | 0x8a => self.integer(operation)?,
            b'X' | 0x8c => self.text(operation)?,
            b'(' => self.marks.push(self.stack.len()),
            b't' => {
                let first = self.marked()?;
                self.tuple(first);
            }
            b')' | 0x85..=0x87 => {
                let n_elements = if operation == b')' { 0 } else { usize::from(operation - 0x84) };
                let first = self.stack.len().checked_sub(n_elements);
                let first = first.ok_or_else(|| self.damaged("the stack has too few values"))?;
                self.tuple(first);
            }
            b'}' | b's' | b'u' => self.dictionary(operation)?,
            b'c' | 0x93 | b'R' | b'b' => self.numpy_type(operation)?,
            b'q' | b'r' | 0x94 | b'h' | b'j' => self.memo(operation)?,
            other => {
                let reason = format!(
                    "operation {other:#04x} of pickle: only those are that \
                     describe shapes and numpy types"
                );
                return Err(FileError::unsupported(self.begun, reason));
            }
        }
        Ok(())
    }

    fn integer(&mut self, operation: u8) -> Result<(), FileError> {
        let value = match operation {
            b'K' => self.number(1)?.into(),
            b'M' => self.number(2)?.into(),
            b'J' => i64::from(self.number(4)?.cast_signed()),
            _ => {
                let n_bytes = self.number(1)? as usize;
                let digits = self.bytes(n_bytes)?;
                if n_bytes > 8 {
                    return Err(self.damaged("an integer of more than 8 bytes"));
                }
                let is_negative = digits.last().is_some_and(|last| last & 0x80 != 0);
                let mut bytes = [if is_negative { 0xff } else { 0 }; 8];
                bytes[..n_bytes].copy_from_slice(digits);
                i64::from_le_bytes(bytes)
            }
        };
        self.stack.push(Value::Integer(value));
        Ok(())
    }

    fn text(&mut self, operation: u8) -> Result<(), FileError> {
        let n_bytes = self.number(if operation == b'X' { 4 } else { 1 })? as usize;
        let text = self.bytes(n_bytes)?;
        let text = str::from_utf8(text).map_err(|_| self.damaged("text that is not UTF-8"))?;
        self.stack.push(Value::Text(text));
        Ok(())
    }

    /// Makes a tuple of the stack's values from `first`.
    fn tuple(&mut self, first: usize) {
        let place = self.read.elements.len();
        self.read.elements.extend(self.stack.drain(first..));
        self.stack.push(Value::Tuple(place, self.read.elements.len() - place));
    }

    fn dictionary(&mut self, operation: u8) -> Result<(), FileError> {
        if operation == b'}' {
            if self.has_dictionary {
                let reason = "a second dictionary in the pickle: one is";
                return Err(FileError::unsupported(self.begun, reason));
            }
            self.has_dictionary = true;
            self.stack.push(Value::Dictionary);
            return Ok(());
        }
        let first = if operation == b'u' {
            self.marked()?
        } else {
            let first = self.stack.len().checked_sub(2);
            first.ok_or_else(|| self.damaged("the stack has too few values"))?
        };
        let into = first.checked_sub(1).and_then(|at| self.stack.get(at));
        let (pairs, rest) = self.stack[first..].as_chunks::<2>();
        if into != Some(&Value::Dictionary) || !rest.is_empty() {
            return Err(self.damaged("entries without their dictionary"));
        }
        self.read.entries.extend(pairs.iter().map(|&[key, value]| (key, value)));
        self.stack.truncate(first);
        Ok(())
    }

    /// The operations that make a numpy type: its class, a call of that, and the state of the
    /// result.
    fn numpy_type(&mut self, operation: u8) -> Result<(), FileError> {
        match operation {
            b'c' => {
                let [module, name] = [self.line()?, self.line()?];
                self.class(module, name)
            }
            0x93 => {
                let [name, module] = [self.pop()?, self.pop()?];
                let [Value::Text(module), Value::Text(name)] = [module, name] else {
                    return Err(self.damaged("the name of a class is not text"));
                };
                self.class(module.as_bytes(), name.as_bytes())
            }
            b'R' => self.call(),
            _ => self.build(),
        }
    }

    fn class(&mut self, module: &[u8], name: &[u8]) -> Result<(), FileError> {
        if (module, name) != (b"numpy", b"dtype") {
            let name = [module, name].map(String::from_utf8_lossy).join(".");
            let reason = format!("{name} in the pickle: numpy.dtype is");
            return Err(FileError::unsupported(self.begun, reason));
        }
        self.stack.push(Value::TypeClass);
        Ok(())
    }

    /// `numpy.dtype(code, align, copy)`.
    fn call(&mut self) -> Result<(), FileError> {
        let [arguments, class] = [self.pop()?, self.pop()?];
        let arguments = self.read.tuple(arguments);
        let (Value::TypeClass, Some(&[Value::Text(code), _, _])) = (class, arguments) else {
            return Err(self.damaged("a call that does not make a numpy type"));
        };
        self.stack.push(Value::Type(self.read.types.len()));
        self.read.types.push(NumpyType { code, order: None });
        Ok(())
    }

    /// The state of a numpy type: version, byte order, then what only structures have, and sizes.
    fn build(&mut self) -> Result<(), FileError> {
        let state = self.pop()?;
        let state = self.read.tuple(state).and_then(|state| state.split_first_chunk::<5>());
        let Some(([Value::Integer(_), Value::Text(order), structure @ ..], _)) = state else {
            return Err(self.damaged("a state that is not a numpy type's"));
        };
        if *structure != [Value::None; 3] {
            let reason = "a numpy type with fields or a shape: numbers and bool are";
            return Err(FileError::unsupported(self.begun, reason));
        }
        let order = Some(*order);
        let built = match self.stack.last() {
            Some(Value::Type(place)) => self.read.types.get_mut(*place),
            _ => None,
        };
        match built {
            Some(built) => built.order = order,
            None => return Err(self.damaged("a state without its numpy type")),
        }
        Ok(())
    }

    fn memo(&mut self, operation: u8) -> Result<(), FileError> {
        let key = match operation {
            0x94 => self.memo.len() as u32,
            b'q' | b'h' => self.number(1)?,
            _ => self.number(4)?,
        };
        if matches!(operation, b'h' | b'j') {
            let kept = self.memo.get(&key).copied();
            let kept = kept.ok_or_else(|| self.damaged("a value that was not kept"))?;
            self.stack.push(kept);
        } else {
            let kept = self.stack.last().copied();
            let kept = kept.ok_or_else(|| self.damaged("the stack has too few values"))?;
            self.memo.insert(key, kept);
        }
        Ok(())
    }

    /// The length that the stack had at the last mark, which is removed.
    fn marked(&mut self) -> Result<usize, FileError> {
        let marked = self.marks.pop().filter(|&marked| marked <= self.stack.len());
        marked.ok_or_else(|| self.damaged("the stack has no mark"))
    }

    fn pop(&mut self) -> Result<Value<'a>, FileError> {
        self.stack.pop().ok_or_else(|| self.damaged("the stack has too few values"))
    }

    /// An unsigned little-endian number of up to 4 bytes.
    fn number(&mut self, n_bytes: usize) -> Result<u32, FileError> {
        let bytes = self.bytes(n_bytes)?;
        Ok(bytes.iter().rev().fold(0, |number, &byte| number << 8 | u32::from(byte)))
    }

    fn line(&mut self) -> Result<&'a [u8], FileError> {
        let rest = self.file.get(self.at..).unwrap_or_default();
        let length = rest.iter().take(MAX_BYTES).position(|&byte| byte == b'\n');
        let length = length.ok_or_else(|| self.damaged("a name without an end"))?;
        let line = self.bytes(length)?;
        self.bytes(1)?;
        Ok(line)
    }

    fn bytes(&mut self, n_bytes: usize) -> Result<&'a [u8], FileError> {
        let end = self.at.saturating_add(n_bytes);
        let length = self.file.len();
        let truncated = FileError::Truncated { part: "the pickle", length, end };
        let bytes = self.file.get(self.at..end).ok_or(truncated)?;
        self.at = end;
        Ok(bytes)
    }

    fn damaged(&self, reason: &str) -> FileError {
        FileError::damaged(self.begun, format!("{reason} in the pickle"))
    }
}
