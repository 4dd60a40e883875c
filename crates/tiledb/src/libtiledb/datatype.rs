//! The Rust types that represent TileDB's datatypes in buffers.

use crate::Datatype;

mod sealed {
    pub trait Sealed {}
}

/// A Rust type that represents a datatype in a buffer.
pub trait Value: bytemuck::Pod + sealed::Sealed {
    /// Whether a buffer of `datatype` contains values of this type.
    fn stands_for(datatype: Datatype) -> bool;
}

macro_rules! value {
    ($($rust:ty => $($datatype:ident)|+),* $(,)?) => {
        $(
            impl sealed::Sealed for $rust {}

            impl Value for $rust {
                fn stands_for(datatype: Datatype) -> bool {
                    matches!(datatype, $(Datatype::$datatype)|+)
                }
            }
        )*
    };
}

value! {
    i8 => Int8,
    u8 => UInt8 | Char | StringAscii | StringUtf8 | Any | Blob | Bool,
    i16 => Int16,
    u16 => UInt16,
    i32 => Int32,
    u32 => UInt32,
    i64 => Int64 | DateTimeSecond | DateTimeMillisecond | DateTimeMicrosecond | DateTimeNanosecond,
    u64 => UInt64,
    f32 => Float32,
    f64 => Float64,
}
