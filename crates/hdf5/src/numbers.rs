//! Numbers of any format that HDF5 describes, as those that Zarr has, and as JSON.

use serde_json::{Value, json};

/// The format of a dataset's or an attribute's numbers, and the type of Zarr that has them.
#[derive(Debug, Clone)]
pub(crate) struct Number {
    /// The name of the type in Zarr v3.
    pub(crate) name: &'static str,
    /// Bytes of a number in Zarr.
    pub(crate) n_bytes: usize,
    /// Bytes of a number in the file.
    pub(crate) stored_bytes: usize,
    pub(crate) stored: Stored,
}

/// How a number is stored.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stored {
    /// As in Zarr, in one of two orders of bytes.
    Plain { is_big_endian: bool },
    /// Some of the bits are an integer.
    Integer { order: Order, bits: Bits, is_signed: bool },
    /// Some of the bits are a floating-point number.
    Float { order: Order, format: FloatFormat },
}

/// The order of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Little,
    Big,
}

/// A range of bits, counted from the lowest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bits {
    pub(crate) start: u32,
    pub(crate) len: u32,
}

/// Where the parts of a floating-point number are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FloatFormat {
    pub(crate) sign: u32,
    pub(crate) exponent: Bits,
    pub(crate) mantissa: Bits,
    pub(crate) bias: u32,
    /// Whether the highest bit of the mantissa is stored, too.
    pub(crate) has_first_bit: bool,
}

impl Bits {
    fn extract(self, bits: u128) -> u128 {
        (bits >> self.start) & ((1 << self.len) - 1)
    }
}

impl Order {
    /// The bits of a number of at most 16 bytes.
    fn bits(self, bytes: &[u8]) -> u128 {
        let mut wide = [0; 16];
        let n_bytes = bytes.len();
        for (at, byte) in bytes.iter().enumerate() {
            let to = match self {
                Self::Little => at,
                Self::Big => n_bytes - 1 - at,
            };
            if let Some(to) = wide.get_mut(to) {
                *to = *byte;
            }
        }
        u128::from_le_bytes(wide)
    }
}

impl FloatFormat {
    /// Bits of the mantissa behind the point.
    pub(crate) fn n_fraction_bits(&self) -> u32 {
        self.mantissa.len - u32::from(self.has_first_bit)
    }

    /// The exponents of the smallest and of the largest power of two that the format has.
    pub(crate) fn exponents(&self) -> (i64, i64) {
        let (bias, fraction) = (i64::from(self.bias), i64::from(self.n_fraction_bits()));
        let most = (1_i64 << self.exponent.len) - 2;
        (1 - bias - fraction, most - bias)
    }

    /// The number in `bits`, which `f64` has exactly if the format was checked.
    fn value(&self, bits: u128) -> f64 {
        let (exponent, mantissa) = (self.exponent.extract(bits), self.mantissa.extract(bits));
        let fraction_bits = self.n_fraction_bits();
        let fraction = mantissa & ((1 << fraction_bits) - 1);
        let magnitude = if exponent == (1 << self.exponent.len) - 1 {
            if fraction == 0 { f64::INFINITY } else { f64::NAN }
        } else {
            let is_whole = !self.has_first_bit && exponent != 0;
            let whole = if is_whole { mantissa | (1 << fraction_bits) } else { mantissa };
            let power = exponent.max(1) as i64 - i64::from(self.bias) - i64::from(fraction_bits);
            // In two steps, as a power of two alone may be too small or too large.
            let half = (power / 2) as i32;
            whole as f64 * 2_f64.powi(half) * 2_f64.powi(power as i32 - half)
        };
        if (bits >> self.sign) & 1 == 1 { -magnitude } else { magnitude }
    }
}

impl Number {
    /// Whether the file has the numbers as Zarr does.
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self.stored, Stored::Plain { .. })
    }

    /// Whether the highest byte of a number comes first in a chunk of Zarr.
    pub(crate) fn is_big_endian(&self) -> bool {
        matches!(self.stored, Stored::Plain { is_big_endian: true })
    }

    /// The bytes of Zarr's number, the lowest first, for the bytes of one in the file.
    fn converted(&self, bytes: &[u8]) -> [u8; 8] {
        match self.stored {
            Stored::Plain { is_big_endian } => {
                let order = if is_big_endian { Order::Big } else { Order::Little };
                (order.bits(bytes) as u64).to_le_bytes()
            }
            Stored::Integer { order, bits, is_signed } => {
                let value = bits.extract(order.bits(bytes)) as u64;
                let unused = 64 - bits.len.min(64);
                let signed = ((value << unused).cast_signed() >> unused).cast_unsigned();
                let value = if is_signed { signed } else { value };
                let value = if self.name == "bool" { u64::from(value != 0) } else { value };
                value.to_le_bytes()
            }
            Stored::Float { order, format } => {
                let value = format.value(order.bits(bytes));
                match self.n_bytes {
                    4 => u64::from((value as f32).to_bits()).to_le_bytes(),
                    _ => value.to_bits().to_le_bytes(),
                }
            }
        }
    }

    /// Numbers of the file as those of Zarr, each with its lowest byte first.
    pub(crate) fn convert(&self, stored: &[u8]) -> Vec<u8> {
        let numbers = stored.chunks_exact(self.stored_bytes.max(1));
        let mut converted = Vec::with_capacity(numbers.len() * self.n_bytes);
        for bytes in numbers {
            converted.extend_from_slice(&self.converted(bytes)[..self.n_bytes]);
        }
        converted
    }

    /// Returns the number of these bytes as JSON; `None` if there are too few.
    pub(crate) fn value(&self, bytes: &[u8]) -> Option<Value> {
        let bits = u64::from_le_bytes(self.converted(bytes.get(..self.stored_bytes)?));
        let unused = 64 - 8 * self.n_bytes as u32;
        Some(match self.name {
            "bool" => json!(bits != 0),
            "float32" => float(f64::from(f32::from_bits(bits as u32))),
            "float64" => float(f64::from_bits(bits)),
            // The bits, as Zarr writes values that JSON has no number for.
            "float16" => json!(format!("0x{bits:04x}")),
            name if name.starts_with("uint") => json!((bits << unused) >> unused),
            _ => json!((bits << unused).cast_signed() >> unused),
        })
    }

    /// Returns zero as JSON.
    pub(crate) fn zero(&self) -> Value {
        if self.name == "bool" { json!(false) } else { json!(0) }
    }
}

/// A number, or its name where JSON has none.
fn float(value: f64) -> Value {
    if value.is_nan() {
        json!("NaN")
    } else if value.is_infinite() {
        json!(if value < 0.0 { "-Infinity" } else { "Infinity" })
    } else {
        json!(value)
    }
}
