//! Methods of readers that ask another one.

/// Methods of [`XReader`](crate::XReader) that only ask the reader in the named field: within the
/// `impl` of a reader over another one. Their crate depends on `arrow_schema`.
///
/// ```ignore
/// impl XReader for Counted {
///     forward_reader!(inner: name n_rows n_columns data_type);
/// ```
#[macro_export]
macro_rules! forward_reader {
    ($field:ident: $($method:ident)+) => { $($crate::forward_reader!(@$method $field);)+ };
    (@name $field:ident) => {
        fn name(&self) -> &'static str {
            self.$field.name()
        }
    };
    (@why_not_native $field:ident) => {
        fn why_not_native(&self) -> Option<&str> {
            self.$field.why_not_native()
        }
    };
    (@n_rows $field:ident) => {
        fn n_rows(&self) -> u64 {
            self.$field.n_rows()
        }
    };
    (@n_columns $field:ident) => {
        fn n_columns(&self) -> u64 {
            self.$field.n_columns()
        }
    };
    (@data_type $field:ident) => {
        fn data_type(&self) -> &::arrow_schema::DataType {
            self.$field.data_type()
        }
    };
    (@nnz $field:ident) => {
        fn nnz(&self) -> Result<Option<u64>, $crate::Error> {
            self.$field.nnz()
        }
    };
    (@most_nnz $field:ident) => {
        fn most_nnz(&self) -> Result<Option<u64>, $crate::Error> {
            self.$field.most_nnz()
        }
    };
    (@working_bytes $field:ident) => {
        fn working_bytes(
            &self,
            nnz: u64,
            genes: &$crate::GeneSelection,
            form: $crate::ReadForm,
        ) -> u64 {
            self.$field.working_bytes(nnz, genes, form)
        }
    };
    (@is_remote $field:ident) => {
        fn is_remote(&self) -> bool {
            self.$field.is_remote()
        }
    };
    (@cache $field:ident) => {
        fn cache(&self) -> Option<$crate::CacheUse> {
            self.$field.cache()
        }
    };
    (@row_cache $field:ident) => {
        fn row_cache(&self) -> Option<$crate::RowCacheUse> {
            self.$field.row_cache()
        }
    };
    (@keep_decoded $field:ident) => {
        fn keep_decoded(&self, holder: u64, limit_bytes: u64) {
            self.$field.keep_decoded(holder, limit_bytes);
        }
    };
    (@decoded_bytes $field:ident) => {
        fn decoded_bytes(&self) -> u64 {
            self.$field.decoded_bytes()
        }
    };
    (@index_bytes $field:ident) => {
        fn index_bytes(&self) -> u64 {
            self.$field.index_bytes()
        }
    };
    (@announce_next $field:ident) => {
        fn announce_next(&self, rows: &$crate::RowRanges, genes: &$crate::GeneSelection) {
            self.$field.announce_next(rows, genes);
        }
    };
    (@exact $field:ident) => {
        fn exact(&self) -> Result<::std::sync::Arc<dyn $crate::XReader>, $crate::Error> {
            self.$field.exact()
        }
    };
    (@packs $field:ident) => {
        fn packs(&self, genes: &$crate::GeneSelection) -> bool {
            self.$field.packs(genes)
        }
    };
}
