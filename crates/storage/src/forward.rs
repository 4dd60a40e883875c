//! Methods of a decorator that are those of what it decorates.

/// Implements methods of a trait by those of a field, for decorators: they name every method, also
/// those with a default, which `#[deny(clippy::missing_trait_methods)]` on the `impl` checks.
///
/// ```
/// # use std::io;
/// # use std::sync::Arc;
/// use storage::{Coalesce, Entry, Piece, Storage};
///
/// #[derive(Debug)]
/// struct Named(Arc<dyn Storage>, String);
///
/// impl Storage for Named {
///     storage::forward! { 0:
///         fn list(folder: &str) -> io::Result<Vec<Entry>>;
///         fn size(file: &str) -> io::Result<u64>;
///         fn read(pieces: &[Piece<'_>], into: &mut [u8]) -> io::Result<()>;
///         fn coalesce() -> Coalesce;
///     }
///
///     fn place(&self) -> String {
///         self.1.clone()
///     }
/// }
/// ```
#[macro_export]
macro_rules! forward {
    ($field:tt: $(fn $method:ident($($name:ident: $type:ty),*) $(-> $result:ty)?;)+) => {
        $($crate::forward! { @ $field fn $method($($name: $type),*) $(-> $result)? })+
    };
    (@ $field:tt fn $method:ident($($name:ident: $type:ty),*) $(-> $result:ty)?) => {
        fn $method(&self $(, $name: $type)*) $(-> $result)? {
            self.$field.$method($($name),*)
        }
    };
}
