//! How random the order of an epoch was: the entropy of a label within batches, measured and
//! expected.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, ListArray, RecordBatch, StructArray, cast::AsArray};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, Fields};

use crate::column::{BadColumn, ColumnGroup, Scalar, column_group};

column_group! {
    /// The Shannon entropy of one label (an obs column) within an epoch's batches, in bits.
    pub struct OrderEntropy {
        /// Name of the obs column.
        pub label: String,
        /// Mean over the full batches; null if there was none.
        pub mean: Option<f64>,
        /// Standard deviation between full batches.
        pub standard_deviation: Option<f64>,
        /// Expected mean under the settings.
        pub expected: Option<f64>,
        /// Source of `expected`: `formula`, `simulation`, or `rows` if the order is the stored one.
        pub expected_by: Option<String>,
        /// Mean over the full batches within the first block of an epoch whose blocks grow; null
        /// elsewhere.
        pub first_mean: Option<f64>,
        /// Expected value of `first_mean`.
        pub first_expected: Option<f64>,
        /// Mean of a perfect shuffle.
        pub perfect: Option<f64>,
        /// Entropy of the label in all selected cells.
        pub data: Option<f64>,
    }
}

fn fields() -> Fields {
    OrderEntropy::fields().into()
}

fn item() -> Arc<Field> {
    Arc::new(Field::new_list_field(DataType::Struct(fields()), true))
}

impl Scalar for Vec<OrderEntropy> {
    fn data_type() -> DataType {
        DataType::List(item())
    }

    fn to_array(values: impl Iterator<Item = Option<Self>>) -> ArrayRef {
        let lists: Vec<Option<Self>> = values.collect();
        let all: Vec<&OrderEntropy> = lists.iter().flatten().flatten().collect();
        let lengths = lists.iter().map(|list| list.as_ref().map_or(0, Self::len));
        let labels = StructArray::new(fields(), OrderEntropy::arrays(&all), None);
        let nulls = lists.iter().map(Option::is_some).collect::<NullBuffer>();
        let offsets = OffsetBuffer::from_lengths(lengths);
        Arc::new(ListArray::new(item(), offsets, Arc::new(labels), Some(nulls)))
    }

    fn from_array(array: &dyn Array) -> Result<Vec<Option<Self>>, (String, &'static str)> {
        let lists = array.as_list::<i32>().iter();
        lists
            .map(|list| {
                list.map(|list| {
                    let (fields, columns, _) = list.as_struct().clone().into_parts();
                    let rows =
                        RecordBatch::try_new(Arc::new(arrow_schema::Schema::new(fields)), columns);
                    let rows =
                        rows.map_err(|error| (error.to_string(), "labels with their entropy"))?;
                    OrderEntropy::decode(&rows).map_err(|bad| match bad {
                        BadColumn::Type { column, .. } => (column, "labels with their entropy"),
                        BadColumn::Value { value, expected, .. } => (value, expected),
                    })
                })
                .transpose()
            })
            .collect()
    }
}

impl OrderEntropy {
    /// The figures by name, in bits. The first label's figures have the names that the page uses.
    pub(crate) fn figures(&self, is_first: bool) -> Vec<(String, f64)> {
        let figures = [
            ("entropy", self.mean),
            ("entropy_sd", self.standard_deviation),
            ("entropy_expected", self.expected),
            ("entropy_of_first_batches", self.first_mean),
            ("entropy_of_first_batches_expected", self.first_expected),
            ("entropy_perfect", self.perfect),
            ("entropy_data", self.data),
        ];
        let name = |name: &str| {
            let words = name.replace('_', " ");
            if is_first { name.to_owned() } else { format!("{words} of {}, bits", self.label) }
        };
        let known = figures.into_iter().filter_map(|(figure, value)| Some((name(figure), value?)));
        known.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entropy(label: &str, mean: Option<f64>) -> OrderEntropy {
        OrderEntropy { label: label.to_owned(), mean, ..OrderEntropy::default() }
    }

    #[test]
    fn lists_of_any_length_come_back() {
        let lists = [
            Some(vec![entropy("cell_type", Some(3.25)), entropy("tissue", None)]),
            Some(vec![]),
            None,
            Some(vec![entropy("donor_id", Some(0.0))]),
        ];
        let array = <Vec<OrderEntropy> as Scalar>::to_array(lists.iter().cloned());
        assert_eq!(array.data_type(), &<Vec<OrderEntropy> as Scalar>::data_type());
        assert_eq!(Vec::<OrderEntropy>::from_array(array.as_ref()).unwrap(), lists);
    }

    #[test]
    fn figures_are_named_by_the_label_where_it_is_not_the_first() {
        let tissue = entropy("tissue", Some(1.5));
        assert_eq!(tissue.figures(true), [("entropy".to_owned(), 1.5)]);
        assert_eq!(tissue.figures(false), [("entropy of tissue, bits".to_owned(), 1.5)]);
    }
}
