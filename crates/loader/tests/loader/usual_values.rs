//! The usual values of settings have one source, `LoaderSpec::default()`. The arguments of Python's
//! loader are compared with it here; `test_native_module.py` compares its stub with the arguments.

use loader::{
    BatchForm, BlockForm, Budget, LoaderSpec, Order, PipelineSpec, Remainder, Totals, Transform,
    World, sample,
};
use serde_json::Value;

const PYTHON: &str = include_str!("../../../../python/src/loader.rs");

/// Arguments that are not named like their field.
const FIELDS: [(&str, &str); 4] = [
    ("form", "/batch_form"),
    ("target_sum", "/transform/target_sum"),
    ("log1p", "/transform/log1p"),
    ("clip", "/transform/clip"),
];

/// Arguments that are not fields, or whose values have other names. Those of the engine change its
/// own usual values.
const OF_PYTHON: [&str; 4] =
    ["dtype = \"float32\"", "token_layout = \"padded\"", "modality_forms = None", "**engine"];

#[test]
fn python_has_the_usual_values_of_the_settings() {
    let usual = serde_json::to_value(LoaderSpec::default()).unwrap();
    let (_, arguments) = PYTHON.split_once("dataset, *,").unwrap();
    let (arguments, _) = arguments.split_once("))]").unwrap();
    let arguments: Vec<&str> = arguments.split(',').map(str::trim).collect();
    for argument in &arguments {
        if OF_PYTHON.contains(argument) {
            continue;
        }
        let (name, value) = argument.split_once(" = ").unwrap();
        let at = match FIELDS.iter().find(|(known, _)| *known == name) {
            Some((_, field)) => usual.pointer(field),
            None => usual["pipeline"].get(name).or_else(|| usual.get(name)),
        };
        let value = value.replace("None", "null");
        let value: Value = serde_json::from_str(&value).unwrap();
        assert_eq!(at.unwrap_or(&Value::Null), &value, "{name}");
    }
    assert!(OF_PYTHON.iter().all(|argument| arguments.contains(argument)), "{arguments:?}");
}

#[test]
fn settings_pass_through_json_by_the_names_of_their_fields() {
    let spec = LoaderSpec {
        pipeline: PipelineSpec {
            seed: u64::MAX,
            order: Order::InOrder,
            remainder: Remainder::Pad,
            world: World { rank: 1, size: 2 },
            lanes: Some(2),
            ..PipelineSpec::default()
        },
        block_form: BlockForm::ConvertedCsr,
        batch_form: BatchForm::F16,
        modality_forms: [("prot".to_owned(), BatchForm::Csr)].into(),
        transform: Transform { target_sum: Some(1e4), log1p: true, clip: Some((-0.1, 10.0)) },
        totals: Totals::Obs,
        batch_threads: Some(3),
        ..LoaderSpec::default()
    };
    let json = serde_json::to_value(&spec).unwrap();
    assert_eq!(serde_json::from_value::<LoaderSpec>(json).unwrap(), spec);
    for form in BlockForm::ALL {
        assert_eq!(serde_json::to_value(form).unwrap(), form.name());
    }
    for form in BatchForm::ALL {
        assert_eq!(serde_json::to_value(form).unwrap(), form.name());
    }
    for order in [Order::Shuffled, Order::InOrder, Order::Listed] {
        assert_eq!(serde_json::to_value(order).unwrap(), order.name());
    }
    assert_eq!(serde_json::from_str::<LoaderSpec>("{}").unwrap(), LoaderSpec::default());
    let limited = PipelineSpec { memory: Budget::new(7), ..PipelineSpec::default() };
    let limited: PipelineSpec =
        serde_json::from_value(serde_json::to_value(limited).unwrap()).unwrap();
    assert_eq!(limited.memory.limit(), Some(7));
    let sampling = sample::Sampling::with_replacement(5, 9).unwrap();
    let drawn = PipelineSpec { sampling: Some(sampling), ..PipelineSpec::default() };
    assert!(serde_json::to_value(drawn).unwrap_err().to_string().contains("sampling"));
    let unknown = serde_json::from_str::<PipelineSpec>(r#"{"seeds": 1}"#).unwrap_err();
    assert!(unknown.to_string().contains("seeds"), "{unknown}");
}
